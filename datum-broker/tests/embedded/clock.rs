//! Everything that follows the clock, turned by hand.

use std::time::Duration;

use datum_broker::Broker;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{
    EndTxnRequest, GroupId, HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest, ProducerId,
    SyncGroupRequest, TransactionalId,
};

use crate::Running;
use crate::batch::Batch;
use crate::client::{Client, text};

fn init(client: &mut Client) -> (i16, i64, i16) {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text("txn"))))
        .with_transaction_timeout_ms(10_000)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    let answer = client.call(4, &request);
    (answer.error_code, answer.producer_id.0, answer.producer_epoch)
}

fn end(client: &mut Client, id: i64, epoch: i16) -> i16 {
    let request = EndTxnRequest::default()
        .with_transactional_id(TransactionalId(text("txn")))
        .with_producer_id(ProducerId(id))
        .with_producer_epoch(epoch)
        .with_committed(true);
    client.call(3, &request).error_code
}

#[test]
fn markers_are_written_when_their_delay_is_over() {
    let running =
        Running::new(Broker::builder().marker_delay(Duration::from_millis(500)).standing_clock(1_000_000));
    running
        .broker
        .create_topic("t", 1, &[("message.timestamp.after.max.ms", "9223372036854775807")])
        .expect("new");
    let mut client = running.client();
    let (_, id, epoch) = init(&mut client);
    let batch = Batch::of(1).by(id, epoch, 0).transactional().bytes();
    assert_eq!(client.produce_as(12, "t", Some("txn"), batch).error_code, 0);
    assert_eq!(end(&mut client, id, epoch), 0, "answered before the markers");
    assert_eq!(end(&mut client, id, epoch), 51);
    assert_eq!(init(&mut client).0, 51);
    let again = Batch::of(1).by(id, epoch, 1).transactional().bytes();
    assert_eq!(
        client.produce_as(12, "t", Some("txn"), again).error_code,
        0,
        "the partition knows only of the open one"
    );
    let state = running.broker.partition("t", 0).expect("there");
    assert_eq!((state.high_watermark, state.last_stable), (2, 0));
    running.broker.clock().advance(Duration::from_millis(499));
    assert_eq!(end(&mut client, id, epoch), 51);
    running.broker.clock().advance(Duration::from_millis(1));
    assert_eq!(end(&mut client, id, epoch), 0);
    assert_eq!(running.broker.partition("t", 0).expect("there").last_stable, 3);
}

#[test]
fn a_waiting_fetch_is_woken_by_a_transaction_that_times_out() {
    let running = Running::new(Broker::builder().standing_clock(1_000_000));
    running
        .broker
        .create_topic("t", 1, &[("message.timestamp.after.max.ms", "9223372036854775807")])
        .expect("new");
    let mut client = running.client();
    let (_, id, epoch) = init(&mut client);
    let batch = Batch::of(1).by(id, epoch, 0).transactional().bytes();
    assert_eq!(client.produce_as(12, "t", Some("txn"), batch).error_code, 0);
    let mut reader = running.client();
    reader.send(12, &Client::fetch_request("t", 0).with_isolation_level(1).with_max_wait_ms(i32::MAX));
    running.broker.clock().advance(Duration::from_millis(9_999));
    assert!(reader.is_silent());
    running.broker.clock().advance(Duration::from_millis(1));
    let answer = reader.receive::<kafka_protocol::messages::FetchRequest>(12);
    assert_eq!(answer.responses[0].partitions[0].last_stable_offset, 2);
    assert_eq!(end(&mut client, id, epoch), 90);
}

#[test]
fn sessions_end_by_the_clock() {
    let running = Running::new(Broker::builder().standing_clock(0));
    let mut client = running.client();
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let join = JoinGroupRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_session_timeout_ms(45_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    let joined = client.call(3, &join);
    let sync = SyncGroupRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_generation_id(1)
        .with_member_id(joined.member_id.clone());
    assert_eq!(client.call(2, &sync).error_code, 0);
    let heartbeat = HeartbeatRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_generation_id(1)
        .with_member_id(joined.member_id);
    running.broker.clock().advance(Duration::from_millis(44_999));
    assert_eq!(client.call(3, &heartbeat).error_code, 0);
    running.broker.clock().advance(Duration::from_millis(45_000));
    assert_eq!(client.call(3, &heartbeat).error_code, 25);
}

#[test]
fn retention_goes_by_time_and_by_size() {
    let start = 1_700_000_000_000;
    let running =
        Running::new(Broker::builder().retention_check(Duration::from_secs(1)).standing_clock(start));
    running.broker.create_topic("time", 1, &[("retention.ms", "60000")]).expect("new");
    let size = Batch::at(&[start; 10]).bytes().len().to_string();
    running.broker.create_topic("size", 1, &[("retention.bytes", &size)]).expect("new");
    let mut client = running.client();
    for topic in ["time", "size"] {
        for n in 0..3 {
            assert_eq!(client.produce(topic, Batch::at(&[start + n * 10_000; 10]).bytes()).error_code, 0);
        }
    }
    let start_of = |topic| running.broker.partition(topic, 0).expect("there").log_start;
    running.broker.clock().advance(Duration::from_secs(1));
    assert_eq!((start_of("time"), start_of("size")), (0, 20));
    running.broker.clock().advance(Duration::from_secs(60));
    assert_eq!(start_of("time"), 10);
    running.broker.clock().advance(Duration::from_secs(20));
    assert_eq!((start_of("time"), start_of("size")), (30, 20));
    assert_eq!(client.fetch("time", 0, false).error_code, 1);
}
