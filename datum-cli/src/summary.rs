//! What a run did, for people and as JSON.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::CliError;
use crate::usage;

/// Counts and costs of a run. Times and rates are of the run itself, not of the process's start.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// Records read.
    pub(crate) records: u64,
    /// Panes published.
    pub(crate) panes: u64,
    /// Windows that stayed open.
    pub(crate) open_windows: u64,
    /// Records that came after their window had closed.
    pub(crate) late: u64,
    /// Records that could not be decoded.
    pub(crate) undecodable: u64,
    /// What it took.
    #[serde(flatten)]
    pub(crate) cost: Cost,
}

/// The same of a run of `enrich`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EnrichSummary {
    /// Records read.
    pub(crate) records: u64,
    /// Records written.
    pub(crate) published: u64,
    /// Records of regions that are not kept.
    pub(crate) filtered: u64,
    /// Records that could not be decoded.
    pub(crate) undecodable: u64,
    /// What it took.
    #[serde(flatten)]
    pub(crate) cost: Cost,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cost {
    /// How long it took.
    pub(crate) seconds: f64,
    /// Records read per second.
    pub(crate) records_per_second: f64,
    /// Processor time of the whole process per record read.
    pub(crate) cpu_us_per_record: f64,
    /// The most memory that was resident at once.
    pub(crate) peak_rss_bytes: u64,
}

/// What a run counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Records read.
    pub(crate) records: u64,
    /// Panes published.
    pub(crate) panes: u64,
    /// Windows that stayed open.
    pub(crate) open_windows: u64,
    /// Records that came after their window had closed.
    pub(crate) late: u64,
    /// Records that could not be decoded.
    pub(crate) undecodable: u64,
}

/// Takes the time of a run.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), cpu: usage::cpu_time() }
    }

    /// The summary of a run that counted `counts` since the start.
    pub(crate) fn summarise(&self, counts: Counts) -> Summary {
        Summary {
            records: counts.records,
            panes: counts.panes,
            open_windows: counts.open_windows,
            late: counts.late,
            undecodable: counts.undecodable,
            cost: self.cost(counts.records),
        }
    }

    /// What a run that read so many records took since the start.
    #[expect(clippy::cast_precision_loss, reason = "rates for people")]
    pub(crate) fn cost(&self, records: u64) -> Cost {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu = usage::cpu_time().saturating_sub(self.cpu);
        let (none, records) = (records == 0, records as f64);
        Cost {
            seconds,
            records_per_second: if seconds > 0.0 { records / seconds } else { 0.0 },
            cpu_us_per_record: if none { 0.0 } else { cpu.as_secs_f64() * 1e6 / records },
            peak_rss_bytes: usage::peak_rss_bytes(),
        }
    }
}

impl Cost {
    fn print(&self, records: u64, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(
            out,
            "{records} records in {:.1} s: {:.0} records/s, {:.2} µs CPU per record, {:.0} MB peak memory",
            self.seconds,
            self.records_per_second,
            self.cpu_us_per_record,
            self.peak_rss_bytes as f64 / 1e6,
        )
    }
}

impl Summary {
    /// Writes it for people.
    pub(crate) fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        self.cost.print(self.records, out)?;
        writeln!(
            out,
            "{} panes, {} still open, {} late, {} undecodable",
            self.panes,
            if self.open_windows == 1 {
                "1 window".to_owned()
            } else {
                format!("{} windows", self.open_windows)
            },
            self.late,
            self.undecodable
        )
    }

    /// Writes it to `file` as JSON, if there is one.
    pub(crate) fn save(&self, file: Option<&Path>) -> Result<(), CliError> {
        save(self, file)
    }
}

impl EnrichSummary {
    /// Writes it for people.
    pub(crate) fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        self.cost.print(self.records, out)?;
        writeln!(
            out,
            "{} published, {} of other regions, {} undecodable",
            self.published, self.filtered, self.undecodable
        )
    }

    /// Writes it to `file` as JSON, if there is one.
    pub(crate) fn save(&self, file: Option<&Path>) -> Result<(), CliError> {
        save(self, file)
    }
}

fn save(summary: &impl Serialize, file: Option<&Path>) -> Result<(), CliError> {
    let Some(file) = file else { return Ok(()) };
    let mut text = serde_json::to_vec_pretty(summary).unwrap_or_default();
    text.push(b'\n');
    std::fs::write(file, text).map_err(CliError::file("write", file))
}
