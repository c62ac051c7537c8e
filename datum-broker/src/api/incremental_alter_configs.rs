//! IncrementalAlterConfigs: single settings of topics.

use std::collections::BTreeMap;

use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::describe_configs::TOPIC;
use crate::api::{Call, Range};
use crate::code::Code;
use crate::core::Core;
use crate::topics::{SETTINGS, TopicConfig};

pub(crate) const VERSIONS: Range = (0, 1);

/// What is done to a setting.
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in request.resources {
        let outcome = call.forced().map_err(|code| (code, None)).and_then(|()| {
            let config = changed(core, &resource)?;
            put(core, resource.resource_type, &resource.resource_name, config, request.validate_only)
        });
        let response = AlterConfigsResourceResponse::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name);
        responses.push(match outcome {
            Ok(()) => response,
            Err((code, why)) => response.with_error_code(code.code()).with_error_message(Some(
                StrBytes::from_string(why.unwrap_or_else(|| code.meaning().to_owned())),
            )),
        });
    }
    IncrementalAlterConfigsResponse::default().with_responses(responses)
}

/// An error code, with words where the code's own do not say enough.
pub(crate) type Refusal = (Code, Option<String>);

/// Gives a topic these settings.
pub(crate) fn put(
    core: &mut Core,
    kind: i8,
    name: &str,
    overrides: BTreeMap<String, String>,
    only_check: bool,
) -> Result<(), Refusal> {
    if kind != TOPIC {
        return Err((Code::InvalidRequest, Some("only topics have settings that can be changed".to_owned())));
    }
    let config = TopicConfig::new(overrides).map_err(|why| (Code::InvalidConfig, Some(why)))?;
    let topic = core.topics.get_mut(name).ok_or((Code::UnknownTopicOrPartition, None))?;
    if !only_check {
        topic.config = config;
        core.note_freed();
    }
    Ok(())
}

fn changed(core: &Core, resource: &AlterConfigsResource) -> Result<BTreeMap<String, String>, Refusal> {
    let topic = core.topics.get(&resource.resource_name);
    let mut overrides = topic.map(|topic| topic.config.overrides.clone()).unwrap_or_default();
    for change in &resource.configs {
        let name = change.name.to_string();
        let value = change.value.as_ref().map(ToString::to_string);
        let default = SETTINGS.iter().find(|known| known.name == name).map_or("", |known| known.default);
        let mut list: Vec<String> = overrides
            .get(&name)
            .map_or(default, String::as_str)
            .split(',')
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect();
        match (change.config_operation, value) {
            (SET, Some(value)) => {
                overrides.insert(name, value);
            }
            (DELETE, _) => {
                overrides.remove(&name);
            }
            (APPEND, Some(value)) => {
                list.extend(value.split(',').map(str::to_owned));
                overrides.insert(name, list.join(","));
            }
            (SUBTRACT, Some(value)) => {
                list.retain(|item| !value.split(',').any(|gone| gone == item));
                overrides.insert(name, list.join(","));
            }
            _ => return Err((Code::InvalidRequest, None)),
        }
    }
    Ok(overrides)
}
