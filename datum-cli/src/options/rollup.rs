//! Options of `datum rollup`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use datum::codec::sample::Layout;

use super::{Delivery, Format, OnBadRecord, layout};
use crate::quantity;

/// The region rollup: for each region and event-time window, twelve aggregates.
///
/// Without --brokers and --from-file it starts the embedded broker, generates records alongside, and drains them through the same
/// Kafka path that it uses on yours.
///
/// While no broker answers it waits, with a warning every half minute, and goes on from what is committed once one does; Ctrl-C or SIGTERM
/// ends it in good order at any time, with exit code 0.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  datum rollup                                               two million records on the embedded broker
  datum rollup --brokers localhost:9092                      bench-input to bench-out, exactly once, until Ctrl-C
  datum rollup --brokers localhost:9092 --stop-at-end        drain what is there now, then end
  datum rollup --from-file records.ndjson --format csv       no broker: a file, one JSON record per line
  datum rollup --brokers localhost:9092 --window 5s --on-bad-record dead-letter --dead-letter-topic bad")]
pub(crate) struct RollupOptions {
    /// Bootstrap addresses of a Kafka cluster
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', help_heading = "Input")]
    pub(crate) brokers: Vec<String>,
    /// Topic to read
    #[arg(long, default_value = "bench-input", help_heading = "Input")]
    pub(crate) topic: String,
    /// Consumer group, and with it the name of the job's state
    #[arg(long, default_value = "region-rollup", help_heading = "Input")]
    pub(crate) group: String,
    /// Read this file instead of a topic; event time is each record's `timestamp`
    #[arg(long, value_name = "FILE.ndjson", conflicts_with_all = ["brokers", "records", "partitions", "late_topic", "dead_letter_topic"], help_heading = "Input")]
    pub(crate) from_file: Option<PathBuf>,
    /// What to do with a record that cannot be decoded
    #[arg(long, value_enum, default_value = "fail", help_heading = "Input")]
    pub(crate) on_bad_record: OnBadRecord,
    /// Memory for one fetch answer; more means fewer round trips
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = quantity::bytes, help_heading = "Input")]
    pub(crate) fetch_max_bytes: u64,

    /// Length of a window
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = quantity::duration, help_heading = "Windows")]
    pub(crate) window: Duration,
    /// How long a window waits for records that are out of order, in event time
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = quantity::duration, help_heading = "Windows")]
    pub(crate) grace: Duration,
    /// After how long without new records a partition no longer holds windows open
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = quantity::duration, help_heading = "Windows")]
    pub(crate) idle_timeout: Duration,

    /// Topic for the panes; created with unlimited retention if it is missing
    #[arg(long, default_value = "bench-out", help_heading = "Output")]
    pub(crate) out_topic: String,
    /// Topic for records that came after their window had closed (they are counted in any case)
    #[arg(long, value_name = "TOPIC", help_heading = "Output")]
    pub(crate) late_topic: Option<String>,
    /// Topic for records that could not be decoded, with --on-bad-record dead-letter
    #[arg(long, value_name = "TOPIC", help_heading = "Output")]
    pub(crate) dead_letter_topic: Option<String>,
    /// How panes are printed
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Format,
    /// Also write the summary to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) summary_json: Option<PathBuf>,

    /// What holds after a crash
    #[arg(long, value_enum, default_value = "exactly-once", help_heading = "Job")]
    pub(crate) delivery: Delivery,
    /// Promise that records of one region are all in one partition: members then share the partitions
    #[arg(long, help_heading = "Job")]
    pub(crate) co_partitioned: bool,
    /// End at the end that the input has at the start
    #[arg(long, help_heading = "Job")]
    pub(crate) stop_at_end: bool,
    /// At the end, publish windows that are still open too, unless they end after now
    #[arg(long, help_heading = "Job")]
    pub(crate) flush: bool,
    /// Start at the committed offsets although their metadata is missing (after an operator's offset reset)
    #[arg(long, help_heading = "Job")]
    pub(crate) reset: bool,
    /// A name that survives restarts, so that the group does not rebalance for them
    #[arg(long, value_name = "NAME", help_heading = "Job")]
    pub(crate) instance_id: Option<String>,
    /// After how long without a heartbeat the group gives this member up
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = quantity::duration, help_heading = "Job")]
    pub(crate) session_timeout: Duration,
    /// Read further options from this file: a key is an option's name, the command line wins
    #[arg(long, value_name = "FILE.toml", help_heading = "Job")]
    pub(crate) config: Option<PathBuf>,

    /// Records to generate (embedded broker only)
    #[arg(long, value_name = "N", default_value = "2_000_000", value_parser = quantity::count, conflicts_with = "brokers", help_heading = "Sample data")]
    pub(crate) records: u64,
    /// Generated records per second of event time
    #[arg(long, value_name = "N", default_value = "20_000", value_parser = quantity::count, conflicts_with_all = ["brokers", "from_file"], help_heading = "Sample data")]
    pub(crate) event_time_rate: u64,
    /// Partitions of the generated topic
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=1_000), conflicts_with = "brokers", help_heading = "Sample data")]
    pub(crate) partitions: i32,
    /// Generated records happen up to this much out of order
    #[arg(long, value_name = "DURATION", default_value = "0ms", value_parser = quantity::duration, conflicts_with_all = ["brokers", "from_file"], help_heading = "Sample data")]
    pub(crate) disorder: Duration,
    /// Form of the generated records
    #[arg(long, default_value = "natural", value_parser = layout(), conflicts_with_all = ["brokers", "from_file"], help_heading = "Sample data")]
    pub(crate) layout: Layout,
    /// Seed of the generated records
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["brokers", "from_file"], help_heading = "Sample data")]
    pub(crate) seed: u64,
    /// How much the embedded broker may hold; the generator waits while it is full
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = quantity::bytes, conflicts_with_all = ["brokers", "from_file"], help_heading = "Sample data")]
    pub(crate) broker_memory: u64,
}
