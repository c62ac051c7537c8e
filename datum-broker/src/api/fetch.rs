//! Fetch: batches from many partitions, at once or as soon as there are enough.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ProducerId};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Notify;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::core::{Core, check_epoch};
use crate::log::batch::Batch;
use crate::log::partition::Partition;
use crate::server::Shared;

/// v7 adds sessions (never granted: the answer names session 0), v9 leader epochs, v12 divergence, v13 topic ids, v16
/// endpoints of new leaders.
pub(crate) const VERSIONS: Range = (4, 17);

/// Errors that stand for the whole answer.
const WHOLE: [Code; 3] =
    [Code::FetchSessionIdNotFound, Code::InvalidFetchSessionEpoch, Code::FetchSessionTopicIdError];

/// Answers when `min_bytes` are there, a partition has an error, or `max_wait_ms` are over.
pub(crate) async fn handle(shared: &Shared, call: &Call, request: FetchRequest) -> FetchResponse {
    if let Some(code) = call.forced.filter(|code| WHOLE.contains(code)) {
        return FetchResponse::default().with_error_code(code.code());
    }
    if call.version >= 7 && request.session_id != 0 {
        return FetchResponse::default().with_error_code(Code::FetchSessionIdNotFound.code());
    }
    let deadline = shared.clock.now_ms() + i64::from(request.max_wait_ms.max(0));
    let data = Arc::new(Notify::new());
    loop {
        let answer = shared.with(|locked, now| {
            let read = read_all(&locked.core, call, &request);
            let enough = read.urgent || read.bytes >= usize::try_from(request.min_bytes).unwrap_or(0);
            if enough || now >= deadline {
                return Some(respond(&locked.core, call, &request, read));
            }
            for (id, index) in wanted(&locked.core, call, &request) {
                locked.wait_for_data(id, index, &data);
            }
            None
        });
        match answer {
            Some(answer) => return answer,
            None => tokio::select! {
                () = data.notified() => {}
                () = shared.clock.sleep_until(deadline) => {}
            },
        }
    }
}

/// What one look at the partitions gave.
struct Read {
    bytes: usize,
    /// Something must be told at once.
    urgent: bool,
    topics: Vec<FetchableTopicResponse>,
    moved: bool,
}

fn name_of<'a>(core: &'a Core, call: &Call, topic: &'a FetchTopic) -> Option<&'a str> {
    if call.version >= 13 { core.topics.name_of(topic.topic_id) } else { Some(&topic.topic) }
}

fn wanted(core: &Core, call: &Call, request: &FetchRequest) -> Vec<(uuid::Uuid, i32)> {
    let ids = request.topics.iter().filter_map(|topic| {
        let name = name_of(core, call, topic)?;
        Some((core.topics.get(name)?.id, topic))
    });
    ids.flat_map(|(id, topic)| topic.partitions.iter().map(move |asked| (id, asked.partition))).collect()
}

fn read_all(core: &Core, call: &Call, request: &FetchRequest) -> Read {
    let committed = request.isolation_level == 1;
    let mut left = usize::try_from(request.max_bytes).unwrap_or(0);
    let mut read = Read { bytes: 0, urgent: request.topics.is_empty(), topics: Vec::new(), moved: false };
    for topic in &request.topics {
        let name = name_of(core, call, topic);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let limit = left.min(usize::try_from(asked.partition_max_bytes).unwrap_or(0));
            let outcome = call.forced().and_then(|()| {
                let name = name.ok_or(Code::UnknownTopicId)?;
                read_one(
                    core.led(name, asked.partition, call.node)?,
                    asked,
                    committed,
                    limit,
                    read.bytes == 0,
                )
            });
            match outcome {
                Ok((data, urgent)) => {
                    let size = data.records.as_ref().map_or(0, Bytes::len);
                    left = left.saturating_sub(size);
                    read.bytes += size;
                    read.urgent |= urgent;
                    partitions.push(data);
                }
                Err(code) => {
                    read.urgent = true;
                    let partition = name.and_then(|name| core.topics.partition(name, asked.partition).ok());
                    let data = refused(call, asked.partition, code, partition);
                    read.moved |= data.current_leader.leader_id.0 >= 0;
                    partitions.push(data);
                }
            }
        }
        let answer = FetchableTopicResponse::default().with_partitions(partitions);
        read.topics.push(if call.version >= 13 {
            answer.with_topic_id(topic.topic_id)
        } else {
            answer.with_topic(topic.topic.clone())
        });
    }
    read
}

fn refused(call: &Call, index: i32, code: Code, partition: Option<&Partition>) -> PartitionData {
    let data = PartitionData::default()
        .with_partition_index(index)
        .with_error_code(code.code())
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_records(Some(Bytes::new()));
    let stale = matches!(code, Code::NotLeaderOrFollower | Code::FencedLeaderEpoch);
    match partition {
        Some(partition) if call.version >= 12 && stale => data.with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(BrokerId(partition.leader))
                .with_leader_epoch(partition.leader_epoch),
        ),
        _ => data,
    }
}

fn read_one(
    partition: &Partition,
    asked: &FetchPartition,
    committed: bool,
    limit: usize,
    first: bool,
) -> Result<(PartitionData, bool), Code> {
    check_epoch(partition, asked.current_leader_epoch)?;
    let bound = if committed { partition.stable() } else { partition.end() };
    let data = PartitionData::default()
        .with_partition_index(asked.partition)
        .with_high_watermark(partition.end())
        .with_last_stable_offset(partition.stable())
        .with_log_start_offset(partition.start());
    if let Some(diverging) = diverging(partition, asked) {
        return Ok((data.with_diverging_epoch(diverging).with_records(Some(Bytes::new())), true));
    }
    let range = partition.read(asked.fetch_offset, bound, limit, first)?;
    let until = range
        .end
        .checked_sub(1)
        .map_or(asked.fetch_offset, |last| partition.batches()[last].last_offset() + 1);
    let aborted = committed.then(|| {
        let entry = |aborted: &crate::log::aborted::Aborted| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(aborted.producer_id))
                .with_first_offset(aborted.first_offset)
        };
        partition.aborted(asked.fetch_offset, until).iter().map(entry).collect()
    });
    let records = join(partition.batches().range(range));
    Ok((data.with_aborted_transactions(aborted).with_records(Some(records)), false))
}

/// The consumer's last record was written by an epoch that, here, ended before it: its log was cut.
fn diverging(partition: &Partition, asked: &FetchPartition) -> Option<EpochEndOffset> {
    let epoch = asked.last_fetched_epoch;
    if epoch < 0 {
        return None;
    }
    let (known, end) = partition.epochs().end_of(epoch, partition.leader_epoch, partition.end())?;
    let differs = known < epoch || end < asked.fetch_offset;
    differs.then(|| EpochEndOffset::default().with_epoch(known).with_end_offset(end))
}

/// Batches one after the other; a single one is shared, not copied.
fn join<'a>(batches: impl Iterator<Item = &'a Batch> + Clone) -> Bytes {
    let mut twice = batches.clone();
    match (twice.next(), twice.next()) {
        (None, _) => Bytes::new(),
        (Some(only), None) => only.bytes.clone(),
        _ => {
            let mut joined = BytesMut::with_capacity(batches.clone().map(|batch| batch.bytes.len()).sum());
            batches.for_each(|batch| joined.extend_from_slice(&batch.bytes));
            joined.freeze()
        }
    }
}

fn respond(core: &Core, call: &Call, _request: &FetchRequest, read: Read) -> FetchResponse {
    let endpoint = |node: &crate::core::Node| {
        NodeEndpoint::default()
            .with_node_id(BrokerId(node.id))
            .with_host(StrBytes::from_string(node.host.clone()))
            .with_port(i32::from(node.port))
    };
    let endpoints =
        if read.moved && call.version >= 16 { core.nodes.iter().map(endpoint).collect() } else { Vec::new() };
    FetchResponse::default().with_responses(read.topics).with_node_endpoints(endpoints)
}
