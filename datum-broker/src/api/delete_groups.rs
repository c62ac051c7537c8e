//! DeleteGroups: empty groups, with their offsets.

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse, GroupId};

use crate::api::{Call, Range};
use crate::code::number;
use crate::core::Core;

pub(crate) const VERSIONS: Range = (0, 2);

pub(crate) fn handle(core: &mut Core, call: &Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let delete = |id: GroupId| {
        let outcome = call
            .forced()
            .and_then(|()| core.coordinates(&id, call.node))
            .and_then(|()| core.groups.delete(&id));
        DeletableGroupResult::default().with_error_code(number(&outcome)).with_group_id(id)
    };
    let results = request.groups_names.into_iter().map(delete).collect();
    DeleteGroupsResponse::default().with_results(results)
}
