//! The bound on memory.

use std::time::Duration;

use datum_broker::Broker;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{GroupId, OffsetCommitRequest, ProduceRequest};

use crate::Running;
use crate::batch::Batch;
use crate::client::{Client, text, topic_name};

const BATCH: usize = 100;

fn request(topic: &str, timeout_ms: i32) -> ProduceRequest {
    let data = PartitionProduceData::default().with_records(Some(Batch::of(BATCH).bytes().into()));
    let topic = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
    ProduceRequest::default().with_acks(-1).with_timeout_ms(timeout_ms).with_topic_data(vec![topic])
}

fn commit(client: &mut Client, group: &str, topic: &str, offset: i64) {
    let partition = OffsetCommitRequestPartition::default().with_committed_offset(offset);
    let topic =
        OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    assert_eq!(client.call(8, &request).topics[0].partitions[0].error_code, 0);
}

/// A broker whose memory three batches fill, filled.
fn full(delete_consumed: bool) -> Running {
    let size = Batch::of(BATCH).bytes().len() as u64;
    let memory = size * 3 + size / 2;
    let running =
        Running::new(Broker::builder().memory(memory).delete_consumed(delete_consumed).standing_clock(0));
    running
        .broker
        .create_topic("t", 1, &[("message.timestamp.after.max.ms", "9223372036854775807")])
        .expect("new");
    let mut client = running.client();
    for _ in 0..3 {
        let answer = client.call(9, &request("t", 1_000));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }
    assert_eq!(running.broker.memory_used(), size * 3);
    running
}

#[test]
fn a_produce_waits_until_what_is_consumed_may_go() {
    let running = full(true);
    let mut producer = running.client();
    producer.send(9, &request("t", 60_000));
    assert!(producer.is_silent());
    let mut other = running.client();
    commit(&mut other, "slow", "t", 50);
    commit(&mut other, "quick", "t", 250);
    assert!(producer.is_silent(), "the slow group has not read the first batch");
    commit(&mut other, "slow", "t", 100);
    let answer = producer.receive::<ProduceRequest>(9);
    assert_eq!(answer.responses[0].partition_responses[0].base_offset, 300);
    assert_eq!(answer.responses[0].partition_responses[0].log_start_offset, 100);
    assert_eq!(running.broker.partition("t", 0).expect("there").log_start, 100, "no more than is needed");
}

#[test]
fn a_produce_waits_for_records_to_be_deleted() {
    use kafka_protocol::messages::DeleteRecordsRequest;
    use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
    let running = full(false);
    let mut producer = running.client();
    producer.send(9, &request("t", 60_000));
    commit(&mut running.client(), "g", "t", 300);
    assert!(producer.is_silent(), "what is consumed stays unless it is asked to go");
    let partition = DeleteRecordsPartition::default().with_offset(200);
    let topic = DeleteRecordsTopic::default().with_name(topic_name("t")).with_partitions(vec![partition]);
    running.client().call(2, &DeleteRecordsRequest::default().with_topics(vec![topic]));
    assert_eq!(producer.receive::<ProduceRequest>(9).responses[0].partition_responses[0].base_offset, 300);
}

#[test]
fn a_produce_that_waits_too_long_is_refused_and_can_be_repeated() {
    let running = full(false);
    let mut producer = running.client();
    producer.send(9, &request("t", 5_000));
    assert!(producer.is_silent());
    running.broker.clock().advance(Duration::from_secs(5));
    let answer = producer.receive::<ProduceRequest>(9).responses.remove(0).partition_responses.remove(0);
    assert_eq!(answer.error_code, 56);
    assert!(answer.error_message.is_some_and(|why| why.contains("memory is full")));
    assert_eq!(running.broker.partition("t", 0).expect("there").high_watermark, 300);
    running.broker.delete_topic("t").expect("there");
    let lasting = [("message.timestamp.type", "LogAppendTime")];
    running.broker.create_topic("t", 1, &lasting).expect("the name is free");
    assert_eq!(producer.call(9, &request("t", 5_000)).responses[0].partition_responses[0].base_offset, 0);
}

#[test]
fn a_request_larger_than_the_memory_is_refused_at_once() {
    let running = Running::new(Broker::builder().memory(100).standing_clock(0));
    running.broker.create_topic("t", 1, &[]).expect("new");
    let answer = running.client().call(9, &request("t", 60_000));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 56);
}
