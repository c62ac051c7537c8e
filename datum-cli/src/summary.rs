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
    #[expect(clippy::cast_precision_loss, reason = "rates for people")]
    pub(crate) fn summarise(&self, counts: Counts) -> Summary {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu = usage::cpu_time().saturating_sub(self.cpu);
        let records = counts.records as f64;
        Summary {
            records: counts.records,
            panes: counts.panes,
            open_windows: counts.open_windows,
            late: counts.late,
            undecodable: counts.undecodable,
            seconds,
            records_per_second: if seconds > 0.0 { records / seconds } else { 0.0 },
            cpu_us_per_record: if counts.records > 0 { cpu.as_secs_f64() * 1e6 / records } else { 0.0 },
            peak_rss_bytes: usage::peak_rss_bytes(),
        }
    }
}

impl Summary {
    /// Writes it for people.
    pub(crate) fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(
            out,
            "{} records in {:.1} s: {:.0} records/s, {:.2} µs CPU per record, {:.0} MB peak memory",
            self.records,
            self.seconds,
            self.records_per_second,
            self.cpu_us_per_record,
            self.peak_rss_bytes as f64 / 1e6,
        )?;
        writeln!(
            out,
            "{} panes, {} windows still open, {} late, {} undecodable",
            self.panes, self.open_windows, self.late, self.undecodable
        )
    }

    /// Writes it to `file` as JSON, if there is one.
    pub(crate) fn save(&self, file: Option<&Path>) -> Result<(), CliError> {
        let Some(file) = file else { return Ok(()) };
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        std::fs::write(file, text).map_err(CliError::file("write", file))
    }
}
