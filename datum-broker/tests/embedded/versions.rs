//! Every API in every version that is told: an answer comes, and it can be read in that version.

use datum_broker::Broker;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{
    AlterConfigsRequest, ApiVersionsRequest, CreateTopicsRequest, DeleteGroupsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest, FindCoordinatorRequest, GroupId,
    HeartbeatRequest, InitProducerIdRequest, ListGroupsRequest, ListOffsetsRequest, MetadataRequest,
    OffsetCommitRequest, OffsetFetchRequest, ProducerId,
};

use crate::Running;
use crate::client::{text, topic_name};

#[test]
fn every_version_that_is_told_is_spoken() {
    let running = Running::new(Broker::builder().auto_create_topics(2));
    running.broker.create_topic("t", 1, &[]).expect("new");
    let mut client = running.client();
    for version in 0..=4 {
        let request = ApiVersionsRequest::default();
        assert!(client.call(version, &request).api_keys.len() >= 30);
    }
    for version in 0..=13 {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name("t")));
        let answer = client.call(version, &MetadataRequest::default().with_topics(Some(vec![topic])));
        assert_eq!(answer.topics[0].partitions.len(), 1, "version {version}");
    }
    let all = client.call(0, &MetadataRequest::default().with_topics(Some(Vec::new())));
    assert_eq!(all.topics.len(), 1, "in version 0 an empty list asks for all");
    for version in 2..=7 {
        let topic = CreatableTopic::default()
            .with_name(topic_name(&format!("created-{version}")))
            .with_num_partitions(1)
            .with_replication_factor(1);
        assert_eq!(
            client.call(version, &CreateTopicsRequest::default().with_topics(vec![topic])).topics[0]
                .error_code,
            0
        );
    }
    for version in 1..=10 {
        let partition = ListOffsetsPartition::default().with_timestamp(-1);
        let topic = ListOffsetsTopic::default().with_name(topic_name("t")).with_partitions(vec![partition]);
        let answer = client.call(version, &ListOffsetsRequest::default().with_topics(vec![topic]));
        assert_eq!(answer.topics[0].partitions[0].offset, 0, "version {version}");
    }
    for version in 2..=9 {
        let partition = OffsetCommitRequestPartition::default().with_committed_offset(4);
        let topic =
            OffsetCommitRequestTopic::default().with_name(topic_name("t")).with_partitions(vec![partition]);
        let request = OffsetCommitRequest::default()
            .with_group_id(GroupId(text("g")))
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![topic]);
        assert_eq!(client.call(version, &request).topics[0].partitions[0].error_code, 0, "version {version}");
    }
    for version in 1..=7 {
        let topic =
            OffsetFetchRequestTopic::default().with_name(topic_name("t")).with_partition_indexes(vec![0]);
        let request =
            OffsetFetchRequest::default().with_group_id(GroupId(text("g"))).with_topics(Some(vec![topic]));
        assert_eq!(
            client.call(version, &request).topics[0].partitions[0].committed_offset,
            4,
            "version {version}"
        );
    }
    for version in 8..=9 {
        let topic =
            OffsetFetchRequestTopics::default().with_name(topic_name("t")).with_partition_indexes(vec![0]);
        let group = OffsetFetchRequestGroup::default()
            .with_group_id(GroupId(text("g")))
            .with_topics(Some(vec![topic]));
        let answer = client.call(version, &OffsetFetchRequest::default().with_groups(vec![group]));
        assert_eq!(answer.groups[0].topics[0].partitions[0].committed_offset, 4, "version {version}");
    }
    for version in 0..=3 {
        assert!(client.call(version, &FindCoordinatorRequest::default().with_key(text("g"))).port > 0);
    }
    for version in 4..=6 {
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]);
        assert!(client.call(version, &request).coordinators[0].port > 0);
    }
    for version in 0..=4 {
        let request = HeartbeatRequest::default().with_group_id(GroupId(text("g")));
        assert_eq!(client.call(version, &request).error_code, 25, "version {version}");
    }
    for version in 0..=5 {
        assert_eq!(client.call(version, &ListGroupsRequest::default()).groups.len(), 1, "version {version}");
    }
    for version in 0..=6 {
        let request =
            DescribeGroupsRequest::default().with_groups(vec![GroupId(text("g")), GroupId(text("none"))]);
        assert_eq!(&*client.call(version, &request).groups[0].group_state, "Empty", "version {version}");
    }
    for version in 0..=5 {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1);
        assert!(client.call(version, &request).producer_id.0 >= 0, "version {version}");
    }
    for version in 1..=4 {
        let resources = [(2, "t"), (4, "1")].map(|(kind, name)| {
            let resource =
                DescribeConfigsResource::default().with_resource_type(kind).with_resource_name(text(name));
            resource.with_configuration_keys(None)
        });
        let request =
            DescribeConfigsRequest::default().with_resources(resources.to_vec()).with_include_synonyms(true);
        let answer = client.call(version, &request);
        assert!(answer.results.iter().all(|result| !result.configs.is_empty()), "version {version}");
    }
    for version in 0..=2 {
        assert_eq!(
            client.call(version, &DescribeClusterRequest::default().with_endpoint_type(1)).brokers.len(),
            1
        );
        client.call(version, &AlterConfigsRequest::default());
        let request = DeleteGroupsRequest::default().with_groups_names(vec![GroupId(text("none"))]);
        assert_eq!(client.call(version, &request).results[0].error_code, 69);
    }
}
