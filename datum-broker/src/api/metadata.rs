//! Metadata: nodes, topics by name or id, and who leads which partition.

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;
use crate::topics::check_name;

/// v10 adds topic ids to answers, v12 to requests, v13 an error for the whole answer.
pub(crate) const VERSIONS: Range = (0, 13);

/// "Not asked for" of authorized operations.
const NO_OPERATIONS: i32 = i32::MIN;

pub(crate) fn handle(core: &mut Core, call: &Call, request: MetadataRequest) -> MetadataResponse {
    let may_create = call.version < 4 || request.allow_auto_topic_creation;
    let topics = match request.topics {
        Some(asked) if call.version > 0 || !asked.is_empty() => {
            asked.into_iter().map(|topic| one(core, call, topic, may_create)).collect()
        }
        _ => {
            let names: Vec<_> = core.topics.iter().map(|(name, _)| name.to_owned()).collect();
            names.iter().map(|name| describe(core, call, name)).collect()
        }
    };
    let broker = |node: &crate::core::Node| {
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(node.id))
            .with_host(StrBytes::from_string(node.host.clone()))
            .with_port(i32::from(node.port))
    };
    MetadataResponse::default()
        .with_brokers(core.nodes.iter().map(broker).collect())
        .with_cluster_id(Some(StrBytes::from_string(core.cluster_id.clone())))
        .with_controller_id(BrokerId(core.nodes[0].id))
        .with_topics(topics)
        .with_cluster_authorized_operations(NO_OPERATIONS)
}

fn one(core: &mut Core, call: &Call, asked: MetadataRequestTopic, may_create: bool) -> MetadataResponseTopic {
    if let Some(name) = asked.name {
        core.auto_create(&name, may_create);
        return describe(core, call, &name);
    }
    match core.topics.name_of(asked.topic_id).map(str::to_owned) {
        Some(name) => describe(core, call, &name),
        None => refused(Code::UnknownTopicId).with_topic_id(asked.topic_id),
    }
}

fn describe(core: &Core, call: &Call, name: &str) -> MetadataResponseTopic {
    let named = Some(TopicName(StrBytes::from_string(name.to_owned())));
    if let Err(code) = call.forced() {
        return refused(code).with_name(named);
    }
    let Some(topic) = core.topics.get(name) else {
        let code = check_name(name).err().unwrap_or(Code::UnknownTopicOrPartition);
        return refused(code).with_name(named);
    };
    let partition = |(index, partition): (i32, &crate::log::partition::Partition)| {
        let online = core.nodes.iter().any(|node| node.id == partition.leader);
        let leader = if online { partition.leader } else { -1 };
        let outcome = if online { Ok(()) } else { Err(Code::LeaderNotAvailable) };
        MetadataResponsePartition::default()
            .with_error_code(number(&outcome))
            .with_partition_index(index)
            .with_leader_id(BrokerId(leader))
            .with_leader_epoch(partition.leader_epoch)
            .with_replica_nodes(vec![BrokerId(partition.leader)])
            .with_isr_nodes(vec![BrokerId(partition.leader)])
    };
    MetadataResponseTopic::default()
        .with_name(named)
        .with_topic_id(topic.id)
        .with_topic_authorized_operations(NO_OPERATIONS)
        .with_partitions((0..).zip(&topic.partitions).map(partition).collect())
}

fn refused(code: Code) -> MetadataResponseTopic {
    MetadataResponseTopic::default()
        .with_error_code(code.code())
        .with_topic_authorized_operations(NO_OPERATIONS)
}
