//! Options of `datum gen`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use datum::codec::sample::Layout;

use super::layout;
use crate::quantity;

/// Fill a topic or an NDJSON file with sample telemetry records.
///
/// The same options give the same records. A topic that is missing is created, with unlimited retention: the records' timestamps may be old.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  datum gen --out records.ndjson --records 500k              a file
  datum gen --brokers localhost:9092 --records 5M --partitions 6 --key partition_key
  datum gen --brokers localhost:9092 --rate 20k --records 2M live: 20,000 records per second
  datum gen --out late.ndjson --records 100k --disorder 5s   some records come after their window closed")]
pub(crate) struct GenOptions {
    /// Bootstrap addresses of a Kafka cluster
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        required_unless_present = "out",
        help_heading = "Output"
    )]
    pub(crate) brokers: Vec<String>,
    /// Topic to fill
    #[arg(long, default_value = "bench-input", help_heading = "Output")]
    pub(crate) topic: String,
    /// Write this file instead of a topic, one record per line; `-` is the standard output
    #[arg(long, value_name = "FILE.ndjson", conflicts_with_all = ["brokers", "topic", "key", "partitions", "compression"], help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Partitions, if the topic must be created
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=1_000), help_heading = "Output")]
    pub(crate) partitions: i32,
    /// Compression of the batches
    #[arg(long, value_enum, default_value = "lz4", help_heading = "Output")]
    pub(crate) compression: CompressionName,
    /// What a record's key is, and so its partition
    #[arg(long, value_enum, default_value = "region", help_heading = "Output")]
    pub(crate) key: RecordKey,

    /// How many records
    #[arg(long, value_name = "N", default_value = "1_000_000", value_parser = quantity::count, help_heading = "Records")]
    pub(crate) records: u64,
    /// Records per second of real time; without it, as fast as it goes
    #[arg(long, value_name = "N", value_parser = quantity::count, help_heading = "Records")]
    pub(crate) rate: Option<u64>,
    /// Records per second of event time; by default --rate if that is given, else 20,000
    #[arg(long, value_name = "N", value_parser = quantity::count, help_heading = "Records")]
    pub(crate) event_time_rate: Option<u64>,
    /// Event time of the first record, in milliseconds since 1970; by default such that the last record happens
    /// now, rounded down to a whole 30 s; with --rate, now
    #[arg(long, value_name = "MS", allow_negative_numbers = true, help_heading = "Records")]
    pub(crate) start_ms: Option<i64>,
    /// Form of the records
    #[arg(long, default_value = "natural", value_parser = layout(), help_heading = "Records")]
    pub(crate) layout: Layout,
    /// Each record happened up to this much before its place in the order
    #[arg(long, value_name = "DURATION", default_value = "0ms", value_parser = quantity::duration, help_heading = "Records")]
    pub(crate) disorder: Duration,
    /// Seed of the records
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Records")]
    pub(crate) seed: u64,
    /// Read further options from this file: a key is an option's name, the command line wins
    #[arg(long, value_name = "FILE.toml", help_heading = "Records")]
    pub(crate) config: Option<PathBuf>,
}

/// What a record is keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordKey {
    /// The field `region`: records of one region share a partition
    Region,
    /// The field `partition_key`: each region is spread over all partitions
    #[value(name = "partition_key")]
    PartitionKey,
    /// No key: batches are spread evenly
    None,
}

/// Compression of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionName {
    /// Not compressed
    None,
    /// gzip
    Gzip,
    /// Snappy
    Snappy,
    /// LZ4
    Lz4,
    /// Zstandard
    Zstd,
}
