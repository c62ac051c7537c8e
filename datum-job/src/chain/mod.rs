//! A window job as a chain of verbs: decode, key, window, aggregate, run.
//!
//! ```no_run
//! use datum_codec::{CompactString, Json, Projected};
//! use datum_core::prelude::*;
//! use datum_job::chain::{KafkaJobs, KafkaPaneSinks};
//! use datum_kafka::{ConsumerSettings, ProducerSettings};
//! use datum_window::{Aggregate, Aggregates, Row, Tumbling, secs};
//!
//! #[derive(Projected)]
//! struct Metric {
//!     region: CompactString,
//!     latency_ms: f64,
//! }
//!
//! fn slo_rollup() -> impl Aggregate<Metric, Out = Row> {
//!     Aggregates::<Metric>::new()
//!         .count("count")
//!         .mean("latency_avg", |m| m.latency_ms)
//!         .count_if("sla_breaches", |m| m.latency_ms > 80.0)
//! }
//!
//! # async fn run() -> Result<(), datum_job::JobError> {
//! let report = Source::kafka_job(ConsumerSettings::new("localhost:9092").group("slo").topic("requests"))
//!     .decode(Json::<Metric>::projected())
//!     .key_by(|m| m.region.as_str())
//!     .named("region")
//!     .window(Tumbling::of(secs(30)).grace(secs(1)))
//!     .aggregate(slo_rollup())
//!     .run_with(Sink::kafka_panes(ProducerSettings::new("localhost:9092"), "slo"))
//!     .await?;
//! println!("{} windows", report.windows);
//! # Ok(())
//! # }
//! ```
//!
//! # Why it is no plain stream
//! A job owns more than its records: which partitions it works on, from where it reads them after a restart, what is
//! committed beside its output. So it has a source of its own, [`Source::kafka_job`](KafkaJobs::kafka_job), and only
//! verbs that keep a record at its place: [`filter`](DecodedJob::filter) and [`map`](DecodedJob::map) before the key.
//! What would lose or reorder the place (`grouped`, `merge`, `map_async_unordered`, …) is not there, and a program that
//! asks for it does not compile:
//!
//! ```compile_fail,E0599
//! # use datum_core::prelude::*;
//! # use datum_job::chain::KafkaJobs;
//! # let input = datum_kafka::ConsumerSettings::new("localhost:9092").group("lengths").topic("lines");
//! # let read = |line: &[u8]| std::str::from_utf8(line).map(str::len);
//! Source::kafka_job(input).decode(read).grouped(10);
//! ```
//! ```compile_fail,E0599
//! # use datum_core::prelude::*;
//! # use datum_job::chain::KafkaJobs;
//! # let input = datum_kafka::ConsumerSettings::new("localhost:9092").group("lengths").topic("lines");
//! # let read = |line: &[u8]| std::str::from_utf8(line).map(str::len);
//! Source::kafka_job(input).decode(read).map_async_unordered(4, |length| async move { length });
//! ```
//! ```compile_fail,E0599
//! # use datum_core::prelude::*;
//! # use datum_job::chain::KafkaJobs;
//! # let input = datum_kafka::ConsumerSettings::new("localhost:9092").group("lengths").topic("lines");
//! # let read = |line: &[u8]| std::str::from_utf8(line).map(str::len);
//! Source::kafka_job(input).decode(read).merge(Source::single(1));
//! ```
//! Nor does a keyed job without a window, or a window without an aggregate, run:
//!
//! ```compile_fail,E0599
//! # use datum_core::prelude::*;
//! # use datum_job::chain::{KafkaJobs, KafkaPaneSinks};
//! # let input = datum_kafka::ConsumerSettings::new("localhost:9092").group("lengths").topic("lines");
//! # let output = datum_kafka::ProducerSettings::new("localhost:9092");
//! # let read = |line: &[u8]| std::str::from_utf8(line).map(str::len);
//! Source::kafka_job(input).decode(read).map(|n| n as u64).key_by(|n| n).run_with(Sink::kafka_panes(output, "out"));
//! ```
//!
//! # What is read again
//! After a restart the records that open windows still need are read again. So the closures of a job are called more than
//! once for a record, and must answer the same each time: no clock, no randomness, no effects.
//!
//! # What a pane is
//! One record: its key the group key, its timestamp the last millisecond of the window, its value a JSON object with the
//! key under its [name](KeyedJob::named), `window_start_ms`, `window_end_ms`, then the aggregates under their names, in
//! order ([`JsonFormat`](datum_window::format::JsonFormat)). Panes leave by window end, then by key.
//!
//! # Costs
//! Per record: decoding, one hash of the key in its borrowed form, one look-up, the aggregates. Nothing is allocated
//! unless the decoded struct owns memory: give it numbers and
//! [`CompactString`](datum_codec::CompactString)s (no allocation up to 24 bytes), not `String`s. A key that is only lent
//! ([`key_and_value`](DecodedJob::key_and_value)) is not copied at all.
//!
//! # Panics
//! A panic in a closure of the job unwinds through [`JobRun`]: for the job that is a crash, after which nothing is lost
//! or published twice.

mod decoded;
mod job;
mod keyed;
mod keyed_records;
mod logic;
mod reader;
mod run;
mod sink;

pub use datum_window::GroupKey;
pub use decoded::DecodedJob;
pub use job::PaneJob;
pub use keyed::{KeyedJob, WindowedJob};
pub use keyed_records::{KeyAndValue, KeyOf, KeyedRecords};
pub use logic::{PaneLogic, PanePayload, SharedAggregate, SideRecord};
pub use reader::{
    FilterRecords, IntoReader, MapRecords, OwnedRecords, ParsedRecords, ProjectedRecords, ReadRecord,
    Undecodable,
};
pub use run::JobRun;
pub use sink::{KafkaPaneSinks, PaneSink};

use datum_core::Source;
use datum_core::blueprint::Unset;
use datum_kafka::ConsumerSettings;

/// The entry to a window job, found as `Source::kafka_job(..)`.
pub trait KafkaJobs {
    /// A job over one topic, as a member of a group. `settings` names exactly one topic and a group.
    fn kafka_job(settings: ConsumerSettings) -> KafkaJob;
}

impl KafkaJobs for Source<Unset> {
    fn kafka_job(settings: ConsumerSettings) -> KafkaJob {
        KafkaJob { input: settings }
    }
}

/// A job that knows its input only.
#[derive(Clone, Debug)]
#[must_use = "a job does nothing until it is run"]
pub struct KafkaJob {
    input: ConsumerSettings,
}

impl KafkaJob {
    /// Says how the value of a record becomes what the job works on: by a projection
    /// (`Json::<Metric>::projected()`), or by any `FnMut(&[u8]) -> Result<T, E>`. A record without a value is read as no
    /// bytes.
    ///
    /// What becomes of a record that cannot be decoded is said at the end of the chain: by default the job
    /// fails, [`PaneJob::skip_undecodable`] counts it, [`PaneJob::dead_letters_to`] routes it.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use datum_job::chain::KafkaJobs;
    /// use datum_kafka::ConsumerSettings;
    ///
    /// let input = ConsumerSettings::new("localhost:9092").group("lengths").topic("lines");
    /// let job = Source::kafka_job(input).decode(|line: &[u8]| std::str::from_utf8(line).map(str::len));
    /// ```
    pub fn decode<D: IntoReader>(self, decoder: D) -> DecodedJob<D::Reader> {
        DecodedJob { input: self.input, reader: decoder.into_reader() }
    }
}
