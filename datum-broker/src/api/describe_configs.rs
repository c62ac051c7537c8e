//! DescribeConfigs: settings of topics, and a few of the nodes.

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::clock::millis;
use crate::code::Code;
use crate::core::Core;
use crate::topics::{Kind, SETTINGS};

/// v3 adds documentation and types.
pub(crate) const VERSIONS: Range = (1, 4);

/// Kinds of resources.
pub(crate) const TOPIC: i8 = 2;
pub(crate) const BROKER: i8 = 4;

/// Where a value comes from.
const DYNAMIC_TOPIC: i8 = 1;
const STATIC_BROKER: i8 = 4;
const DEFAULT: i8 = 5;

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let synonyms = request.include_synonyms;
    let describe = |asked: DescribeConfigsResource| {
        let result = DescribeConfigsResult::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name.clone());
        match call.forced().and_then(|()| configs(core, &asked, synonyms)) {
            Ok(configs) => result.with_configs(configs),
            Err(code) => result
                .with_error_code(code.code())
                .with_error_message(Some(StrBytes::from_static_str(code.meaning()))),
        }
    };
    DescribeConfigsResponse::default().with_results(request.resources.into_iter().map(describe).collect())
}

fn configs(
    core: &Core,
    asked: &DescribeConfigsResource,
    synonyms: bool,
) -> Result<Vec<DescribeConfigsResourceResult>, Code> {
    let all = match asked.resource_type {
        TOPIC => of_topic(core, &asked.resource_name)?,
        BROKER => of_node(core),
        _ => return Err(Code::InvalidRequest),
    };
    let wanted = |name: &str| {
        asked
            .configuration_keys
            .as_ref()
            .is_none_or(|keys| keys.is_empty() || keys.iter().any(|key| &**key == name))
    };
    let told = |entry: Entry| {
        let value = Some(StrBytes::from_string(entry.value));
        let name = StrBytes::from_static_str(entry.name);
        let synonym = DescribeConfigsSynonym::default()
            .with_name(name.clone())
            .with_value(value.clone())
            .with_source(entry.source);
        DescribeConfigsResourceResult::default()
            .with_name(name)
            .with_value(value)
            .with_read_only(entry.source == STATIC_BROKER)
            .with_config_source(entry.source)
            .with_config_type(entry.kind as i8)
            .with_synonyms(if synonyms { vec![synonym] } else { Vec::new() })
    };
    Ok(all.into_iter().filter(|entry| wanted(entry.name)).map(told).collect())
}

struct Entry {
    name: &'static str,
    value: String,
    source: i8,
    kind: Kind,
}

fn of_topic(core: &Core, name: &str) -> Result<Vec<Entry>, Code> {
    let topic = core.topics.get(name).ok_or(Code::UnknownTopicOrPartition)?;
    let entry = |setting: &'static crate::topics::Setting| {
        let (value, overridden) = topic.config.value(setting);
        let source = if overridden { DYNAMIC_TOPIC } else { DEFAULT };
        Entry { name: setting.name, value: value.to_owned(), source, kind: setting.kind }
    };
    Ok(SETTINGS.iter().map(entry).collect())
}

fn of_node(core: &Core) -> Vec<Entry> {
    let settings = &core.settings;
    let entry = |name, value: String, kind| Entry { name, value, source: STATIC_BROKER, kind };
    let long = |name, value: i64| entry(name, value.to_string(), Kind::Long);
    vec![
        entry("auto.create.topics.enable", settings.auto_create.is_some().to_string(), Kind::Boolean),
        long("group.initial.rebalance.delay.ms", millis(settings.initial_rebalance_delay)),
        long("group.max.session.timeout.ms", millis(settings.max_session)),
        long("group.min.session.timeout.ms", millis(settings.min_session)),
        entry("num.partitions", settings.default_partitions.to_string(), Kind::Int),
        entry("offset.metadata.max.bytes", settings.max_offset_metadata.to_string(), Kind::Int),
        long("producer.id.expiration.ms", millis(settings.producer_expiry)),
        entry("socket.request.max.bytes", settings.max_request.to_string(), Kind::Int),
        long("transaction.max.timeout.ms", millis(settings.max_transaction_timeout)),
    ]
}
