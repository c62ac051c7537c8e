//! JoinGroup; answered at the end of the join barrier.

use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::group::{Answer, JoinAnswer, JoinRequest};
use crate::server::Shared;

/// v4 gives member ids out first, v5 adds static members, v9 lets a returning leader skip the assignment.
pub(crate) const VERSIONS: Range = (0, 9);

pub(crate) async fn handle(shared: &Shared, call: &Call, request: JoinGroupRequest) -> JoinGroupResponse {
    let member = request.member_id.to_string();
    let asked = shared.with(|locked, now| {
        call.forced()?;
        locked.core.coordinates(&request.group_id, call.node)?;
        let (ticket, answer) = locked.ticket();
        locked.core.groups.join(machine_request(call, request), ticket, now);
        Ok(answer)
    });
    let answer = match asked {
        Ok(answer) => answer.await.ok(),
        Err(code) => Some(Answer::Join(JoinAnswer { member: member.clone(), outcome: Err(code) })),
    };
    match answer {
        Some(Answer::Join(answer)) => response(call, answer),
        // The broker is being stopped.
        _ => response(call, JoinAnswer { member, outcome: Err(Code::CoordinatorNotAvailable) }),
    }
}

fn machine_request(call: &Call, request: JoinGroupRequest) -> JoinRequest {
    let session_timeout = i64::from(request.session_timeout_ms);
    // v0 knows only one timeout.
    let rebalance_timeout =
        if call.version == 0 { session_timeout } else { i64::from(request.rebalance_timeout_ms) };
    JoinRequest {
        group: request.group_id.to_string(),
        member: request.member_id.to_string(),
        known_id_required: call.version >= 4 && request.group_instance_id.is_none(),
        may_skip_assignment: call.version >= 9,
        instance: request.group_instance_id.map(|id| id.to_string()),
        client_id: call.client_id.clone(),
        host: call.host.clone(),
        session_timeout,
        rebalance_timeout: rebalance_timeout.max(0),
        protocol_type: request.protocol_type.to_string(),
        protocols: request.protocols.into_iter().map(|p| (p.name.to_string(), p.metadata)).collect(),
    }
}

fn response(call: &Call, answer: JoinAnswer) -> JoinGroupResponse {
    let response = JoinGroupResponse::default().with_member_id(StrBytes::from_string(answer.member));
    let joined = match answer.outcome {
        Ok(joined) => joined,
        Err(code) => {
            // Before v7 the protocol's name cannot be null.
            let none = (call.version < 7).then(StrBytes::new);
            return response.with_error_code(code.code()).with_generation_id(-1).with_protocol_name(none);
        }
    };
    let members = joined.members.into_iter().map(|(id, instance, metadata)| {
        JoinGroupResponseMember::default()
            .with_member_id(StrBytes::from_string(id))
            .with_group_instance_id(instance.filter(|_| call.version >= 5).map(StrBytes::from_string))
            .with_metadata(metadata)
    });
    response
        .with_generation_id(joined.generation)
        .with_protocol_type(joined.protocol_type.filter(|_| call.version >= 7).map(StrBytes::from_string))
        .with_protocol_name(Some(StrBytes::from_string(joined.protocol.unwrap_or_default())))
        .with_leader(StrBytes::from_string(joined.leader))
        .with_skip_assignment(joined.skip_assignment)
        .with_members(members.collect())
}
