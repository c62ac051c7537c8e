//! Typed stream processing: sources, flows and sinks, Kafka, event-time windows, exactly once.
//!
//! This crate is the face: it holds words and re-exports, no logic. Name things through it, or through [`prelude`].
//!
//! ```
//! use datum::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StreamError> {
//! let slow = Source::from_iter([12.5, 91.0, 80.5])
//!     .filter(|latency_ms| *latency_ms > 80.0)
//!     .run_with(Sink::fold(0, |count, _| count + 1))?
//!     .await?;
//! assert_eq!(slow, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | module | what it holds | feature |
//! | --- | --- | --- |
//! | [`prelude`] | what a program names most | |
//! | [`engine`] | stages, blueprints, operators, sources, sinks, the materializer | |
//! | `codec` | bytes to records and back; sample records with the feature `sample` | `codec` |
//! | `window` | keys, event time, windows, aggregates | `window` |
//! | `kafka` | the Kafka client | `kafka` |
//! | `broker` | an embedded broker, for tests and for trying things | `broker` |
//! | `job` | keyed, windowed jobs on Kafka, exactly once | `job` |
//!
//! All features but `sample` are on by default.

pub use datum_core as engine;
pub use datum_core::{ErrorKind, Flow, Keep, Materializer, RunnableGraph, Sink, Source, StreamError};

#[cfg(feature = "broker")]
pub use datum_broker as broker;
#[cfg(feature = "codec")]
pub use datum_codec as codec;
#[cfg(feature = "job")]
pub use datum_job as job;
#[cfg(feature = "kafka")]
pub use datum_kafka as kafka;
#[cfg(feature = "window")]
pub use datum_window as window;

/// What a program names most: `use datum::prelude::*;`.
pub mod prelude {
    pub use datum_core::prelude::*;

    #[cfg(feature = "codec")]
    pub use datum_codec::CompactString;
    #[cfg(feature = "codec")]
    pub use datum_codec::prelude::*;
    #[cfg(feature = "job")]
    pub use datum_job::chain::{KafkaJobs, KafkaPaneSinks};
    #[cfg(feature = "job")]
    pub use datum_job::{JobError, JobReport};
    #[cfg(feature = "kafka")]
    pub use datum_kafka::producer::ProducerRecord;
    #[cfg(feature = "kafka")]
    pub use datum_kafka::stages::{
        Committable, CommittableOps, Committer, CommitterSettings, KafkaSinks, KafkaSources,
        KafkaTransactionalSinks,
    };
    #[cfg(feature = "kafka")]
    pub use datum_kafka::{ConsumerSettings, KafkaError, ProducerSettings};
    #[cfg(feature = "window")]
    pub use datum_window::stages::KeyByOps;
    #[cfg(feature = "window")]
    pub use datum_window::{Aggregate, Aggregates, Pane, Row, Tumbling, millis, secs};
}
