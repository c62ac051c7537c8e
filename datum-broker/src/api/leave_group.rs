//! LeaveGroup, of one member or of several.

use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use crate::api::{Call, Range};
use crate::code::number;
use crate::core::Core;

/// v3 takes several members out, static ones among them.
pub(crate) const VERSIONS: Range = (0, 5);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    now: i64,
    request: LeaveGroupRequest,
) -> LeaveGroupResponse {
    let checked = call.forced().and_then(|()| core.coordinates(&request.group_id, call.node));
    if checked.is_err() {
        return LeaveGroupResponse::default().with_error_code(number(&checked));
    }
    if call.version < 3 {
        let outcome = core.groups.leave(&request.group_id, &request.member_id, None, now);
        return LeaveGroupResponse::default().with_error_code(number(&outcome));
    }
    let leave = |member: MemberIdentity| {
        let instance = member.group_instance_id.as_deref();
        let outcome = core.groups.leave(&request.group_id, &member.member_id, instance, now);
        MemberResponse::default()
            .with_error_code(number(&outcome))
            .with_member_id(member.member_id)
            .with_group_instance_id(member.group_instance_id)
    };
    let members = request.members.into_iter().map(leave).collect();
    LeaveGroupResponse::default().with_members(members)
}
