//! What a group has committed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{GroupId, OffsetFetchRequest, OffsetFetchResponse};

use super::{Admin, text, topic_name};
use crate::TopicPartition;
use crate::cluster::{Cluster, CoordinatorKind};
use crate::connection::Call;
use crate::error::{ErrorCode, KafkaError, Result, Subject};

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record read, where it was committed with the offset.
    pub leader_epoch: Option<i32>,
    /// The text committed beside it; empty if none.
    pub metadata: Arc<str>,
}

impl Admin {
    /// What `group` has committed for these partitions; partitions without an offset are missing from the map.
    ///
    /// Offsets that an open transaction is about to commit are waited for (`require_stable`, KIP-447), so that nobody starts
    /// where a transaction not yet ended may still move.
    ///
    /// # Errors
    /// The coordinator's refusal, naming the group or partition; `UNSTABLE_OFFSET_COMMIT` if a transaction stays open for
    /// longer than `request_timeout`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn committed_offsets(
        &self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<HashMap<TopicPartition, Committed>> {
        self.cluster.committed_offsets(&group.into(), partitions).await
    }
}

impl Cluster {
    /// As [`Admin::committed_offsets`].
    pub(crate) async fn committed_offsets(
        &self,
        group: &Arc<str>,
        partitions: &[TopicPartition],
    ) -> Result<HashMap<TopicPartition, Committed>> {
        if partitions.is_empty() {
            return Ok(HashMap::new());
        }
        let request = request(group, partitions);
        let mut retry = self.retry();
        loop {
            let asked = async {
                let connection = self.coordinator(CoordinatorKind::Group, group).await?;
                // Version 8 asks for several groups at once, which nobody here needs.
                let version =
                    connection.version_between(OffsetFetchRequest::KEY, OffsetFetchRequest::NAME, 1, 7)?;
                let request = request.clone().with_require_stable(version >= 7);
                let response = connection.start_in_version(&request, version).await?.await?;
                read(&response, group)
            };
            match asked.await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    self.coordinator_failed(CoordinatorKind::Group, group, error, &mut retry).await?;
                }
            }
        }
    }
}

fn request(group: &str, partitions: &[TopicPartition]) -> OffsetFetchRequest {
    let mut topics: BTreeMap<&Arc<str>, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics.entry(&partition.topic).or_default().push(partition.partition);
    }
    let topics = topics
        .into_iter()
        .map(|(name, indexes)| {
            OffsetFetchRequestTopic::default().with_name(topic_name(name)).with_partition_indexes(indexes)
        })
        .collect();
    OffsetFetchRequest::default().with_group_id(GroupId(text(group))).with_topics(Some(topics))
}

fn read(response: &OffsetFetchResponse, group: &Arc<str>) -> Result<HashMap<TopicPartition, Committed>> {
    const NAME: &str = <OffsetFetchRequest as Call>::NAME;
    ErrorCode::from(response.error_code)
        .into_result()
        .map_err(|code| KafkaError::broker(code, NAME, Subject::Group(group.clone())))?;
    let mut found = HashMap::new();
    for topic in &response.topics {
        let name: Arc<str> = topic.name.0.as_str().into();
        for partition in &topic.partitions {
            let who = TopicPartition::new(name.clone(), partition.partition_index);
            match ErrorCode::from(partition.error_code) {
                ErrorCode::None => {}
                // A topic deleted meanwhile has no offsets.
                ErrorCode::UnknownTopicOrPartition => continue,
                code => return Err(KafkaError::broker(code, NAME, Subject::Partition(who))),
            }
            if partition.committed_offset >= 0 {
                found.insert(
                    who,
                    Committed {
                        offset: partition.committed_offset,
                        leader_epoch: Some(partition.committed_leader_epoch).filter(|&epoch| epoch >= 0),
                        metadata: partition.metadata.as_deref().unwrap_or_default().into(),
                    },
                );
            }
        }
    }
    Ok(found)
}
