//! One broker's side of a producer: requests leave over its connection in the order they were given.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::lane::{BatchId, Outcome};
use crate::{
    TopicPartition,
    cluster::{Broker, Cluster, Leadership, Purpose},
    connection::RawRequest,
    error::{KafkaError, KafkaErrorKind, ProtocolFault, Result},
    wire::{
        ErrorCode,
        produce::{self, ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic},
    },
};

/// The batches of one request.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) batches: Vec<(TopicPartition, BatchId, Bytes)>,
}

/// What one request came to.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) broker: i32,
    pub(super) outcomes: Vec<(TopicPartition, BatchId, Outcome)>,
    /// The connection failed: its broker may be gone.
    pub(super) broken: bool,
}

/// What all requests of a producer share.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) transactional_id: Option<Arc<str>>,
    pub(super) acks: i16,
    pub(super) timeout: Duration,
    /// The highest version to speak: it says whether writing adds the partition to the transaction (KIP-890).
    pub(super) max_version: i16,
}

/// Sends jobs to one broker until the sender is gone.
pub(super) async fn serve(
    cluster: Cluster,
    broker: i32,
    mut jobs: mpsc::UnboundedReceiver<(Job, Terms)>,
    done: mpsc::UnboundedSender<Done>,
) {
    while let Some((job, terms)) = jobs.recv().await {
        let started = start(&cluster, broker, &job, &terms).await;
        let (cluster, done) = (cluster.clone(), done.clone());
        match started {
            Err(error) => {
                let outcome = match refused(&error) {
                    Some(code) => Outcome::Refused { code },
                    None => Outcome::Unsent,
                };
                let broken = error.is_connection();
                let _ = done.send(Done { broker, outcomes: all(job, outcome), broken });
            }
            Ok((version, pending, peer)) => {
                tokio::spawn(async move {
                    let answer = pending.await.and_then(|body| {
                        ProduceResponse::decode(version, &body).map_err(|error| {
                            KafkaError::protocol(peer, produce::NAME, ProtocolFault::Wire(error))
                        })
                    });
                    let _ = done.send(match answer {
                        Ok(response) => {
                            Done { broker, outcomes: read(&cluster, job, &response), broken: false }
                        }
                        Err(error) => {
                            tracing::debug!(broker, %error, "a produce request was not answered");
                            Done { broker, outcomes: all(job, Outcome::Unanswered), broken: true }
                        }
                    });
                });
            }
        }
    }
}

async fn start(
    cluster: &Cluster,
    broker: i32,
    job: &Job,
    terms: &Terms,
) -> Result<(i16, crate::connection::Pending, Arc<str>)> {
    let connection = cluster.connection(broker, Purpose::Data).await?;
    let version =
        connection.version_between(produce::KEY, produce::NAME, produce::MIN_VERSION, terms.max_version)?;
    let mut topics: Vec<ProduceTopic> = Vec::new();
    for (tp, _, batch) in &job.batches {
        let partition = ProducePartition { partition: tp.partition, batch: batch.clone() };
        match topics.iter_mut().find(|topic| topic.name == tp.topic) {
            Some(topic) => topic.partitions.push(partition),
            None => topics.push(ProduceTopic { name: tp.topic.clone(), partitions: vec![partition] }),
        }
    }
    let request = ProduceRequest {
        transactional_id: terms.transactional_id.clone(),
        acks: terms.acks,
        timeout_ms: i32::try_from(terms.timeout.as_millis()).unwrap_or(i32::MAX),
        topics,
    };
    let body = request
        .encode(version)
        .map_err(|error| KafkaErrorKind::Encode { api: produce::NAME, reason: error.to_string().into() })?;
    let pending = connection
        .start_raw(RawRequest {
            key: produce::KEY,
            name: produce::NAME,
            version,
            flexible: produce::flexible(version),
            body,
            waits: terms.timeout,
        })
        .await?;
    Ok((version, pending, connection.peer().clone()))
}

/// The code of a failure that no second attempt mends.
fn refused(error: &KafkaError) -> Option<ErrorCode> {
    let hopeless = !error.is_connection() && !error.is_retriable();
    hopeless.then(|| error.code().unwrap_or(ErrorCode::UnsupportedVersion))
}

fn all(job: Job, outcome: Outcome) -> Vec<(TopicPartition, BatchId, Outcome)> {
    job.batches.into_iter().map(|(tp, batch, _)| (tp, batch, outcome)).collect()
}

fn read(cluster: &Cluster, job: Job, response: &ProduceResponse) -> Vec<(TopicPartition, BatchId, Outcome)> {
    let find = |tp: &TopicPartition| {
        let topic = response.topics.iter().find(|topic| topic.name == tp.topic)?;
        topic.partitions.iter().find(|partition| partition.partition == tp.partition)
    };
    job.batches
        .into_iter()
        .map(|(tp, batch, _)| {
            // A partition that is missing in the answer may have been written.
            let Some(found) = find(&tp) else { return (tp, batch, Outcome::Unanswered) };
            if found.error.is_ok() {
                return (tp, batch, Outcome::Written { offset: found.base_offset });
            }
            if let Some(leader) = &found.current_leader {
                let endpoint = response.endpoints.iter().find(|endpoint| endpoint.node == leader.leader);
                let broker = endpoint.and_then(|endpoint| {
                    let address = format!("{}:{}", endpoint.host, endpoint.port).parse().ok()?;
                    let rack = endpoint.rack.as_deref().map(Into::into);
                    Some(Broker { id: endpoint.node, address, rack })
                });
                let leadership = Leadership { leader: Some(leader.leader), epoch: leader.epoch };
                cluster.hint_leader(&tp, leadership, broker);
            }
            (tp, batch, Outcome::Refused { code: found.error })
        })
        .collect()
}
