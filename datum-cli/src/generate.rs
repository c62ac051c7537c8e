//! `datum gen`: writes sample records to a file or a topic.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use datum::kafka::ProducerSettings;
use datum::kafka::producer::{Delivery, Producer, ProducerRecord};
use datum::kafka::wire::batch::Codec;
use indicatif::ProgressBar;

use crate::error::CliError;
use crate::options::{CompressionName, GenOptions, RecordKey};
use crate::workload::{Workload, Written};
use crate::{interrupt, progress, topics};

const DEFAULT_EVENT_TIME_RATE: u64 = 20_000;

/// How many records are written between two looks at the clock or the progress bar.
const ROUND: u64 = 1_000;

/// Records handed to the producer whose fate is not yet looked at.
const UNDECIDED: usize = 50_000;

/// Runs the command.
pub(crate) async fn run(options: &GenOptions) -> Result<(), CliError> {
    if let Some(file) = &options.out {
        return to_file(&workload(options), options.rate, file);
    }
    let admin = topics::connect(&options.brokers).await?;
    topics::ensure(&admin, &options.topic, options.partitions).await?;
    let mut settings = ProducerSettings::new(&options.brokers.join(","));
    settings.compression = codec(options.compression);
    // Now, not earlier: with a rate, the first record happens when it is written.
    let workload = workload(options);
    let bar = progress::bar(Some(workload.records)).with_message("generated");
    let filling = to_topic(&workload, settings, &options.topic, options.key, options.rate, &bar);
    let filled = tokio::select! {
        filled = filling => filled,
        asked = interrupt::asked_to_stop() => asked,
    };
    bar.finish_and_clear();
    filled
}

/// Fills a topic that is there, with the records' own timestamps; returns when all are written.
///
/// Dropped before it is ready, some of the records are written.
pub(crate) async fn to_topic(
    workload: &Workload,
    settings: ProducerSettings,
    topic: &str,
    key: RecordKey,
    rate: Option<u64>,
    bar: &ProgressBar,
) -> Result<(), CliError> {
    let producer = Producer::connect(settings).await?;
    let mut pace = rate.map(Pace::start);
    let mut undecided = VecDeque::with_capacity(UNDECIDED);
    let mut records = workload.records();
    let mut value = Vec::with_capacity(1_024);
    let mut room = BytesMut::new();
    let topic: Arc<str> = topic.into();
    let mut written = 0_u64;
    while let Some(meta) = records.write_next(&mut value) {
        // One allocation holds many records.
        room.extend_from_slice(&value);
        value.clear();
        let mut record =
            ProducerRecord::new(topic.clone(), room.split().freeze()).timestamp(meta.timestamp_ms);
        record.key = key_of(&meta, key);
        if undecided.len() == UNDECIDED {
            decided(undecided.pop_front()).await?;
        }
        undecided.push_back(producer.send(record).await?);
        written += 1;
        let round = pace.as_ref().map_or(ROUND, Pace::round);
        if written.is_multiple_of(round) {
            bar.set_position(written);
            if let Some(pace) = &mut pace {
                tokio::time::sleep(pace.until_due(written)).await;
            }
        }
    }
    producer.flush().await;
    while let Some(delivery) = undecided.pop_front() {
        decided(Some(delivery)).await?;
    }
    Ok(())
}

async fn decided(delivery: Option<Delivery>) -> Result<(), CliError> {
    if let Some(delivery) = delivery {
        delivery.await?;
    }
    Ok(())
}

fn key_of(written: &Written, key: RecordKey) -> Option<Bytes> {
    match key {
        RecordKey::Region => Some(Bytes::from_static(written.keys.region.as_bytes())),
        RecordKey::PartitionKey => Some(Bytes::copy_from_slice(written.keys.partition_key().as_bytes())),
        RecordKey::None => None,
    }
}

const fn codec(name: CompressionName) -> Codec {
    match name {
        CompressionName::None => Codec::None,
        CompressionName::Gzip => Codec::Gzip,
        CompressionName::Snappy => Codec::Snappy,
        CompressionName::Lz4 => Codec::Lz4,
        CompressionName::Zstd => Codec::Zstd,
    }
}

fn workload(options: &GenOptions) -> Workload {
    let per_second = options.event_time_rate.or(options.rate).unwrap_or(DEFAULT_EVENT_TIME_RATE).max(1);
    let start_ms = options.start_ms.unwrap_or_else(|| match options.rate {
        Some(_) => Workload::now(),
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Cli, Command};

    fn options(more: &[&str]) -> GenOptions {
        let line = ["datum", "gen", "--out", "-"].iter().chain(more);
        match Cli::try_parse_from(line).expect("a command line").command {
            Command::Gen(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn with_a_rate_the_first_record_happens_now_and_each_next_when_it_is_written() {
        let before = Workload::now();
        let workload = workload(&options(&["--rate", "1000", "--records", "60_000"]));
        let after = Workload::now();
        let mut records = workload.records();
        let mut times = std::iter::from_fn(|| records.write_next(&mut Vec::new()).map(|m| m.timestamp_ms));
        let first = times.next().expect("a record");
        assert!((before..=after).contains(&first), "{before} {first} {after}");
        assert_eq!(times.nth(1_998), Some(first + 1_999), "event time passes as time does");
    }

    #[test]
    fn without_a_rate_the_last_record_is_not_in_the_future() {
        let workload = workload(&options(&["--records", "60_000"]));
        let (seconds, now) =
            (60_000 / i64::try_from(DEFAULT_EVENT_TIME_RATE).expect("small"), Workload::now());
        assert!(workload.start_ms + seconds * 1_000 <= now, "{} {now}", workload.start_ms);
    }

    #[test]
    fn a_start_that_is_given_counts_with_a_rate_too() {
        assert_eq!(workload(&options(&["--rate", "5", "--start-ms", "17"])).start_ms, 17);
    }
}
