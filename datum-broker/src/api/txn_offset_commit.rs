//! TxnOffsetCommit: offsets that count once their transaction commits.

use kafka_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequestPartition;
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use kafka_protocol::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};

use crate::api::offset_commit::store;
use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;
use crate::group::{Committed, Committer};
use crate::txn::{Member, Producer};

/// v2 adds the leader epoch, v3 member and generation (KIP-447), v5 adds the group to the transaction by itself.
pub(crate) const VERSIONS: Range = (0, 5);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    now: i64,
    request: TxnOffsetCommitRequest,
) -> TxnOffsetCommitResponse {
    let checked = check(core, call, now, &request);
    let group = &request.group_id;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut store = |asked: &TxnOffsetCommitRequestPartition| {
            let metadata = asked.committed_metadata.as_deref().unwrap_or_default();
            let offset = Committed {
                offset: asked.committed_offset,
                leader_epoch: asked.committed_leader_epoch,
                metadata: metadata.to_owned(),
                order: 0,
            };
            let position = (&*topic.name.0, asked.partition_index);
            let outcome =
                checked.and_then(|()| store(core, group, position, offset, Some(request.producer_id.0)));
            TxnOffsetCommitResponsePartition::default()
                .with_partition_index(asked.partition_index)
                .with_error_code(number(&outcome))
        };
        let partitions = topic.partitions.iter().map(&mut store).collect();
        topics.push(
            TxnOffsetCommitResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions),
        );
    }
    TxnOffsetCommitResponse::default().with_topics(topics)
}

fn check(core: &mut Core, call: &Call, now: i64, request: &TxnOffsetCommitRequest) -> Result<(), Code> {
    call.forced()?;
    let group = &request.group_id;
    core.coordinates(group, call.node)?;
    let producer = Producer { id: request.producer_id.0, epoch: request.producer_epoch };
    let member = Member::Group(group);
    if call.version >= 5 {
        core.txns.add(&request.transactional_id, producer, &[member], now)?;
    } else {
        core.txns.verify(&request.transactional_id, producer, member)?;
    }
    let who = Committer {
        member: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id,
    };
    core.groups.check_commit(group, who, true, now)
}
