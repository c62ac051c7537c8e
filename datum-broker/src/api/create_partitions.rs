//! CreatePartitions: growth of a topic.

use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::core::Core;

pub(crate) const VERSIONS: Range = (0, 3);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let nodes: Vec<_> = core.nodes.iter().map(|node| node.id).collect();
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let outcome = call.forced().and_then(|()| {
            let have = core.topics.get(&topic.name).ok_or(Code::UnknownTopicOrPartition)?.partitions.len();
            if request.validate_only {
                let grows = usize::try_from(topic.count).is_ok_and(|count| count > have);
                return if grows { Ok(()) } else { Err(Code::InvalidPartitions) };
            }
            core.topics.grow(&topic.name, topic.count, &nodes)
        });
        let result = CreatePartitionsTopicResult::default().with_name(topic.name);
        results.push(match outcome {
            Ok(()) => result,
            Err(code) => result
                .with_error_code(code.code())
                .with_error_message(Some(StrBytes::from_static_str(code.meaning()))),
        });
    }
    CreatePartitionsResponse::default().with_results(results)
}
