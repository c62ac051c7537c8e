//! OffsetCommit.

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;
use crate::group::{Committed, Committer};

/// v6 adds the leader epoch, v7 static members.
pub(crate) const VERSIONS: Range = (2, 9);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    now: i64,
    request: OffsetCommitRequest,
) -> OffsetCommitResponse {
    let group = &request.group_id;
    let who = Committer {
        member: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id_or_member_epoch,
    };
    let checked = call
        .forced()
        .and_then(|()| core.coordinates(group, call.node))
        .and_then(|()| core.groups.check_commit(group, who, false, now));
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut store = |asked: &OffsetCommitRequestPartition| {
            let metadata = asked.committed_metadata.as_deref().unwrap_or_default();
            let offset = Committed {
                offset: asked.committed_offset,
                leader_epoch: asked.committed_leader_epoch,
                metadata: metadata.to_owned(),
                order: 0,
            };
            let outcome =
                checked.and_then(|()| store(core, group, (&topic.name, asked.partition_index), offset, None));
            OffsetCommitResponsePartition::default()
                .with_partition_index(asked.partition_index)
                .with_error_code(number(&outcome))
        };
        let partitions = topic.partitions.iter().map(&mut store).collect();
        topics.push(
            OffsetCommitResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions),
        );
    }
    core.note_commit();
    OffsetCommitResponse::default().with_topics(topics)
}

/// Stores one offset after the checks that are its own.
pub(crate) fn store(
    core: &mut Core,
    group: &str,
    (topic, index): (&str, i32),
    offset: Committed,
    producer_id: Option<i64>,
) -> Result<(), Code> {
    core.topics.partition(topic, index)?;
    if offset.metadata.len() > core.settings.max_offset_metadata {
        return Err(Code::OffsetMetadataTooLarge);
    }
    core.groups.store(group, (topic.to_owned(), index), offset, producer_id);
    Ok(())
}
