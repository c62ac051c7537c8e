//! DescribeGroups: state and members.

use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::core::Core;
use crate::group::{Group, State};

/// v4 adds static members; from v6 on an unknown group is an error, before that it is "Dead".
pub(crate) const VERSIONS: Range = (0, 6);

pub(crate) fn handle(core: &mut Core, call: &Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
    let describe = |id: GroupId| {
        let answer = DescribedGroup::default().with_group_id(id.clone()).with_authorized_operations(i32::MIN);
        if let Err(code) = call.forced().and_then(|()| core.coordinates(&id, call.node)) {
            return answer.with_error_code(code.code());
        }
        match core.groups.get(&id) {
            Some(group) => describe(group, answer),
            None if call.version >= 6 => answer
                .with_error_code(Code::GroupIdNotFound.code())
                .with_error_message(Some(StrBytes::from_string(format!("Group {} not found.", id.0))))
                .with_group_state(StrBytes::from_static_str("Dead")),
            None => answer.with_group_state(StrBytes::from_static_str("Dead")),
        }
    };
    DescribeGroupsResponse::default().with_groups(request.groups.into_iter().map(describe).collect())
}

fn describe(group: &Group, answer: DescribedGroup) -> DescribedGroup {
    let stable = group.state == State::Stable;
    let protocol = group.protocol.clone().filter(|_| stable).unwrap_or_default();
    let text = |value: &str| StrBytes::from_string(value.to_owned());
    let members = group.members.values().map(|member| {
        DescribedGroupMember::default()
            .with_member_id(text(&member.id))
            .with_group_instance_id(member.instance.as_deref().map(text))
            .with_client_id(text(&member.client_id))
            .with_client_host(text(&member.host))
            .with_member_metadata(member.metadata(&protocol))
            .with_member_assignment(member.assignment.clone())
    });
    answer
        .with_group_state(StrBytes::from_static_str(group.state.name()))
        .with_protocol_type(text(group.protocol_type.as_deref().unwrap_or_default()))
        .with_members(members.collect())
        .with_protocol_data(StrBytes::from_string(protocol.clone()))
}
