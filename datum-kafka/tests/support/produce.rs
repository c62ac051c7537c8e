//! Writes batches straight through the wire, transactions included, so that consuming can be tested without the producer.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "test code: a failed step fails the test"
)]

use std::sync::Arc;
use std::time::Duration;

use datum_codec::compression::Compressor;
use datum_kafka::TopicPartition;
use datum_kafka::cluster::{Cluster, CoordinatorKind, Purpose};
use datum_kafka::connection::RawRequest;
use datum_kafka::wire::batch::{BatchBuilder, Codec, NewRecord, Producer, Seal};
use datum_kafka::wire::produce::{self, ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic};
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProducerId, TopicName, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;

/// A batch of values, timestamps from 1,000 on.
pub fn batch(values: &[Vec<u8>], seal: &Seal) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for (timestamp, value) in (1_000..).zip(values) {
        builder.append(&NewRecord { timestamp, value: Some(value), ..NewRecord::default() }).unwrap();
    }
    builder.close(seal, &mut Compressor::new()).unwrap()
}

/// `count` values that say who they are.
pub fn values(name: &str, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("{name}-{i}").into_bytes()).collect()
}

/// Writes one batch and returns its base offset; waits for a leader that is still being told.
pub async fn write(
    cluster: &Cluster,
    partition: &TopicPartition,
    batch: Vec<u8>,
    transactional_id: Option<&str>,
) -> i64 {
    let mut retry = cluster.retry();
    loop {
        match try_write(cluster, partition, batch.clone(), transactional_id).await {
            Ok(offset) => return offset,
            Err(error) => {
                retry.wait(error).await.unwrap();
                cluster.refresh().await.unwrap();
            }
        }
    }
}

async fn try_write(
    cluster: &Cluster,
    partition: &TopicPartition,
    batch: Vec<u8>,
    transactional_id: Option<&str>,
) -> datum_kafka::Result<i64> {
    let (leader, _) = cluster.leader(partition).await?;
    let connection = cluster.connection(leader, Purpose::Data).await?;
    let version = connection.version_between(produce::KEY, produce::NAME, 3, 11)?;
    let request = ProduceRequest {
        transactional_id: transactional_id.map(Into::into),
        acks: -1,
        timeout_ms: 10_000,
        topics: vec![ProduceTopic {
            name: partition.topic.clone(),
            partitions: vec![ProducePartition { partition: partition.partition, batch: batch.into() }],
        }],
    };
    let body = connection
        .send_raw(RawRequest {
            key: produce::KEY,
            name: produce::NAME,
            version,
            flexible: produce::flexible(version),
            body: request.encode(version).unwrap(),
            waits: Duration::ZERO,
        })
        .await?;
    let response = ProduceResponse::decode(version, &body).unwrap();
    let produced = &response.topics[0].partitions[0];
    let refused = |code| datum_kafka::KafkaError::broker(code, produce::NAME, partition.clone().into());
    produced.error.into_result().map(|()| produced.base_offset).map_err(refused)
}

/// Plain records.
pub async fn write_values(
    cluster: &Cluster,
    partition: &TopicPartition,
    values: &[Vec<u8>],
    codec: Codec,
) -> i64 {
    write(cluster, partition, batch(values, &Seal { codec, ..Seal::default() }), None).await
}

/// A transaction under this id; left open until it is ended.
pub struct Transaction {
    cluster: Cluster,
    id: Arc<str>,
    producer: Producer,
}

impl Transaction {
    pub async fn begin(cluster: &Cluster, id: &str, partition: &TopicPartition) -> Self {
        let id: Arc<str> = id.into();
        let text = || TransactionalId(StrBytes::from_string(id.to_string()));
        let mut retry = cluster.retry();
        let init = InitProducerIdRequest::default()
            .with_transactional_id(Some(text()))
            .with_transaction_timeout_ms(60_000)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1);
        let answer = loop {
            let connection = cluster.coordinator(CoordinatorKind::Transaction, &id).await.unwrap();
            let answer = connection.send(&init).await.unwrap();
            match datum_kafka::ErrorCode::from(answer.error_code) {
                datum_kafka::ErrorCode::None => break answer,
                code => retry
                    .wait(datum_kafka::KafkaError::broker(
                        code,
                        "InitProducerId",
                        datum_kafka::Subject::TransactionalId(id.clone()),
                    ))
                    .await
                    .unwrap(),
            }
        };
        let producer = Producer { id: answer.producer_id.0, epoch: answer.producer_epoch, base_sequence: 0 };
        let topic = AddPartitionsToTxnTopic::default()
            .with_name(TopicName(StrBytes::from_string(partition.topic.to_string())))
            .with_partitions(vec![partition.partition]);
        let add = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(text())
            .with_v3_and_below_producer_id(ProducerId(producer.id))
            .with_v3_and_below_producer_epoch(producer.epoch)
            .with_v3_and_below_topics(vec![topic]);
        let connection = cluster.coordinator(CoordinatorKind::Transaction, &id).await.unwrap();
        let added = connection.send(&add).await.unwrap();
        assert_eq!(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, 0);
        Self { cluster: cluster.clone(), id, producer }
    }

    pub async fn write(&mut self, partition: &TopicPartition, values: &[Vec<u8>]) -> i64 {
        let seal = Seal { producer: Some(self.producer), transactional: true, ..Seal::default() };
        let offset = write(&self.cluster, partition, batch(values, &seal), Some(&self.id)).await;
        self.producer.base_sequence += i32::try_from(values.len()).unwrap();
        offset
    }

    pub async fn end(self, commit: bool) {
        let request = EndTxnRequest::default()
            .with_transactional_id(TransactionalId(StrBytes::from_string(self.id.to_string())))
            .with_producer_id(ProducerId(self.producer.id))
            .with_producer_epoch(self.producer.epoch)
            .with_committed(commit);
        let connection = self.cluster.coordinator(CoordinatorKind::Transaction, &self.id).await.unwrap();
        assert_eq!(connection.send(&request).await.unwrap().error_code, 0);
    }
}
