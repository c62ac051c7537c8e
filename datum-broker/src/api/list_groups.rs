//! ListGroups.

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::number;
use crate::core::Core;

/// v4 filters by state, v5 by kind of group; all here are classic.
pub(crate) const VERSIONS: Range = (0, 5);

pub(crate) fn handle(core: &mut Core, call: &Call, request: ListGroupsRequest) -> ListGroupsResponse {
    let any = |filter: &[StrBytes], value: &str| {
        filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(value))
    };
    let here = core.groups.iter().filter(|(name, group)| {
        core.coordinates(name, call.node).is_ok()
            && any(&request.states_filter, group.state.name())
            && any(&request.types_filter, "classic")
    });
    let listed = here.map(|(name, group)| {
        ListedGroup::default()
            .with_group_id(GroupId(StrBytes::from_string(name.to_owned())))
            .with_protocol_type(StrBytes::from_string(group.protocol_type.clone().unwrap_or_default()))
            .with_group_state(StrBytes::from_static_str(group.state.name()))
            .with_group_type(StrBytes::from_static_str("classic"))
    });
    ListGroupsResponse::default().with_groups(listed.collect()).with_error_code(number(&call.forced()))
}
