//! A native Kafka client: wire, connection, cluster, consumer, group, producer, transaction, stages.
//!
//! From below to above: [`wire`] turns bytes into messages and record batches; a [`connection`] pipelines requests over one
//! socket; the cluster knows who leads what and keeps the connections; the consumer fetches, and groups, producers and transactions build
//! on the same cluster.

pub mod admin;
pub mod cluster;
pub mod connection;
pub mod consumer;
pub mod error;
pub mod group;
mod partition;
pub mod producer;
pub mod settings;
pub mod stages;
pub mod transaction;
pub mod wire;

pub use error::{ErrorCode, KafkaError, KafkaErrorKind, Result, Subject};
pub use partition::TopicPartition;
pub use settings::{
    Acks, ClientSettings, ConsumerSettings, FetchSettings, GroupSettings, Isolation, OffsetReset,
    ProducerSettings, SettingsError, StartAt,
};
