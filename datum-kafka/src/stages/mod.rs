//! Kafka in streams: sources and sinks of the engine.

mod sink;
mod source;
mod transact;
mod transactional;

pub use sink::{KafkaSink, KafkaSinkLogic, KafkaSinks, Outgoing, kafka_sink};
pub use source::{Committable, CommittableRecord, KafkaSource, KafkaSourceStage, KafkaSources, kafka_source};
pub use transactional::{
    KafkaTransactionalSink, KafkaTransactionalSinks, TransactionalLogic, kafka_transactional_sink,
};
