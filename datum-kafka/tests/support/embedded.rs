//! A topic on an embedded broker, and a consumer of it.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "test code: a failed step fails the test"
)]

use std::time::Duration;

use datum_broker::{Broker, BrokerHandle};
use datum_kafka::cluster::Cluster;
use datum_kafka::consumer::Consumer;
use datum_kafka::wire::batch::BatchHeader;
use datum_kafka::{ClientSettings, ConsumerSettings, KafkaError, StartAt, TopicPartition};

pub const TOPIC: &str = "t";

pub async fn broker(nodes: usize, partitions: i32) -> BrokerHandle {
    let broker = Broker::builder().nodes(nodes).start().await.unwrap();
    broker.create_topic(TOPIC, partitions, &[("retention.ms", "-1")]).unwrap();
    broker
}

pub async fn cluster(broker: &BrokerHandle) -> Cluster {
    Cluster::connect(ClientSettings::new(&broker.bootstrap())).await.unwrap()
}

pub fn partition(index: i32) -> TopicPartition {
    TopicPartition::new(TOPIC, index)
}

pub fn manual(broker: &BrokerHandle, start: StartAt) -> ConsumerSettings {
    ConsumerSettings::new(&broker.bootstrap()).assign(partition(0), start)
}

/// A batch with these header fields changed and its CRC put right.
pub fn doctored(mut bytes: Vec<u8>, last_delta: i32, count: Option<i32>) -> Vec<u8> {
    bytes[23..27].copy_from_slice(&last_delta.to_be_bytes());
    if let Some(count) = count {
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
    }
    BatchHeader::write_crc(&mut bytes).unwrap();
    bytes
}

/// Offsets of the records up to `end`.
pub async fn offsets(consumer: &mut Consumer, end: i64) -> Vec<i64> {
    let mut seen = Vec::new();
    loop {
        let batch = tokio::time::timeout(Duration::from_secs(20), consumer.next()).await.unwrap().unwrap();
        seen.extend(batch.records().map(|record| record.offset()));
        if batch.next_offset() >= end {
            return seen;
        }
    }
}

/// The next error, after whatever good comes before it.
pub async fn error(consumer: &mut Consumer) -> KafkaError {
    let failed = async {
        loop {
            if let Err(error) = consumer.next().await {
                return error;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), failed).await.expect("neither records for ever nor silence")
}
