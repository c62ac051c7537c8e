//! Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch.

use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{BrokerId, DeleteRecordsRequest, FetchRequest, OffsetForLeaderEpochRequest};

use crate::batch::{Batch, now, read};
use crate::client::{Client, topic_name};
use crate::target::Target;

crate::cases! {
    a_fetch_returns_whole_batches_from_the_one_that_holds_the_offset
    offsets_outside_the_log_are_out_of_range
    a_long_poll_ends_when_records_come
    the_first_batch_comes_whatever_its_size
    leader_epochs_are_checked
    topics_are_fetched_by_id
    an_unknown_session_is_refused
    append_time_is_the_brokers
    offsets_are_found_by_time
    records_are_deleted_up_to_an_offset
    the_end_of_an_epoch_is_told
}

fn a_fetch_returns_whole_batches_from_the_one_that_holds_the_offset(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    for _ in 0..3 {
        client.produce(&topic, Batch::of(4).bytes());
    }
    let data = client.fetch(&topic, 5, false);
    assert_eq!(
        (data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset),
        (0, 12, 12, 0)
    );
    assert!(data.aborted_transactions.is_none());
    let bases: Vec<_> =
        read(&data.records.expect("records")).iter().map(|batch| (batch.base_offset, batch.count)).collect();
    assert_eq!(bases, [(4, 4), (8, 4)]);
    let end = client.fetch(&topic, 12, true);
    assert_eq!((end.error_code, end.records.map_or(0, |records| records.len())), (0, 0));
    for version in 4..=11 {
        let mut answer = client.call(version, &Client::fetch_request(&topic, 0));
        let data = answer.responses.remove(0).partitions.remove(0);
        assert_eq!(read(&data.records.expect("records")).len(), 3, "version {version}");
    }
}

fn offsets_outside_the_log_are_out_of_range(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    client.produce(&topic, Batch::of(4).bytes());
    let beyond = client.fetch(&topic, 5, false);
    assert_eq!((beyond.error_code, beyond.high_watermark), (1, -1));
    assert_eq!(client.fetch(&topic, -5, false).error_code, 1);
    assert_eq!(client.fetch(&target.name("unknown"), 0, false).error_code, 3);
}

fn a_long_poll_ends_when_records_come(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut waiting = target.client();
    waiting.send(12, &Client::fetch_request(&topic, 0).with_max_wait_ms(20_000));
    assert!(waiting.is_silent());
    let begun = std::time::Instant::now();
    target.client().produce(&topic, Batch::of(1).bytes());
    let mut answer = waiting.receive::<FetchRequest>(12);
    assert_eq!(read(&answer.responses.remove(0).partitions.remove(0).records.expect("records")).len(), 1);
    assert!(begun.elapsed().as_secs() < 10, "it did not wait for the end");
    let begun = std::time::Instant::now();
    waiting.call(12, &Client::fetch_request(&topic, 1).with_max_wait_ms(300));
    assert!(begun.elapsed().as_millis() >= 250, "an empty one does");
}

fn the_first_batch_comes_whatever_its_size(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    for _ in 0..3 {
        client.produce(&topic, Batch::of(10).bytes());
    }
    let mut request = Client::fetch_request(&topic, 0).with_max_bytes(1);
    let first = |answer: kafka_protocol::messages::FetchResponse| {
        read(answer.responses[0].partitions[0].records.as_ref().expect("records")).len()
    };
    assert_eq!(first(client.call(12, &request)), 1);
    request.max_bytes = 50 << 20;
    request.topics[0].partitions[0].partition_max_bytes = 1;
    assert_eq!(first(client.call(12, &request)), 1);
}

fn leader_epochs_are_checked(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    client.produce(&topic, Batch::of(1).bytes());
    let mut code = |epoch| {
        let mut request = Client::fetch_request(&topic, 0);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        client.call(12, &request).responses[0].partitions[0].error_code
    };
    assert_eq!(code(0), 0);
    assert_eq!(code(5), 75);
}

fn topics_are_fetched_by_id(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    client.produce(&topic, Batch::of(1).bytes());
    let mut request = Client::fetch_request("", 0);
    request.topics[0].topic_id = client.topic_id(&topic);
    for version in 13..=17 {
        let answer = client.call(version, &request);
        assert_eq!(answer.responses[0].topic_id, request.topics[0].topic_id);
        assert_eq!(answer.responses[0].partitions[0].high_watermark, 1);
    }
    request.topics[0].topic_id = uuid::Uuid::from_u128(5);
    assert_eq!(client.call(13, &request).responses[0].partitions[0].error_code, 100);
}

fn an_unknown_session_is_refused(target: &Target) {
    let topic = target.topic(1, &[]);
    let request = Client::fetch_request(&topic, 0).with_session_id(1_234_567).with_session_epoch(3);
    assert_eq!(target.client().call(12, &request).error_code, 70);
}

fn append_time_is_the_brokers(target: &Target) {
    let topic = target.topic(1, &[("message.timestamp.type", "LogAppendTime")]);
    let mut client = target.client();
    let before = now() - 1_000;
    let told = client.produce(&topic, Batch::at(&[5, 6]).bytes());
    assert!(told.log_append_time_ms >= before, "{told:?}");
    let batches = read(&client.fetch(&topic, 0, false).records.expect("records"));
    assert!(batches[0].append_time);
    assert_eq!(batches[0].newest, told.log_append_time_ms);
    assert_eq!(client.list_offset(&topic, before, false), (0, told.log_append_time_ms, 0));
}

fn offsets_are_found_by_time(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    assert_eq!(client.list_offset(&topic, -1, false), (0, -1, 0));
    assert_eq!(client.list_offset(&topic, -3, false), (0, -1, -1), "no record, no newest");
    client.produce(&topic, Batch::at(&[100, 300, 200]).bytes());
    client.produce(&topic, Batch::at(&[400, 350]).bytes());
    assert_eq!(client.list_offset(&topic, -2, false), (0, -1, 0));
    assert_eq!(client.list_offset(&topic, -1, false), (0, -1, 5));
    assert_eq!(client.list_offset(&topic, 0, false), (0, 100, 0));
    assert_eq!(client.list_offset(&topic, 150, false), (0, 300, 1));
    assert_eq!(client.list_offset(&topic, 301, false), (0, 400, 3));
    assert_eq!(client.list_offset(&topic, 401, false), (0, -1, -1));
    assert_eq!(client.list_offset(&topic, -3, false), (0, 400, 3));
    assert_eq!(client.list_offset(&target.name("unknown"), -1, false).0, 3);
}

fn records_are_deleted_up_to_an_offset(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    for _ in 0..3 {
        client.produce(&topic, Batch::of(4).bytes());
    }
    let mut delete = |offset| {
        let partition = DeleteRecordsPartition::default().with_offset(offset);
        let topic =
            DeleteRecordsTopic::default().with_name(topic_name(&topic)).with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let answer = &client.call(2, &request).topics[0].partitions[0];
        (answer.error_code, answer.low_watermark)
    };
    assert_eq!(delete(13), (1, -1));
    assert_eq!(delete(6), (0, 6));
    assert_eq!(delete(2), (0, 6), "it never goes back");
    let mut client = target.client();
    assert_eq!(client.fetch(&topic, 5, false).error_code, 1);
    let data = client.fetch(&topic, 6, false);
    assert_eq!((data.error_code, data.log_start_offset), (0, 6));
    assert_eq!(read(&data.records.expect("records"))[0].base_offset, 4, "the batch that holds it");
    assert_eq!(client.list_offset(&topic, -2, false).2, 6);
    assert_eq!(delete(-1), (0, 12));
}

fn the_end_of_an_epoch_is_told(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    client.produce(&topic, Batch::of(4).bytes());
    let mut end = |current, epoch| {
        let partition =
            OffsetForLeaderPartition::default().with_current_leader_epoch(current).with_leader_epoch(epoch);
        let topic =
            OffsetForLeaderTopic::default().with_topic(topic_name(&topic)).with_partitions(vec![partition]);
        let request =
            OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
        let answer = &client.call(4, &request).topics[0].partitions[0];
        (answer.error_code, answer.leader_epoch, answer.end_offset)
    };
    assert_eq!(end(-1, 0), (0, 0, 4));
    assert_eq!(end(0, 0), (0, 0, 4));
    assert_eq!(end(-1, 3), (0, -1, -1), "an epoch that has not been");
    assert_eq!(end(4, 0), (75, -1, -1));
}
