//! Scripted faults, and batches that no client would send.

use std::time::Duration;

use datum_broker::{AdminError, Api, Broker};
use datum_kafka::wire::ErrorCode;
use kafka_protocol::messages::MetadataRequest;

use crate::Running;
use crate::batch::Batch;
use crate::client::Client;

fn running() -> Running {
    let running = Running::new(Broker::builder());
    running.broker.create_topic("t", 1, &[]).expect("new");
    running
}

#[test]
fn the_nth_request_is_answered_with_an_error_and_changes_nothing() {
    let running = running();
    running.broker.faults().on(Api::Produce).nth(2).times(2).error(ErrorCode::NotLeaderOrFollower);
    let mut client = running.client();
    let codes: Vec<_> = (0..4).map(|_| client.produce("t", Batch::of(1).bytes()).error_code).collect();
    assert_eq!(codes, [0, 6, 6, 0]);
    assert_eq!(running.broker.partition("t", 0).expect("there").high_watermark, 2);
    assert_eq!(running.broker.faults().requests(Api::Produce), 4);
    running.broker.faults().on(Api::Fetch).error(ErrorCode::FetchSessionIdNotFound);
    assert_eq!(client.call(12, &Client::fetch_request("t", 0)).error_code, 70, "of the whole answer");
}

#[test]
fn a_connection_may_be_closed_before_after_and_amid_an_answer() {
    let running = running();
    let faults = running.broker.faults();
    faults.on(Api::Metadata).disconnect();
    let mut client = running.client();
    client.send(9, &MetadataRequest::default());
    assert!(client.is_closed());

    faults.on(Api::Metadata).truncate();
    let mut client = running.client();
    client.send(9, &MetadataRequest::default());
    assert!(!client.is_closed(), "some bytes come");

    faults.on(Api::Metadata).length(i32::MAX);
    let mut client = running.client();
    client.send(9, &MetadataRequest::default());
    assert!(!client.is_closed());

    let request = kafka_protocol::messages::DeleteTopicsRequest::default()
        .with_topic_names(vec![crate::client::topic_name("t")]);
    faults.on(Api::DeleteTopics).disconnect_after();
    let mut client = running.client();
    client.send(5, &request);
    assert!(client.is_closed());
    assert!(running.broker.partition("t", 0).is_err(), "it was done all the same");
    assert_eq!(faults.pending(), 0);
}

#[test]
fn a_delay_follows_the_brokers_clock() {
    let running = Running::new(Broker::builder().standing_clock(0));
    running.broker.faults().on(Api::Metadata).delay(Duration::from_secs(3_600));
    let mut client = running.client();
    client.send(9, &MetadataRequest::default());
    assert!(client.is_silent());
    running.broker.clock().advance(Duration::from_secs(3_600));
    assert_eq!(client.receive::<MetadataRequest>(9).brokers.len(), 1);
}

#[test]
fn a_log_may_hold_what_no_client_would_send() {
    let running = running();
    let damaged = Batch { spoil_checksum: true, ..Batch::of(2) };
    assert_eq!(running.broker.append_raw("t", 0, &damaged.bytes()), Ok(0));
    let gap = Batch { last_delta: Some(999), ..Batch::of(1) };
    assert_eq!(running.broker.append_raw("t", 0, &gap.bytes()), Ok(2));
    let empty = Batch { count: Some(0), last_delta: Some(1_000_000), ..Batch::of(0) };
    assert_eq!(running.broker.append_raw("t", 0, &empty.bytes()), Ok(1_002));
    assert_eq!(running.broker.partition("t", 0).expect("there").high_watermark, 1_001_003);
    let data = running.client().fetch("t", 500, false);
    assert_eq!((data.error_code, data.high_watermark), (0, 1_001_003));
    assert!(matches!(running.broker.append_raw("t", 0, &[0; 10]), Err(AdminError::Batch(_))));
    assert!(matches!(running.broker.append_raw("t", 7, &gap.bytes()), Err(AdminError::Refused(_))));
}

#[test]
fn frames_that_lie_close_the_connection() {
    use std::io::{Read, Write};
    let running = running();
    for frame in [
        &i32::MAX.to_be_bytes()[..],
        &(-1i32).to_be_bytes(),
        &[0, 0, 0, 3, 1, 2, 3],
        &[0, 0, 0, 8, 0, 99, 0, 0, 0, 0, 0, 0],
    ] {
        let mut socket = std::net::TcpStream::connect(running.broker.bootstrap()).expect("it listens");
        socket.set_read_timeout(Some(crate::client::PATIENCE)).expect("a socket");
        socket.write_all(frame).expect("sent");
        assert_eq!(socket.read(&mut [0; 1]).expect("closed, not timed out"), 0, "{frame:?}");
    }
    assert_eq!(running.client().call(9, &MetadataRequest::default()).brokers.len(), 1, "it lives on");
}

#[test]
fn a_stopped_broker_is_gone() {
    let Running { broker, runtime } = running();
    let address = broker.bootstrap();
    let mut client = Client::connect(&address);
    client.send(12, &Client::fetch_request("t", 0).with_max_wait_ms(i32::MAX));
    runtime.block_on(broker.stop());
    assert!(client.is_closed());
    assert!(std::net::TcpStream::connect(&address).is_err());
}
