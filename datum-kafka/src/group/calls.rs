//! The machine's requests and answers as messages of the wire.

use std::sync::Arc;

use kafka_protocol::{
    messages::{
        GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
        OffsetCommitRequest, OffsetCommitResponse, SyncGroupRequest, SyncGroupResponse,
        join_group_request::JoinGroupRequestProtocol,
        leave_group_request::MemberIdentity,
        offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
        sync_group_request::SyncGroupRequestAssignment,
    },
    protocol::StrBytes,
};

use super::{
    Assignments, CommitOffset, GroupMember, Offsets,
    blob::{read_assignment, read_subscription, write_assignment, write_subscription},
    by_topic,
    membership::{JoinAnswer, MembershipConfig, Offer, Response, SyncAnswer, Trouble},
};
use crate::{
    TopicPartition,
    connection::Connection,
    error::{KafkaError, Result},
    wire::{ErrorCode, WireError},
};

const PROTOCOL_TYPE: &str = "consumer";

pub(super) fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

fn group_id(config: &MembershipConfig) -> GroupId {
    GroupId(text(&config.group))
}

fn instance(config: &MembershipConfig) -> Option<StrBytes> {
    config.instance_id.as_deref().map(text)
}

fn millis(duration: std::time::Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

pub(super) fn join(
    config: &MembershipConfig,
    member_id: &str,
    offers: &[Offer],
    reason: &str,
) -> Result<JoinGroupRequest, WireError> {
    let protocols = offers
        .iter()
        .map(|offer| {
            let protocol = JoinGroupRequestProtocol::default().with_name(text(&offer.protocol));
            Ok(protocol.with_metadata(write_subscription(offer)?))
        })
        .collect::<Result<_, WireError>>()?;
    Ok(JoinGroupRequest::default()
        .with_group_id(group_id(config))
        .with_session_timeout_ms(millis(config.session_timeout))
        .with_rebalance_timeout_ms(millis(config.rebalance_timeout))
        .with_member_id(text(member_id))
        .with_group_instance_id(instance(config))
        .with_protocol_type(text(PROTOCOL_TYPE))
        .with_protocols(protocols)
        .with_reason(Some(text(reason))))
}

pub(super) fn joined(answer: JoinGroupResponse) -> Response {
    let member_id = answer.member_id.to_string();
    let code = ErrorCode::from_code(answer.error_code);
    if !code.is_ok() {
        let member_id = (code == ErrorCode::MemberIdRequired).then_some(member_id);
        return Response::Trouble(Trouble::Code { code, member_id });
    }
    let members = answer
        .members
        .into_iter()
        .map(|member| {
            let id = member.member_id.to_string();
            let instance = member.group_instance_id.map(|id| id.to_string());
            read_subscription(id.clone(), instance.clone(), &member.metadata).unwrap_or_else(|error| {
                tracing::warn!(member = %id, %error, "a member's subscription cannot be read; it gets no partitions");
                GroupMember { id, instance_id: instance, generation: -1, ..GroupMember::default() }
            })
        })
        .collect();
    Response::Joined(JoinAnswer {
        member_id,
        generation: answer.generation_id,
        protocol: answer.protocol_name.unwrap_or_default().to_string(),
        leader: answer.leader.to_string(),
        skip_assignment: answer.skip_assignment,
        members,
    })
}

pub(super) fn sync(
    config: &MembershipConfig,
    member_id: &str,
    generation: i32,
    protocol: &str,
    assignments: &Assignments,
) -> Result<SyncGroupRequest, WireError> {
    let assignments = assignments
        .iter()
        .map(|(id, assignment)| {
            let part = SyncGroupRequestAssignment::default().with_member_id(text(id));
            Ok(part.with_assignment(write_assignment(assignment)?))
        })
        .collect::<Result<_, WireError>>()?;
    Ok(SyncGroupRequest::default()
        .with_group_id(group_id(config))
        .with_generation_id(generation)
        .with_member_id(text(member_id))
        .with_group_instance_id(instance(config))
        .with_protocol_type(Some(text(PROTOCOL_TYPE)))
        .with_protocol_name(Some(text(protocol)))
        .with_assignments(assignments))
}

pub(super) fn synced(answer: &SyncGroupResponse) -> Response {
    let code = ErrorCode::from_code(answer.error_code);
    if !code.is_ok() {
        return Response::Trouble(Trouble::code(code));
    }
    match read_assignment(&answer.assignment) {
        Ok(assignment) => Response::Synced(SyncAnswer { assignment }),
        Err(error) => {
            tracing::warn!(%error, "the leader sent an assignment that cannot be read; it counts as empty");
            Response::Synced(SyncAnswer::default())
        }
    }
}

pub(super) fn heartbeat(config: &MembershipConfig, member_id: &str, generation: i32) -> HeartbeatRequest {
    HeartbeatRequest::default()
        .with_group_id(group_id(config))
        .with_generation_id(generation)
        .with_member_id(text(member_id))
        .with_group_instance_id(instance(config))
}

/// LeaveGroup names the member in a list since version 3, in the head before.
pub(super) fn leave(
    config: &MembershipConfig,
    member_id: &str,
    connection: &Connection,
) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(group_id(config));
    match connection.version_of::<LeaveGroupRequest>() {
        Ok(version) if version >= 3 => request.with_members(vec![
            MemberIdentity::default()
                .with_member_id(text(member_id))
                .with_group_instance_id(instance(config)),
        ]),
        _ => request.with_member_id(text(member_id)),
    }
}

pub(super) fn commit(
    config: &MembershipConfig,
    member_id: &str,
    generation: i32,
    offsets: &Offsets,
) -> OffsetCommitRequest {
    let part = |tp: &TopicPartition, commit: &CommitOffset| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(tp.partition)
            .with_committed_offset(commit.offset)
            .with_committed_leader_epoch(commit.leader_epoch)
            .with_committed_metadata(Some(text(&commit.metadata)))
    };
    let topics = by_topic(offsets, part)
        .into_iter()
        .map(|(name, parts)| OffsetCommitRequestTopic::default().with_name(name).with_partitions(parts))
        .collect();
    OffsetCommitRequest::default()
        .with_group_id(group_id(config))
        .with_generation_id_or_member_epoch(generation)
        .with_member_id(text(member_id))
        .with_group_instance_id(instance(config))
        .with_topics(topics)
}

/// The first partition that was refused, if any.
pub(super) fn refused(answer: &OffsetCommitResponse) -> Option<(TopicPartition, ErrorCode)> {
    answer.topics.iter().find_map(|topic| {
        topic.partitions.iter().find_map(|partition| {
            let code = ErrorCode::from_code(partition.error_code);
            let topic: Arc<str> = topic.name.as_str().into();
            (!code.is_ok()).then(|| (TopicPartition::new(topic, partition.partition_index), code))
        })
    })
}

/// What a request that failed on its way tells the machine.
pub(super) fn failed(error: &KafkaError) -> Response {
    let trouble = match error.code() {
        Some(code) => Trouble::code(code),
        None if error.is_connection() || error.is_retriable() => Trouble::Unreachable,
        // Versions that do not fit or a request that cannot be written: no second attempt can help.
        None => Trouble::code(ErrorCode::UnsupportedVersion),
    };
    Response::Trouble(trouble)
}

/// The bare code of an answer that has nothing else.
pub(super) fn plain(code: i16, good: Response) -> Response {
    match ErrorCode::from_code(code) {
        ErrorCode::None => good,
        code => Response::Trouble(Trouble::code(code)),
    }
}
