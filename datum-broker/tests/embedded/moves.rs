//! Several nodes: leaders and coordinators that move.

use datum_broker::{AdminError, Broker};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest, MetadataRequest,
    OffsetForLeaderEpochRequest,
};

use crate::Running;
use crate::batch::Batch;
use crate::client::{Client, text, topic_name};

#[test]
fn a_moved_leader_fences_those_who_ask_the_old_one() {
    let running = Running::new(Broker::builder().nodes(3));
    running.broker.create_topic("t", 3, &[]).expect("new");
    let metadata = running.client().call(12, &MetadataRequest::default().with_topics(None));
    assert_eq!(metadata.brokers.len(), 3);
    let leaders: Vec<_> = metadata.topics[0].partitions.iter().map(|p| p.leader_id.0).collect();
    assert_eq!(leaders, [1, 2, 3]);
    let mut old = running.client_of(1);
    assert_eq!(old.produce("t", Batch::of(2).bytes()).error_code, 0);
    let mut waiting = running.client_of(1);
    waiting.send(16, &{
        let mut request = Client::fetch_request("t", 2).with_max_wait_ms(i32::MAX);
        request.topics[0].topic_id = metadata.topics[0].topic_id;
        request
    });
    assert!(waiting.is_silent());
    running.broker.move_leader("t", 0, 2).expect("there");
    let told = waiting.receive::<FetchRequest>(16);
    let partition = &told.responses[0].partitions[0];
    assert_eq!(
        (partition.error_code, partition.current_leader.leader_id.0, partition.current_leader.leader_epoch),
        (6, 2, 1)
    );
    assert_eq!(told.node_endpoints.len(), 3, "where it is");
    assert_eq!(old.produce("t", Batch::of(2).bytes()).error_code, 6);
    assert_eq!(old.list_offset("t", -1, false).0, 6);
    let mut new = running.client_of(2);
    let mut request = Client::fetch_request("t", 0);
    request.topics[0].partitions[0].current_leader_epoch = 0;
    assert_eq!(new.call(12, &request).responses[0].partitions[0].error_code, 74);
    assert_eq!(new.produce("t", Batch::of(2).bytes()).base_offset, 2, "the log moved along");
    let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(1).with_leader_epoch(0);
    let topic = OffsetForLeaderTopic::default().with_topic(topic_name("t")).with_partitions(vec![partition]);
    let request =
        OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    let answer = &new.call(4, &request).topics[0].partitions[0];
    assert_eq!((answer.leader_epoch, answer.end_offset), (0, 2));
    let mut diverging = Client::fetch_request("t", 3);
    diverging.topics[0].partitions[0].last_fetched_epoch = 0;
    let answer = new.call(12, &diverging);
    let found = &answer.responses[0].partitions[0].diverging_epoch;
    assert_eq!((found.epoch, found.end_offset), (0, 2), "that reader has what was cut");
    assert_eq!(running.broker.move_leader("t", 0, 9), Err(AdminError::Node(9)));
}

#[test]
fn a_moved_coordinator_says_so() {
    let running = Running::new(Broker::builder().nodes(2));
    running.broker.move_coordinator("g", 1).expect("there");
    let find = |key: &str| {
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text(key)]);
        running.client().call(4, &request).coordinators[0].node_id.0
    };
    let heartbeat = |node| {
        let request = HeartbeatRequest::default().with_group_id(GroupId(text("g")));
        running.client_of(node).call(4, &request).error_code
    };
    assert_eq!((find("g"), heartbeat(1), heartbeat(2)), (1, 25, 16));
    running.broker.move_coordinator("g", 2).expect("there");
    assert_eq!((find("g"), heartbeat(1), heartbeat(2)), (2, 16, 25));
}

#[test]
fn connections_of_one_node_are_closed() {
    let running = Running::new(Broker::builder().nodes(2));
    let (mut one, mut two) = (running.client_of(1), running.client_of(2));
    one.call(9, &MetadataRequest::default());
    two.call(9, &MetadataRequest::default());
    running.broker.close_connections(1).expect("there");
    assert!(one.is_closed());
    two.call(9, &MetadataRequest::default());
    running.client_of(1).call(9, &MetadataRequest::default());
}
