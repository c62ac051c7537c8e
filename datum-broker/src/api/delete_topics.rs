//! DeleteTopics, by name or by id.

use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;

/// v6 names topics by id too.
pub(crate) const VERSIONS: Range = (1, 6);

pub(crate) fn handle(core: &mut Core, call: &Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let by_name = |name| DeleteTopicState::default().with_name(Some(name));
    let asked = request.topics.into_iter().chain(request.topic_names.into_iter().map(by_name));
    let responses = asked.map(|topic| delete(core, call, topic)).collect();
    DeleteTopicsResponse::default().with_responses(responses)
}

fn delete(core: &mut Core, call: &Call, asked: DeleteTopicState) -> DeletableTopicResult {
    let known = match &asked.name {
        Some(name) => Some(name.to_string()),
        None => core.topics.name_of(asked.topic_id).map(str::to_owned),
    };
    let id = known.as_deref().and_then(|name| core.topics.get(name)).map_or(asked.topic_id, |topic| topic.id);
    let outcome = call.forced().and_then(|()| match &known {
        Some(name) => core.delete_topic(name),
        None => Err(Code::UnknownTopicId),
    });
    DeletableTopicResult::default()
        .with_name(known.map(|name| TopicName(StrBytes::from_string(name))))
        .with_topic_id(id)
        .with_error_code(number(&outcome))
}
