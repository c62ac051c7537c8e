//! The ends of partitions, and offsets by time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, ListOffsetsResponse};

use super::{Admin, topic_name};
use crate::TopicPartition;
use crate::cluster::{Cluster, Purpose};
use crate::connection::Call;
use crate::error::{ErrorCode, KafkaError, KafkaErrorKind, Result, Subject};
use crate::settings::Isolation;

/// Which offset of a partition is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first one the log holds.
    Earliest,
    /// The next one to be written: the high watermark, or with [`Isolation::ReadCommitted`] the last stable offset, up to
    /// which nothing belongs to an open transaction.
    Latest,
    /// The first record with this timestamp (milliseconds since the epoch) or a later one.
    Timestamp(i64),
}

impl OffsetSpec {
    fn wire(self) -> i64 {
        match self {
            Self::Earliest => -2,
            Self::Latest => -1,
            Self::Timestamp(at) => at.max(0),
        }
    }
}

/// An offset that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset; `None` if no record is as late as the timestamp asked for.
    pub offset: Option<i64>,
    /// The leader epoch it was written in, where known.
    pub leader_epoch: Option<i32>,
    /// The record's timestamp, when asked for by time.
    pub timestamp: Option<i64>,
}

impl Admin {
    /// The offset at one end of each partition, or at a time.
    ///
    /// # Errors
    /// The first partition whose leader refuses for good, or what kept it unanswered for `request_timeout`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
        isolation: Isolation,
    ) -> Result<HashMap<TopicPartition, FoundOffset>> {
        self.cluster.list_offsets(wanted, isolation).await
    }
}

impl Cluster {
    /// As [`Admin::list_offsets`].
    pub(crate) async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
        isolation: Isolation,
    ) -> Result<HashMap<TopicPartition, FoundOffset>> {
        let mut found = HashMap::with_capacity(wanted.len());
        let mut open = wanted.to_vec();
        let mut retry = self.retry();
        self.require_topics(wanted.iter().map(|(partition, _)| partition.topic.clone())).await?;
        loop {
            let mut failure = None;
            for (leader, part) in self.by_leader(&open, &mut failure) {
                match self.list_at(leader, &part, isolation).await {
                    Ok(answers) => {
                        for (partition, answer) in answers {
                            match answer {
                                Ok(offset) => drop(found.insert(partition, offset)),
                                Err(error) => failure = worse(failure, error),
                            }
                        }
                    }
                    Err(error) => failure = worse(failure, error),
                }
            }
            open.retain(|(partition, _)| !found.contains_key(partition));
            if open.is_empty() {
                return Ok(found);
            }
            let silent = || KafkaErrorKind::NoLeader { partition: open[0].0.clone() }.into();
            retry.wait(failure.unwrap_or_else(silent)).await?;
            self.refresh().await?;
        }
    }

    fn by_leader(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
        failure: &mut Option<KafkaError>,
    ) -> BTreeMap<i32, Vec<(TopicPartition, OffsetSpec, i32)>> {
        let metadata = self.metadata();
        let mut parts: BTreeMap<i32, Vec<_>> = BTreeMap::new();
        for (partition, spec) in wanted {
            match metadata.leadership(partition).and_then(|known| Some((known.leader?, known.epoch))) {
                Some((leader, epoch)) => {
                    parts.entry(leader).or_default().push((partition.clone(), *spec, epoch));
                }
                None => *failure = Some(KafkaErrorKind::NoLeader { partition: partition.clone() }.into()),
            }
        }
        parts
    }

    async fn list_at(
        &self,
        leader: i32,
        part: &[(TopicPartition, OffsetSpec, i32)],
        isolation: Isolation,
    ) -> Result<Vec<(TopicPartition, Result<FoundOffset>)>> {
        let mut topics: BTreeMap<&Arc<str>, Vec<ListOffsetsPartition>> = BTreeMap::new();
        for (partition, spec, epoch) in part {
            topics.entry(&partition.topic).or_default().push(
                ListOffsetsPartition::default()
                    .with_partition_index(partition.partition)
                    .with_current_leader_epoch(*epoch)
                    .with_timestamp(spec.wire()),
            );
        }
        let topics = topics
            .into_iter()
            .map(|(name, partitions)| {
                ListOffsetsTopic::default().with_name(topic_name(name)).with_partitions(partitions)
            })
            .collect();
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(i8::from(isolation == Isolation::ReadCommitted))
            .with_topics(topics);
        let connection = self.connection(leader, Purpose::Data).await?;
        let version = connection.version_of::<ListOffsetsRequest>()?;
        // Versions below 2 have no isolation level, below 4 no leader epoch; the encoder refuses what it cannot express.
        let request = if version < 4 { without_epochs(request) } else { request };
        let response = connection.start_in_version(&request, version).await?.await?;
        Ok(read(&response))
    }
}

fn without_epochs(mut request: ListOffsetsRequest) -> ListOffsetsRequest {
    for partition in request.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.current_leader_epoch = -1;
    }
    request
}

fn read(response: &ListOffsetsResponse) -> Vec<(TopicPartition, Result<FoundOffset>)> {
    let mut found = Vec::new();
    for topic in &response.topics {
        let name: Arc<str> = topic.name.0.as_str().into();
        for partition in &topic.partitions {
            let who = TopicPartition::new(name.clone(), partition.partition_index);
            let answer = ErrorCode::from(partition.error_code)
                .into_result()
                .map(|()| FoundOffset {
                    offset: Some(partition.offset).filter(|&offset| offset >= 0),
                    leader_epoch: Some(partition.leader_epoch).filter(|&epoch| epoch >= 0),
                    timestamp: Some(partition.timestamp).filter(|&at| at >= 0),
                })
                .map_err(|code| {
                    KafkaError::broker(code, ListOffsetsRequest::NAME, Subject::Partition(who.clone()))
                });
            found.push((who, answer));
        }
    }
    found
}

/// Of two failures the one that retrying will not mend.
fn worse(known: Option<KafkaError>, new: KafkaError) -> Option<KafkaError> {
    Some(known.filter(|known| !known.is_retriable()).unwrap_or(new))
}
