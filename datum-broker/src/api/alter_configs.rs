//! AlterConfigs: all settings of a topic at once, as librdkafka's tools do.

use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::incremental_alter_configs::put;
use crate::api::{Call, Range};
use crate::core::Core;

pub(crate) const VERSIONS: Range = (0, 2);

pub(crate) fn handle(core: &mut Core, call: &Call, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in request.resources {
        let set =
            resource.configs.iter().filter_map(|c| Some((c.name.to_string(), c.value.as_ref()?.to_string())));
        let overrides = set.collect();
        let outcome = call.forced().map_err(|code| (code, None)).and_then(|()| {
            put(core, resource.resource_type, &resource.resource_name, overrides, request.validate_only)
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
    AlterConfigsResponse::default().with_responses(responses)
}
