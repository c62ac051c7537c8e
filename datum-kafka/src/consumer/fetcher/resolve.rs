//! Looking positions up: the ends of the log, offsets by time, and what to do when a position lies outside.

use std::collections::HashMap;

use super::partition::Resolve;
use crate::TopicPartition;
use crate::admin::{FoundOffset, OffsetSpec};
use crate::cluster::Cluster;
use crate::error::{KafkaError, KafkaErrorKind, Result};
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
    Position { offset: i64 },
    Ends { log_start: i64, end: i64 },
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
        Resolve::OutOfRange => {
            let log_start = required(partition, one(OffsetSpec::Earliest, isolation).await?)?;
            // A position may lie beyond the last stable offset; only the high watermark is the end.
            let end = required(partition, one(OffsetSpec::Latest, Isolation::ReadUncommitted).await?)?;
            Ok(Resolved::Ends { log_start, end })
        }
    }
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
