//! OffsetFetch: of one group, or of several.

use std::collections::BTreeMap;

use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{GroupId, OffsetFetchRequest, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;
use crate::group::Committed;

/// v2 asks for everything with null, v5 tells the leader epoch, v7 can require stable offsets, v8 asks for several
/// groups.
pub(crate) const VERSIONS: Range = (1, 9);

pub(crate) fn handle(core: &mut Core, call: &Call, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let stable = request.require_stable;
    if call.version >= 8 {
        let groups = request.groups.into_iter().map(|asked| {
            let topics = asked.topics.map(|topics| {
                topics.into_iter().map(|topic| (topic.name.to_string(), topic.partition_indexes)).collect()
            });
            several(core, call, asked.group_id, topics, stable)
        });
        return OffsetFetchResponse::default().with_groups(groups.collect());
    }
    let topics = request
        .topics
        .map(|topics| topics.into_iter().map(|t| (t.name.to_string(), t.partition_indexes)).collect());
    let found = find(core, call, &request.group_id, topics, stable);
    let code = number(&found);
    let topics = found.unwrap_or_default().into_iter().map(|(name, partitions)| {
        let partitions = partitions.into_iter().map(|(index, offset)| {
            let told = Told::from(offset);
            OffsetFetchResponsePartition::default()
                .with_partition_index(index)
                .with_error_code(told.code)
                .with_committed_offset(told.offset)
                .with_committed_leader_epoch(told.leader_epoch)
                .with_metadata(Some(told.metadata))
        });
        OffsetFetchResponseTopic::default().with_name(named(name)).with_partitions(partitions.collect())
    });
    OffsetFetchResponse::default().with_topics(topics.collect()).with_error_code(if call.version >= 2 {
        code
    } else {
        0
    })
}

type Asked = Vec<(String, Vec<i32>)>;
type Offset = Result<Option<Committed>, Code>;
type Found = BTreeMap<String, Vec<(i32, Offset)>>;

fn several(
    core: &Core,
    call: &Call,
    id: GroupId,
    topics: Option<Asked>,
    stable: bool,
) -> OffsetFetchResponseGroup {
    let found = find(core, call, &id, topics, stable);
    let code = number(&found);
    let topics = found.unwrap_or_default().into_iter().map(|(name, partitions)| {
        let partitions = partitions.into_iter().map(|(index, offset)| {
            let told = Told::from(offset);
            OffsetFetchResponsePartitions::default()
                .with_partition_index(index)
                .with_error_code(told.code)
                .with_committed_offset(told.offset)
                .with_committed_leader_epoch(told.leader_epoch)
                .with_metadata(Some(told.metadata))
        });
        OffsetFetchResponseTopics::default().with_name(named(name)).with_partitions(partitions.collect())
    });
    OffsetFetchResponseGroup::default().with_group_id(id).with_topics(topics.collect()).with_error_code(code)
}

fn find(core: &Core, call: &Call, group: &str, asked: Option<Asked>, stable: bool) -> Result<Found, Code> {
    call.forced()?;
    core.coordinates(group, call.node)?;
    let offsets = core.groups.get(group).map(|group| &group.offsets);
    let positions: Vec<(String, i32)> = match asked {
        Some(topics) => topics
            .into_iter()
            .flat_map(|(topic, indexes)| indexes.into_iter().map(move |index| (topic.clone(), index)))
            .collect(),
        None => offsets.map(|offsets| offsets.committed.keys().cloned().collect()).unwrap_or_default(),
    };
    let mut found = Found::new();
    for position in positions {
        let unstable = stable && offsets.is_some_and(|offsets| offsets.is_unstable(&position));
        let offset = match offsets {
            _ if unstable => Err(Code::UnstableOffsetCommit),
            Some(offsets) => Ok(offsets.committed.get(&position).cloned()),
            None => Ok(None),
        };
        found.entry(position.0).or_default().push((position.1, offset));
    }
    Ok(found)
}

/// An offset as it is told: -1 and no text where there is none.
struct Told {
    code: i16,
    offset: i64,
    leader_epoch: i32,
    metadata: StrBytes,
}

impl From<Offset> for Told {
    fn from(offset: Offset) -> Self {
        let code = number(&offset);
        match offset.ok().flatten() {
            Some(found) => Self {
                code,
                offset: found.offset,
                leader_epoch: found.leader_epoch,
                metadata: StrBytes::from_string(found.metadata),
            },
            None => Self { code, offset: -1, leader_epoch: -1, metadata: StrBytes::new() },
        }
    }
}

fn named(name: String) -> TopicName {
    TopicName(StrBytes::from_string(name))
}
