//! A native Kafka client: wire, connection, cluster, consumer, group, producer, transaction, stages.

pub mod group;
pub mod wire;
