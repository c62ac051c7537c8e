//! CreateTopics.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::core::Core;
use crate::topics::{SETTINGS, TopicConfig, check_name};

/// v4 lets counts default, v5 answers with settings, v7 with the topic's id.
pub(crate) const VERSIONS: Range = (2, 7);

pub(crate) fn handle(core: &mut Core, call: &Call, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let mut seen: BTreeMap<StrBytes, usize> = BTreeMap::new();
    for topic in &request.topics {
        *seen.entry(topic.name.0.clone()).or_default() += 1;
    }
    let create = |topic: CreatableTopic| {
        let twice = seen.get(&topic.name.0) > Some(&1);
        let result = CreatableTopicResult::default().with_name(topic.name.clone()).with_num_partitions(-1);
        let outcome = match (call.forced(), twice) {
            (Err(code), _) => Err((code, None)),
            (Ok(()), true) => {
                Err((Code::InvalidRequest, Some("the topic is named twice in the request".to_owned())))
            }
            (Ok(()), false) => create_one(core, &topic, request.validate_only, result.clone()),
        };
        outcome.unwrap_or_else(|(code, why)| {
            let why = why.unwrap_or_else(|| code.meaning().to_owned());
            result
                .with_error_code(code.code())
                .with_replication_factor(-1)
                .with_error_message(Some(StrBytes::from_string(why)))
        })
    };
    let topics = request.topics.into_iter().map(create).collect();
    CreateTopicsResponse::default().with_topics(topics)
}

fn create_one(
    core: &mut Core,
    topic: &CreatableTopic,
    only_check: bool,
    result: CreatableTopicResult,
) -> Result<CreatableTopicResult, (Code, Option<String>)> {
    let refuse = |code| (code, None);
    check_name(&topic.name).map_err(refuse)?;
    if core.topics.get(&topic.name).is_some() {
        return Err((Code::TopicAlreadyExists, Some(format!("Topic '{}' already exists.", topic.name.0))));
    }
    let partitions = match (topic.assignments.is_empty(), topic.num_partitions) {
        (false, _) => i32::try_from(topic.assignments.len()).unwrap_or(i32::MAX),
        (true, -1) => core.settings.default_partitions,
        (true, count) => count,
    };
    if partitions < 1 {
        return Err(refuse(Code::InvalidPartitions));
    }
    let replicas = if topic.replication_factor == -1 { 1 } else { topic.replication_factor };
    if topic.assignments.is_empty()
        && !usize::try_from(replicas).is_ok_and(|n| (1..=core.nodes.len()).contains(&n))
    {
        return Err(refuse(Code::InvalidReplicationFactor));
    }
    let set = |(name, value): (&StrBytes, &StrBytes)| (name.to_string(), value.to_string());
    let overrides =
        topic.configs.iter().filter_map(|c| c.value.as_ref().map(|value| set((&c.name, value)))).collect();
    let config = TopicConfig::new(overrides).map_err(|why| (Code::InvalidConfig, Some(why)))?;
    let told = SETTINGS.iter().map(|setting| {
        let (value, overridden) = config.value(setting);
        CreatableTopicConfigs::default()
            .with_name(StrBytes::from_static_str(setting.name))
            .with_value(Some(StrBytes::from_string(value.to_owned())))
            .with_config_source(if overridden { 1 } else { 5 })
    });
    let result = result
        .with_num_partitions(partitions)
        .with_replication_factor(replicas)
        .with_configs(Some(told.collect()));
    if only_check {
        return Ok(result);
    }
    let id = core.create_topic(&topic.name, partitions, config).map_err(refuse)?;
    Ok(result.with_topic_id(id))
}
