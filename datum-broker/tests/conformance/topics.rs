//! Versions, metadata, topics and their settings.

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, CreatePartitionsRequest, DeleteTopicsRequest,
    DescribeConfigsRequest, IncrementalAlterConfigsRequest, MetadataRequest, ResponseHeader,
};
use kafka_protocol::protocol::Decodable;

use crate::client::{text, topic_name, until};
use crate::target::Target;

crate::cases! {
    an_unspoken_version_of_api_versions_is_answered_in_version_0
    an_unspoken_version_of_anything_else_closes_the_connection
    transactions_of_the_second_protocol_are_told
    topics_are_refused_for_what_is_wrong_with_them
    unknown_topics_are_told_by_name_and_by_id
    a_topic_grows_and_does_not_shrink
    a_deleted_topic_is_gone_and_its_successor_has_another_id
    settings_are_described_and_changed
}

fn an_unspoken_version_of_api_versions_is_answered_in_version_0(target: &Target) {
    let mut client = target.client();
    client.send_raw(ApiKey::ApiVersions, 99);
    let mut frame = client.frame();
    ResponseHeader::decode(&mut frame, 0).expect("a header");
    let answer = ApiVersionsResponse::decode(&mut frame, 0).expect("version 0");
    assert_eq!(answer.error_code, 35);
    let own = answer.api_keys.iter().find(|row| row.api_key == 18).expect("its own versions are told");
    assert!(own.min_version == 0 && own.max_version >= 4, "{own:?}");
}

fn an_unspoken_version_of_anything_else_closes_the_connection(target: &Target) {
    let mut client = target.client();
    client.send_raw(ApiKey::Metadata, 99);
    assert!(client.is_closed());
}

fn transactions_of_the_second_protocol_are_told(target: &Target) {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("conformance"))
        .with_client_software_version(text("1"));
    let answer = target.client().call(4, &request);
    let level = answer.finalized_features.iter().find(|feature| &*feature.name == "transaction.version");
    assert_eq!(level.map(|feature| feature.max_version_level), Some(2));
    let produce = answer.api_keys.iter().find(|row| row.api_key == 0).expect("Produce is served");
    assert_eq!(produce.min_version, 0, "librdkafka takes a higher one for an old broker");
    let tagged = target.client().call(3, &request);
    assert_eq!(tagged.error_code, 0);
}

fn topics_are_refused_for_what_is_wrong_with_them(target: &Target) {
    let mut client = target.client();
    let name = target.topic(1, &[]);
    assert_eq!(client.create_topic(&name, 1, &[]).0, 36, "exists");
    assert_eq!(client.create_topic("a/b", 1, &[]).0, 17, "name");
    assert_eq!(client.create_topic("..", 1, &[]).0, 17, "name");
    assert_eq!(client.create_topic(&target.name("none"), 0, &[]).0, 37, "partitions");
    assert_eq!(client.create_topic(&target.name("odd"), 1, &[("no.such.setting", "1")]).0, 40);
    assert_eq!(client.create_topic(&target.name("odd"), 1, &[("retention.ms", "soon")]).0, 40);
}

fn unknown_topics_are_told_by_name_and_by_id(target: &Target) {
    let by_name = MetadataRequestTopic::default().with_name(Some(topic_name(&target.name("unknown"))));
    let by_id = MetadataRequestTopic::default().with_name(None).with_topic_id(uuid::Uuid::from_u128(77));
    let mut client = target.client();
    let mut code = |version, topic| {
        let request =
            MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false);
        client.call(version, &request).topics[0].error_code
    };
    assert_eq!(code(9, by_name.clone()), 3);
    assert_eq!(code(12, by_name), 3);
    assert_eq!(code(12, by_id), 100);
    let bad = MetadataRequestTopic::default().with_name(Some(topic_name("a/b")));
    assert_eq!(code(12, bad), 17);
    let nothing = client.call(9, &MetadataRequest::default().with_topics(Some(Vec::new())));
    assert!(nothing.topics.is_empty() && !nothing.brokers.is_empty());
}

fn a_topic_grows_and_does_not_shrink(target: &Target) {
    let name = target.topic(2, &[]);
    let mut client = target.client();
    let mut grow = |topic: &str, count| {
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name(topic))
            .with_count(count)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        client.call(3, &request).results[0].error_code
    };
    assert_eq!(grow(&name, 2), 37);
    assert_eq!(grow(&name, 1), 37);
    assert_eq!(grow(&name, 5), 0);
    assert_eq!(grow(&target.name("unknown"), 5), 3);
    until("all partitions are told", || {
        let asked = MetadataRequestTopic::default().with_name(Some(topic_name(&name)));
        let answer = target.client().call(12, &MetadataRequest::default().with_topics(Some(vec![asked])));
        (answer.topics[0].partitions.len() == 5).then_some(())
    });
}

fn a_deleted_topic_is_gone_and_its_successor_has_another_id(target: &Target) {
    let name = target.topic(1, &[]);
    let mut client = target.client();
    let old = client.topic_id(&name);
    let mut delete = |state: DeleteTopicState| {
        let request = DeleteTopicsRequest::default().with_topics(vec![state]).with_timeout_ms(10_000);
        client.call(6, &request).responses[0].error_code
    };
    assert_eq!(delete(DeleteTopicState::default().with_name(Some(topic_name(&name)))), 0);
    assert_eq!(delete(DeleteTopicState::default().with_name(Some(topic_name(&name)))), 3);
    assert_eq!(delete(DeleteTopicState::default().with_name(None).with_topic_id(old)), 100);
    until("the name is free", || (target.client().create_topic(&name, 1, &[]).0 == 0).then_some(()));
    let new = until("the new id is told", || Some(target.client().topic_id(&name)).filter(|id| *id != old));
    assert_eq!(delete(DeleteTopicState::default().with_name(None).with_topic_id(new)), 0);
}

fn settings_are_described_and_changed(target: &Target) {
    let name = target.topic(1, &[("retention.ms", "-1")]);
    let mut client = target.client();
    let value = |client: &mut crate::client::Client, setting: &str| {
        let asked = DescribeConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(&name))
            .with_configuration_keys(Some(vec![text(setting)]));
        let mut answer = client.call(4, &DescribeConfigsRequest::default().with_resources(vec![asked]));
        let entry = answer.results.remove(0).configs.remove(0);
        (entry.value.map(|value| value.to_string()).unwrap_or_default(), entry.config_source)
    };
    assert_eq!(value(&mut client, "retention.ms"), ("-1".to_owned(), 1));
    assert_eq!(value(&mut client, "cleanup.policy"), ("delete".to_owned(), 5));
    let mut change = |setting: &str, operation, to: Option<&str>| {
        let config = AlterableConfig::default()
            .with_name(text(setting))
            .with_config_operation(operation)
            .with_value(to.map(text));
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(&name))
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        client.call(1, &request).responses[0].error_code
    };
    assert_eq!(change("cleanup.policy", 2, Some("compact")), 0, "append");
    assert_eq!(change("retention.ms", 1, None), 0, "delete");
    assert_eq!(change("retention.ms", 0, Some("never")), 40);
    until("the change is told", || {
        let mut client = target.client();
        let compacts = value(&mut client, "cleanup.policy").0.split(',').any(|policy| policy == "compact");
        (compacts && value(&mut client, "retention.ms").1 == 5).then_some(())
    });
}
