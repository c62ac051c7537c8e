//! Heartbeat.

use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use crate::api::{Call, Range};
use crate::code::number;
use crate::core::Core;

/// v3 adds static members.
pub(crate) const VERSIONS: Range = (0, 4);

pub(crate) fn handle(core: &mut Core, call: &Call, now: i64, request: HeartbeatRequest) -> HeartbeatResponse {
    let outcome =
        call.forced().and_then(|()| core.coordinates(&request.group_id, call.node)).and_then(|()| {
            let instance = request.group_instance_id.as_deref();
            core.groups.heartbeat(&request.group_id, &request.member_id, instance, request.generation_id, now)
        });
    HeartbeatResponse::default().with_error_code(number(&outcome))
}
