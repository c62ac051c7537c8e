//! Which broker is asked for what, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use datum_net::Backoff;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::queue::Waiting;
use super::task::{Done, Task};
use crate::TopicPartition;
use crate::cluster::{Cluster, Metadata, Purpose};
use crate::connection::RawRequest;
use crate::consumer::meter::BrokerMeter;
use crate::error::{KafkaError, KafkaErrorKind, ProtocolFault, Result};
use crate::settings::Isolation;
use crate::wire::fetch::{self, FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use crate::wire::topic::TopicRef;

/// A broker and what is open with it.
pub(super) struct Asked {
    pub(super) in_flight: bool,
    pub(super) waiting: Waiting,
    pub(super) backoff: Backoff,
    pub(super) not_before: Option<Instant>,
    /// The partition the next request begins with, so that none starves when the size limit cuts answers short.
    first: usize,
    /// When the request in flight left.
    pub(super) since: Instant,
    pub(super) meter: BrokerMeter,
}

/// What was asked of one partition.
pub(super) struct Sent {
    pub(super) partition: TopicPartition,
    pub(super) topic: TopicRef,
    pub(super) epoch: u64,
    pub(super) generation: u64,
    pub(super) position: i64,
}

impl Task {
    /// Sends a fetch to every broker that has none in flight and may have one.
    pub(super) fn ask(&mut self, now: Instant) {
        let mut by_broker: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        let metadata = self.cluster.metadata();
        let mut unsure = false;
        for (who, partition) in &mut self.partitions {
            if !partition.ready(now) {
                continue;
            }
            let known = metadata.leadership(who);
            match known.and_then(|known| known.leader) {
                Some(_) if known.is_some_and(|known| partition.must_agree(known.epoch)) => unsure = true,
                Some(leader) => by_broker.entry(leader).or_default().push(who.clone()),
                None => self.stale = true,
            }
        }
        if unsure {
            self.resolve(now);
        }
        if self.stale && !self.refreshing {
            self.refresh();
        }
        for (broker, ready) in by_broker {
            let settings = self.cluster.settings();
            let asked = self.brokers.entry(broker).or_insert_with(|| Asked {
                in_flight: false,
                waiting: self.waiting.another_broker(),
                backoff: Backoff::new(settings.reconnect_backoff),
                not_before: None,
                first: 0,
                since: now,
                meter: BrokerMeter::new(broker),
            });
            let turn = asked.not_before.is_none_or(|at| at <= now);
            let room = asked.waiting.of_broker() < self.fetch.partition_max_bytes
                && asked.waiting.total() < self.fetch.buffer_bytes;
            if asked.in_flight || !turn || !room {
                continue;
            }
            asked.in_flight = true;
            asked.since = now;
            asked.first = (asked.first + 1) % ready.len();
            let first = asked.first;
            self.send(broker, &ready, first, &metadata);
        }
    }

    fn send(&mut self, broker: i32, ready: &[TopicPartition], first: usize, metadata: &Metadata) {
        let mut sent: Vec<Sent> = Vec::with_capacity(ready.len());
        let mut topics: Vec<FetchTopic> = Vec::new();
        for who in ready[first..].iter().chain(&ready[..first]) {
            let Some(partition) = self.partitions.get(who) else { continue };
            let asked = FetchPartition {
                partition: who.partition,
                current_leader_epoch: metadata.leadership(who).map_or(-1, |known| known.epoch),
                fetch_offset: partition.position,
                last_fetched_epoch: partition.last_epoch,
                max_bytes: i32::try_from(partition.max_bytes).unwrap_or(i32::MAX),
            };
            match topics.last_mut().filter(|topic| topic.topic.name == who.topic) {
                Some(topic) => topic.partitions.push(asked),
                None => topics.push(FetchTopic { topic: partition.topic.clone(), partitions: vec![asked] }),
            }
            sent.push(Sent {
                partition: who.clone(),
                topic: partition.topic.clone(),
                epoch: partition.handle.epoch(),
                generation: partition.generation,
                position: partition.position,
            });
        }
        let request = FetchRequest {
            max_wait_ms: i32::try_from(self.fetch.max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: i32::try_from(self.fetch.min_bytes).unwrap_or(i32::MAX),
            max_bytes: i32::try_from(self.fetch.max_bytes).unwrap_or(i32::MAX),
            read_committed: self.isolation == Isolation::ReadCommitted,
            topics,
            ..FetchRequest::default()
        };
        let (cluster, waits) = (self.cluster.clone(), self.fetch.max_wait);
        self.work.push(
            async move {
                let outcome = exchange(&cluster, broker, &request, waits).await;
                Done::Fetched { broker, sent, outcome }
            }
            .boxed(),
        );
    }
}

async fn exchange(
    cluster: &Cluster,
    broker: i32,
    request: &FetchRequest,
    waits: Duration,
) -> Result<FetchResponse> {
    let connection = cluster.connection(broker, Purpose::Data).await?;
    let by_id = request.topics.iter().all(|topic| topic.topic.has_id());
    let highest = if by_id { fetch::MAX_VERSION } else { fetch::FIRST_VERSION_BY_ID - 1 };
    let version = connection.version_between(fetch::KEY, fetch::NAME, fetch::MIN_VERSION, highest)?;
    let mut body = Vec::new();
    request.encode(version, &mut body).map_err(|error| {
        KafkaError::from(KafkaErrorKind::Encode { api: fetch::NAME, reason: error.to_string().into() })
    })?;
    let answer = connection
        .send_raw(RawRequest {
            key: fetch::KEY,
            name: fetch::NAME,
            version,
            flexible: fetch::flexible(version),
            body: vec![body.into()],
            waits,
        })
        .await?;
    FetchResponse::decode(version, &answer).map_err(|error| {
        KafkaError::protocol(connection.peer().clone(), fetch::NAME, ProtocolFault::Wire(error))
    })
}
