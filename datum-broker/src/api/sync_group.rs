//! SyncGroup; a follower's is answered once the leader has assigned.

use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::group::{Answer, SyncRequest};
use crate::server::Shared;

/// v3 adds static members, v5 the protocol that the member believes in.
pub(crate) const VERSIONS: Range = (0, 5);

pub(crate) async fn handle(shared: &Shared, call: &Call, request: SyncGroupRequest) -> SyncGroupResponse {
    let asked = shared.with(|locked, now| {
        call.forced()?;
        locked.core.coordinates(&request.group_id, call.node)?;
        let (ticket, answer) = locked.ticket();
        let assignments = request.assignments.into_iter().map(|a| (a.member_id.to_string(), a.assignment));
        let request = SyncRequest {
            group: request.group_id.to_string(),
            member: request.member_id.to_string(),
            instance: request.group_instance_id.map(|id| id.to_string()),
            generation: request.generation_id,
            protocol_type: request.protocol_type.map(|name| name.to_string()),
            protocol: request.protocol_name.map(|name| name.to_string()),
            assignments: assignments.collect(),
        };
        locked.core.groups.sync(request, ticket, now);
        Ok(answer)
    });
    let outcome = match asked {
        Err(code) => Err(code),
        Ok(answer) => match answer.await {
            Ok(Answer::Sync(outcome)) => outcome,
            // The broker is being stopped.
            _ => Err(Code::CoordinatorNotAvailable),
        },
    };
    match outcome {
        Err(code) => SyncGroupResponse::default().with_error_code(code.code()),
        Ok((kind, protocol, assignment)) => SyncGroupResponse::default()
            .with_protocol_type(kind.filter(|_| call.version >= 5).map(StrBytes::from_string))
            .with_protocol_name(protocol.filter(|_| call.version >= 5).map(StrBytes::from_string))
            .with_assignment(assignment),
    }
}
