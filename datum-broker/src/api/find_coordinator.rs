//! FindCoordinator: which node answers for a group or a transactional id.

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::{Core, Node};

/// v4 asks for several keys at once; v6 adds share groups, which are not served.
pub(crate) const VERSIONS: Range = (0, 6);

/// Kinds of keys: a group, a transactional id.
const KINDS: std::ops::RangeInclusive<i8> = 0..=1;

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let find = |key: &str| -> Result<Node, Code> {
        call.forced()?;
        if KINDS.contains(&request.key_type) {
            Ok(core.coordinator(key).clone())
        } else {
            Err(Code::InvalidRequest)
        }
    };
    if call.version < 4 {
        let found = find(&request.key);
        let code = number(&found);
        let node = found.unwrap_or_else(|_| nobody());
        return FindCoordinatorResponse::default()
            .with_error_code(code)
            .with_node_id(BrokerId(node.id))
            .with_host(StrBytes::from_string(node.host))
            .with_port(i32::from(node.port));
    }
    let coordinator = |key: StrBytes| {
        let found = find(&key);
        let code = number(&found);
        let node = found.unwrap_or_else(|_| nobody());
        Coordinator::default()
            .with_key(key)
            .with_error_code(code)
            .with_node_id(BrokerId(node.id))
            .with_host(StrBytes::from_string(node.host))
            .with_port(if node.id < 0 { -1 } else { i32::from(node.port) })
    };
    FindCoordinatorResponse::default()
        .with_coordinators(request.coordinator_keys.into_iter().map(coordinator).collect())
}

fn nobody() -> Node {
    Node { id: -1, host: String::new(), port: 0 }
}
