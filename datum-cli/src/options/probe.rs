//! Options of `datum probe`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::quantity;

/// Tail a topic, read committed, and print how long after the moment in a field each record was published: p50, p90, p99, p99.9, max.
///
/// Published is when this command received the record; run it on the machine whose clock wrote the field.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  datum probe --brokers localhost:9092 --topic bench-out --field window_end_ms          close latency of the rollup
  datum probe --brokers localhost:9092 --topic bench-enriched --field timestamp --duration 60s --json")]
pub(crate) struct ProbeOptions {
    /// Bootstrap addresses of a Kafka cluster
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', required = true)]
    pub(crate) brokers: Vec<String>,
    /// Topic to tail
    #[arg(long)]
    pub(crate) topic: String,
    /// The field that says when it happened, in milliseconds since 1970
    #[arg(long, value_enum)]
    pub(crate) field: ProbeField,
    /// End after this long; without it, at Ctrl-C
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub(crate) duration: Option<Duration>,
    /// End after this many records
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub(crate) records: Option<u64>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Read further options from this file: a key is an option's name, the command line wins
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
}

/// Where a record says when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbeField {
    /// When the record happened
    #[value(name = "timestamp")]
    Timestamp,
    /// When the pane's window ended
    #[value(name = "window_end_ms")]
    WindowEndMs,
}
