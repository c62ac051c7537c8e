//! Kafka in streams: sources and sinks of the engine.

mod committer;
mod sink;
mod source;
mod transact;
mod transactional;
mod values;

pub use committer::{Committed, Committer, CommitterSettings, Committing};
pub use sink::{KafkaSink, KafkaSinkLogic, KafkaSinks, Outgoing, kafka_sink};
pub use source::{Committable, CommittableRecord, KafkaSource, KafkaSourceStage, KafkaSources, kafka_source};
pub use transactional::{
    KafkaTransactionalSink, KafkaTransactionalSinks, TransactionalLogic, kafka_transactional_sink,
};
pub use values::{CommittableOps, FilterMapValue, FilterMapValueStage};
