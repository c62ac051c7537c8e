//! `datum probe`: how long after the moment in a field a record was published.
//!
//! It reads committed, from the end that the topic has when it starts, on the partitions that there are then. Published is when this command
//! received the record, so the way from the broker counts; the clocks of this machine and of whoever wrote the field must agree.

use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use datum::codec::{Json, Projected, ProjectedJson};
use datum::kafka::consumer::{Consumer, RecordsBatch};
use datum::kafka::{ConsumerSettings, StartAt};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::error::CliError;
use crate::interrupt;
use crate::options::{ProbeField, ProbeOptions};
use crate::topics;

/// An hour: what is later counts as this late.
const LONGEST_MS: u64 = 3_600_000;

#[derive(Projected)]
struct Dated {
    timestamp: i64,
}

#[derive(Projected)]
struct Pane {
    window_end_ms: i64,
}

/// Runs the command.
pub(crate) async fn run(options: &ProbeOptions) -> Result<(), CliError> {
    let admin = topics::connect(&options.brokers).await?;
    let mut settings = ConsumerSettings::new(&options.brokers.join(","));
    for partition in topics::partitions(&admin, &options.topic).await? {
        settings = settings.assign(partition, StartAt::End);
    }
    let mut consumer = Consumer::on(admin.cluster().clone(), &settings)?;
    let mut tally = Tally::new(options)?;
    let started = Instant::now();
    let limit = async {
        match options.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let stop = interrupt::asked_to_stop();
    tokio::pin!(limit, stop);
    while !tally.is_full() {
        tokio::select! {
            batch = consumer.next() => tally.take(&batch?),
            () = &mut limit => break,
            asked = &mut stop => { asked?; break }
        }
    }
    tally.print(options, started.elapsed())
}

/// What was seen so far.
struct Tally {
    field: Field,
    latencies: Histogram<u64>,
    most: u64,
    unreadable: u64,
}

enum Field {
    Timestamp(ProjectedJson<Dated>),
    WindowEnd(ProjectedJson<Pane>),
}

impl Tally {
    fn new(options: &ProbeOptions) -> Result<Self, CliError> {
        let field = match options.field {
            ProbeField::Timestamp => Field::Timestamp(Json::<Dated>::projected()),
            ProbeField::WindowEndMs => Field::WindowEnd(Json::<Pane>::projected()),
        };
        let latencies = Histogram::new_with_bounds(1, LONGEST_MS, 3).map_err(|_| CliError::Histogram)?;
        Ok(Self { field, latencies, most: options.records.unwrap_or(u64::MAX), unreadable: 0 })
    }

    fn is_full(&self) -> bool {
        self.latencies.len() >= self.most
    }

    fn take(&mut self, batch: &RecordsBatch) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        for record in batch.records() {
            if self.is_full() {
                return;
            }
            let value = record.value().unwrap_or_default();
            let happened = match &mut self.field {
                Field::Timestamp(json) => json.decode(value).map(|record| record.timestamp),
                Field::WindowEnd(json) => json.decode(value).map(|pane| pane.window_end_ms),
            };
            match happened {
                // What happens after now by this clock was published at once.
                Ok(at) => {
                    self.latencies.saturating_record(u64::try_from(now.saturating_sub(at)).unwrap_or(0));
                }
                Err(_) => self.unreadable += 1,
            }
        }
    }

    fn print(&self, options: &ProbeOptions, took: Duration) -> Result<(), CliError> {
        let quantile = |q| if self.latencies.is_empty() { 0 } else { self.latencies.value_at_quantile(q) };
        let report = Report {
            records: self.latencies.len(),
            unreadable: self.unreadable,
            seconds: took.as_secs_f64(),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: if self.latencies.is_empty() { 0 } else { self.latencies.max() },
        };
        let mut out = io::stdout().lock();
        let written = if options.json {
            writeln!(out, "{}", serde_json::to_string(&report).unwrap_or_default())
        } else {
            report.print(&mut out)
        };
        written.map_err(CliError::Output)
    }
}

#[derive(Serialize)]
struct Report {
    records: u64,
    unreadable: u64,
    seconds: f64,
    p50_ms: u64,
    p90_ms: u64,
    p99_ms: u64,
    p999_ms: u64,
    max_ms: u64,
}

impl Report {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{} records in {:.1} s, {} without the field",
            self.records, self.seconds, self.unreadable
        )?;
        writeln!(
            out,
            "published after: p50 {} ms, p90 {} ms, p99 {} ms, p99.9 {} ms, max {} ms",
            self.p50_ms, self.p90_ms, self.p99_ms, self.p999_ms, self.max_ms
        )
    }
}
