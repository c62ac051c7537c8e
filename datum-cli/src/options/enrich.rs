//! Options of `datum enrich`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Delivery, OnBadRecord};
use crate::quantity;

/// The stateless job: keep regions `eu-*`, republish `event_id, region, timestamp, latency_ms, latency_ratio` (latency_ms / 80) and
/// `sla_breach` (latency_ms > 80), record by record.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  datum enrich --brokers localhost:9092                      until Ctrl-C, at least once
  datum enrich --brokers localhost:9092 --stop-at-end --delivery exactly-once
  datum probe --brokers localhost:9092 --topic bench-enriched --field timestamp      beside it: the latency")]
pub(crate) struct EnrichOptions {
    /// Bootstrap addresses of a Kafka cluster
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', required = true)]
    pub(crate) brokers: Vec<String>,
    /// Topic to read
    #[arg(long, default_value = "bench-input")]
    pub(crate) topic: String,
    /// Topic to write; created with unlimited retention if it is missing
    #[arg(long, default_value = "bench-enriched")]
    pub(crate) out_topic: String,
    /// Consumer group
    #[arg(long, default_value = "latency-enrich")]
    pub(crate) group: String,
    /// What holds after a crash
    #[arg(long, value_enum, default_value = "at-least-once")]
    pub(crate) delivery: Delivery,
    /// What to do with a record that cannot be decoded
    #[arg(long, value_enum, default_value = "fail")]
    pub(crate) on_bad_record: OnBadRecord,
    /// Topic for records that could not be decoded, with --on-bad-record dead-letter
    #[arg(long, value_name = "TOPIC")]
    pub(crate) dead_letter_topic: Option<String>,
    /// End at the end that the input has at the start
    #[arg(long)]
    pub(crate) stop_at_end: bool,
    /// After how long without a heartbeat the group gives this member up
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = quantity::duration)]
    pub(crate) session_timeout: Duration,
    /// Also write the summary to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) summary_json: Option<PathBuf>,
    /// Read further options from this file: a key is an option's name, the command line wins
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
}
