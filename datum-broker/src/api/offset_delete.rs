//! OffsetDelete: single committed offsets.

use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;

pub(crate) const VERSIONS: Range = (0, 0);

pub(crate) fn handle(core: &mut Core, call: &Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
    let group = &request.group_id;
    let checked = call
        .forced()
        .and_then(|()| core.coordinates(group, call.node))
        .and_then(|()| core.groups.get(group).map(|_| ()).ok_or(Code::GroupIdNotFound));
    if checked.is_err() {
        return OffsetDeleteResponse::default().with_error_code(number(&checked));
    }
    let delete = |topic: OffsetDeleteRequestTopic| {
        let partitions = topic.partitions.iter().map(|asked| {
            let outcome = match core.topics.partition(&topic.name, asked.partition_index) {
                Ok(_) => core.groups.delete_offset(group, &topic.name, asked.partition_index),
                Err(code) => Err(code),
            };
            OffsetDeleteResponsePartition::default()
                .with_partition_index(asked.partition_index)
                .with_error_code(number(&outcome))
        });
        let partitions = partitions.collect();
        OffsetDeleteResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions)
    };
    let topics = request.topics.into_iter().map(delete).collect();
    OffsetDeleteResponse::default().with_topics(topics)
}
