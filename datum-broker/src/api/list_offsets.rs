//! ListOffsets: the log's ends, and the first offset at or after a time.

use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::{Core, check_epoch};
use crate::log::records;

/// v2 adds isolation, v4 leader epochs, v7 the largest time stamp, v8 and v9 tiers of storage, v10 a timeout.
pub(crate) const VERSIONS: Range = (1, 10);

/// What may stand in place of a time.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;

pub(crate) fn handle(core: &mut Core, call: &Call, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let committed = request.isolation_level == 1;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let answer = |asked: &ListOffsetsPartition| {
            let outcome = find(core, call, &topic.name, asked, committed);
            let found = outcome.unwrap_or(Found { timestamp: -1, offset: -1, epoch: -1 });
            ListOffsetsPartitionResponse::default()
                .with_partition_index(asked.partition_index)
                .with_error_code(number(&outcome))
                .with_timestamp(found.timestamp)
                .with_offset(found.offset)
                .with_leader_epoch(if call.version >= 4 { found.epoch } else { -1 })
        };
        let partitions = topic.partitions.iter().map(answer).collect();
        topics.push(
            ListOffsetsTopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions),
        );
    }
    ListOffsetsResponse::default().with_topics(topics)
}

#[derive(Clone, Copy)]
struct Found {
    timestamp: i64,
    offset: i64,
    epoch: i32,
}

fn find(
    core: &Core,
    call: &Call,
    topic: &str,
    asked: &ListOffsetsPartition,
    committed: bool,
) -> Result<Found, Code> {
    call.forced()?;
    let partition = core.led(topic, asked.partition_index, call.node)?;
    check_epoch(partition, asked.current_leader_epoch)?;
    let bound = if committed { partition.stable() } else { partition.end() };
    let at = |timestamp, offset| {
        let epoch = partition.epochs().of(offset).unwrap_or(partition.leader_epoch);
        Found { timestamp, offset, epoch }
    };
    let nothing = Found { timestamp: -1, offset: -1, epoch: -1 };
    match asked.timestamp {
        LATEST => Ok(Found { epoch: partition.leader_epoch, ..at(-1, bound) }),
        EARLIEST | EARLIEST_LOCAL => Ok(at(-1, partition.start())),
        LATEST_TIERED => Ok(nothing),
        MAX_TIMESTAMP => {
            Ok(records::newest(partition.batches())
                .map_or(nothing, |(offset, timestamp)| at(timestamp, offset)))
        }
        time if time >= 0 => {
            let found = records::at_or_after(partition.batches(), partition.start(), time);
            let below = found.filter(|&(offset, _)| offset < bound);
            Ok(below.map_or(nothing, |(offset, timestamp)| at(timestamp, offset)))
        }
        _ => Err(Code::UnsupportedVersion),
    }
}
