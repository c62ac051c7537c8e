//! Kafka in streams: sources and sinks of the engine.

mod source;

pub use source::{Committable, CommittableRecord, KafkaSource, KafkaSourceStage, KafkaSources, kafka_source};
