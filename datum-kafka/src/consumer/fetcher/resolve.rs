//! Looking positions up: the ends of the log, offsets by time, what to do when a position lies outside, and whether a new leader has what was
//! read under another.

use std::collections::HashMap;

use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{BrokerId, OffsetForLeaderEpochRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::partition::Resolve;
use crate::TopicPartition;
use crate::admin::{FoundOffset, OffsetSpec};
use crate::cluster::{Cluster, Purpose};
use crate::connection::Call;
use crate::error::{ErrorCode, KafkaError, KafkaErrorKind, ProtocolFault, Result};
use crate::settings::{Isolation, StartAt};

/// A position to be looked up.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) partition: TopicPartition,
    pub(super) epoch: u64,
    pub(super) generation: u64,
    pub(super) resolve: Resolve,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolved {
    Position {
        offset: i64,
    },
    Ends {
        log_start: i64,
        end: i64,
    },
    /// Where the epoch asked for ends in the log of the leader of epoch `under`; `None` if that leader does not know it.
    Agreement {
        under: i32,
        end: Option<i64>,
    },
}

/// Looks one position up; retried inside for `request_timeout`.
pub(super) async fn look_up(
    cluster: &Cluster,
    question: &Question,
    isolation: Isolation,
) -> Result<Resolved> {
    let partition = &question.partition;
    let one = async |spec, isolation| {
        let found = cluster.list_offsets(&[(partition.clone(), spec)], isolation).await?;
        pick(&found, partition)
    };
    match question.resolve {
        Resolve::Start(StartAt::Offset(offset)) => Ok(Resolved::Position { offset }),
        Resolve::Start(StartAt::Beginning) => Ok(Resolved::Position {
            offset: required(partition, one(OffsetSpec::Earliest, isolation).await?)?,
        }),
        Resolve::Start(StartAt::End) => {
            Ok(Resolved::Position { offset: required(partition, one(OffsetSpec::Latest, isolation).await?)? })
        }
        Resolve::Start(StartAt::Timestamp(at)) => {
            let offset = match one(OffsetSpec::Timestamp(at), isolation).await?.offset {
                Some(offset) => offset,
                None => required(partition, one(OffsetSpec::Latest, isolation).await?)?,
            };
            Ok(Resolved::Position { offset })
        }
        Resolve::Agreement { epoch, under } => {
            Ok(Resolved::Agreement { under, end: epoch_end(cluster, partition, epoch, under).await? })
        }
        Resolve::OutOfRange => {
            let log_start = required(partition, one(OffsetSpec::Earliest, isolation).await?)?;
            // A position may lie beyond the last stable offset; only the high watermark is the end.
            let end = required(partition, one(OffsetSpec::Latest, Isolation::ReadUncommitted).await?)?;
            Ok(Resolved::Ends { log_start, end })
        }
    }
}

/// Where an epoch ends in the leader's log (KIP-101, KIP-320). A broker too old to say takes every position for good, as it always did.
async fn epoch_end(cluster: &Cluster, who: &TopicPartition, epoch: i32, under: i32) -> Result<Option<i64>> {
    const NAME: &str = <OffsetForLeaderEpochRequest as Call>::NAME;
    let leader =
        cluster.metadata().leadership(who).and_then(|known| known.leader).ok_or_else(|| no_leader(who))?;
    let connection = cluster.connection(leader, Purpose::Data).await?;
    let asked = OffsetForLeaderPartition::default()
        .with_partition(who.partition)
        .with_current_leader_epoch(under)
        .with_leader_epoch(epoch);
    let topic = OffsetForLeaderTopic::default()
        .with_topic(TopicName(StrBytes::from_string(who.topic.to_string())))
        .with_partitions(vec![asked]);
    let request =
        OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    let response = match connection.send(&request).await {
        Err(error) if matches!(error.kind(), KafkaErrorKind::Unsupported { .. }) => {
            return Ok(Some(i64::MAX));
        }
        response => response?,
    };
    let of_topic = response.topics.iter().filter(|topic| *topic.topic.0 == *who.topic);
    let answer =
        of_topic.flat_map(|topic| &topic.partitions).find(|answer| answer.partition == who.partition);
    let answer = answer.ok_or_else(|| {
        let fault = ProtocolFault::Content("the partition asked for is not in it");
        KafkaError::protocol(connection.peer().clone(), NAME, fault)
    })?;
    ErrorCode::from(answer.error_code)
        .into_result()
        .map_err(|code| KafkaError::broker(code, NAME, who.clone().into()))?;
    Ok(Some(answer.end_offset).filter(|&end| end >= 0 && answer.leader_epoch >= 0))
}

fn pick(found: &HashMap<TopicPartition, FoundOffset>, partition: &TopicPartition) -> Result<FoundOffset> {
    found.get(partition).copied().ok_or_else(|| no_leader(partition))
}

fn required(partition: &TopicPartition, found: FoundOffset) -> Result<i64> {
    found.offset.ok_or_else(|| no_leader(partition))
}

fn no_leader(partition: &TopicPartition) -> KafkaError {
    KafkaErrorKind::NoLeader { partition: partition.clone() }.into()
}
