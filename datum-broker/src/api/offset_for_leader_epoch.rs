//! OffsetForLeaderEpoch: where an epoch ended, so that a consumer notices a truncated log.

use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::{Core, check_epoch};

pub(crate) const VERSIONS: Range = (2, 4);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let answer = |asked: &OffsetForLeaderPartition| {
            let outcome = find(core, call, &topic.topic, asked);
            let (epoch, end) = outcome.unwrap_or((-1, -1));
            EpochEndOffset::default()
                .with_partition(asked.partition)
                .with_error_code(number(&outcome))
                .with_leader_epoch(epoch)
                .with_end_offset(end)
        };
        let partitions = topic.partitions.iter().map(answer).collect();
        topics.push(
            OffsetForLeaderTopicResult::default().with_topic(topic.topic.clone()).with_partitions(partitions),
        );
    }
    OffsetForLeaderEpochResponse::default().with_topics(topics)
}

fn find(core: &Core, call: &Call, topic: &str, asked: &OffsetForLeaderPartition) -> Result<(i32, i64), Code> {
    call.forced()?;
    let partition = core.led(topic, asked.partition, call.node)?;
    check_epoch(partition, asked.current_leader_epoch)?;
    let found = partition.epochs().end_of(asked.leader_epoch, partition.leader_epoch, partition.end());
    Ok(found.unwrap_or((-1, -1)))
}
