//! Produce: what is refused and why, and what a producer's sequence must be.

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{InitProducerIdRequest, ProduceRequest};

use crate::batch::{Batch, now};
use crate::client::{Client, topic_name, until};
use crate::target::Target;

crate::cases! {
    offsets_follow_each_other
    what_is_wrong_with_a_batch_is_told
    the_size_limit_is_the_topics
    time_stamps_too_far_ahead_are_refused
    a_compacted_topic_wants_keys
    a_repeated_batch_is_not_written_twice
    a_gap_and_an_older_epoch_are_refused
    an_unknown_producer_may_begin_anywhere
    a_new_epoch_begins_at_0
    unknown_partitions_and_odd_acks_are_refused
}

fn offsets_follow_each_other(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    for (version, base) in [(3, 0), (7, 3), (9, 6), (11, 9)] {
        let answer = client.produce_as(version, &topic, None, Batch::of(3).bytes());
        assert_eq!((answer.error_code, answer.base_offset), (0, base));
        assert_eq!(answer.log_append_time_ms, -1);
    }
    let data = PartitionProduceData::default().with_records(Some(Batch::of(1).bytes().into()));
    let by_id =
        TopicProduceData::default().with_topic_id(client.topic_id(&topic)).with_partition_data(vec![data]);
    let request =
        ProduceRequest::default().with_acks(-1).with_timeout_ms(10_000).with_topic_data(vec![by_id]);
    let answer = client.call(13, &request);
    assert_eq!(answer.responses[0].partition_responses[0].base_offset, 12);
}

fn what_is_wrong_with_a_batch_is_told(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    let mut code = |batch: Vec<u8>| client.produce(&topic, batch).error_code;
    let good = || Batch::of(2);
    assert_eq!(code(Batch { spoil_checksum: true, ..good() }.bytes()), 2, "checksum");
    assert_eq!(code(Batch { count: Some(3), ..good() }.bytes()), 87, "count");
    assert_eq!(code(Batch { last_delta: Some(5), ..good() }.bytes()), 87, "last delta");
    assert_eq!(code(Batch { magic: 1, ..good() }.bytes()), 87, "old format");
    assert_eq!(code(Batch { attributes: 0x20, ..good() }.bytes()), 87, "control");
    assert_eq!(code([good().bytes(), good().bytes()].concat()), 87, "two batches");
    assert_eq!(code(Vec::new()), 87, "none");
    assert_eq!(code(good().bytes()), 0);
    let mut client = target.client();
    assert_eq!(client.list_offset(&topic, -1, false).2, 2, "nothing of the others was written");
}

fn the_size_limit_is_the_topics(target: &Target) {
    let topic = target.topic(1, &[("max.message.bytes", "200")]);
    let mut client = target.client();
    assert_eq!(client.produce(&topic, Batch::of(20).bytes()).error_code, 10);
    assert_eq!(client.produce(&topic, Batch::of(2).bytes()).error_code, 0);
}

fn time_stamps_too_far_ahead_are_refused(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    let hour = 3_600_000;
    assert_eq!(client.produce(&topic, Batch::at(&[now(), now() + 2 * hour]).bytes()).error_code, 32);
    assert_eq!(client.produce(&topic, Batch::at(&[0, now() + hour / 2]).bytes()).error_code, 0);
    let bounded = target.topic(1, &[("message.timestamp.before.max.ms", "1000")]);
    assert_eq!(client.produce(&bounded, Batch::at(&[now(), now() - hour]).bytes()).error_code, 32);
}

fn a_compacted_topic_wants_keys(target: &Target) {
    let topic = target.topic(1, &[("cleanup.policy", "compact")]);
    let mut client = target.client();
    let mut batch = Batch::of(2);
    batch.records[1].1 = None;
    assert_eq!(client.produce(&topic, batch.bytes()).error_code, 87);
    assert_eq!(client.produce(&topic, Batch::of(2).bytes()).error_code, 0);
}

/// A producer id that nobody else has.
pub(crate) fn producer_id(client: &mut Client) -> i64 {
    until("a producer id", || {
        let answer = client.call(4, &InitProducerIdRequest::default().with_transactional_id(None));
        (answer.error_code == 0).then(|| {
            assert_eq!(answer.producer_epoch, 0);
            answer.producer_id.0
        })
    })
}

fn a_repeated_batch_is_not_written_twice(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    let id = producer_id(&mut client);
    for n in 0..7 {
        let batch = Batch::of(10).by(id, 0, n * 10).bytes();
        assert_eq!(client.produce(&topic, batch).base_offset, i64::from(n) * 10);
    }
    let again = client.produce(&topic, Batch::of(10).by(id, 0, 20).bytes());
    assert_eq!((again.error_code, again.base_offset), (0, 20), "one of the last five");
    let older = client.produce(&topic, Batch::of(10).by(id, 0, 10).bytes());
    assert_eq!(older.error_code, 45, "older than the last five");
    assert_eq!(client.list_offset(&topic, -1, false).2, 70);
}

fn a_gap_and_an_older_epoch_are_refused(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    let id = producer_id(&mut client);
    let mut code =
        |epoch, sequence| client.produce(&topic, Batch::of(5).by(id, epoch, sequence).bytes()).error_code;
    assert_eq!(code(1, 0), 0);
    assert_eq!(code(1, 6), 45, "gap");
    assert_eq!(code(1, 3), 45, "overlap");
    assert_eq!(code(0, 5), 47, "older epoch");
    assert_eq!(code(1, 5), 0);
}

fn an_unknown_producer_may_begin_anywhere(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    let id = producer_id(&mut client);
    assert_eq!(client.produce(&topic, Batch::of(5).by(id, 0, 1_000).bytes()).error_code, 0);
    assert_eq!(client.produce(&topic, Batch::of(5).by(id, 0, i32::MAX - 2).bytes()).error_code, 45);
    let other = producer_id(&mut client);
    assert_eq!(client.produce(&topic, Batch::of(3).by(other, 0, i32::MAX - 2).bytes()).error_code, 0);
    assert_eq!(client.produce(&topic, Batch::of(1).by(other, 0, 0).bytes()).error_code, 0, "sequences wrap");
}

fn a_new_epoch_begins_at_0(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    let id = producer_id(&mut client);
    let mut code =
        |epoch, sequence| client.produce(&topic, Batch::of(5).by(id, epoch, sequence).bytes()).error_code;
    assert_eq!(code(0, 0), 0);
    assert_eq!(code(1, 5), 45);
    assert_eq!(code(1, 0), 0);
}

fn unknown_partitions_and_odd_acks_are_refused(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut client = target.client();
    let mut code = |topic: &str, index, acks| {
        let data =
            PartitionProduceData::default().with_index(index).with_records(Some(Batch::of(1).bytes().into()));
        let topic = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
        let request =
            ProduceRequest::default().with_acks(acks).with_timeout_ms(10_000).with_topic_data(vec![topic]);
        client.call(9, &request).responses[0].partition_responses[0].error_code
    };
    assert_eq!(code(&topic, 7, -1), 3);
    assert_eq!(code(&target.name("unknown"), 0, -1), 3);
    assert_eq!(code(&topic, 0, 2), 21);
    assert_eq!(code(&topic, 0, 1), 0);
}
