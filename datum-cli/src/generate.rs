//! `datum gen`: writes sample records to a file or a topic.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::CliError;
use crate::options::GenOptions;
use crate::progress;
use crate::workload::Workload;

const DEFAULT_EVENT_TIME_RATE: u64 = 20_000;

/// Runs the command.
pub(crate) fn run(options: &GenOptions) -> Result<(), CliError> {
    let workload = workload(options);
    if let Some(file) = &options.out {
        return to_file(&workload, options.rate, file);
    }
    Err(CliError::NotYet("gen --brokers"))
}

fn workload(options: &GenOptions) -> Workload {
    let per_second = options.event_time_rate.or(options.rate).unwrap_or(DEFAULT_EVENT_TIME_RATE).max(1);
    let start_ms = options.start_ms.unwrap_or_else(|| match options.rate {
        Some(_) => Workload::start_ending_now(0, 1),
        None => Workload::start_ending_now(options.records, per_second),
    });
    Workload {
        records: options.records,
        start_ms,
        per_second,
        disorder: options.disorder,
        layout: options.layout,
        seed: options.seed,
    }
}

fn to_file(workload: &Workload, rate: Option<u64>, file: &Path) -> Result<(), CliError> {
    if file == Path::new("-") {
        let out = io::stdout().lock();
        return write_lines(workload, rate, out).map_err(CliError::Output);
    }
    let out = File::create(file).map_err(CliError::file("create", file))?;
    write_lines(workload, rate, out).map_err(CliError::file("write", file))
}

fn write_lines(workload: &Workload, rate: Option<u64>, out: impl Write) -> io::Result<()> {
    /// How many records are written between two looks at the clock.
    const ROUND: u64 = 1_000;

    let bar = progress::bar(Some(workload.records)).with_message("generated");
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let mut pace = rate.map(Pace::start);
    let mut records = workload.records();
    let mut line = Vec::with_capacity(1_024);
    let mut written = 0_u64;
    while records.write_next(&mut line).is_some() {
        line.push(b'\n');
        out.write_all(&line)?;
        line.clear();
        written += 1;
        let round = pace.as_ref().map_or(ROUND, Pace::round);
        if written.is_multiple_of(round) {
            bar.set_position(written);
            if let Some(pace) = &mut pace {
                out.flush()?;
                std::thread::sleep(pace.until_due(written));
            }
        }
    }
    out.flush()?;
    bar.finish_and_clear();
    Ok(())
}

/// Keeps to a rate in real time.
#[derive(Debug)]
pub(crate) struct Pace {
    started: Instant,
    per_second: u64,
}

impl Pace {
    /// Starts now; zero counts as one record per second.
    pub(crate) fn start(per_second: u64) -> Self {
        Self { started: Instant::now(), per_second: per_second.max(1) }
    }

    /// After how many records to wait: a hundredth of a second's worth.
    pub(crate) fn round(&self) -> u64 {
        (self.per_second / 100).max(1)
    }

    /// How long until record number `written` is due.
    pub(crate) fn until_due(&self, written: u64) -> Duration {
        let due_us = u128::from(written) * 1_000_000 / u128::from(self.per_second);
        let due = Duration::from_micros(u64::try_from(due_us).unwrap_or(u64::MAX));
        due.saturating_sub(self.started.elapsed())
    }
}
