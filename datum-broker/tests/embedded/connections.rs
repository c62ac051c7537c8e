//! Connections that are of no use any more.

use std::time::Duration;

use datum_broker::Broker;
use kafka_protocol::messages::MetadataRequest;

use crate::Running;
use crate::batch::{Batch, now};
use crate::client::{Client, until};

#[test]
fn an_idle_connection_is_closed_and_one_that_waits_for_data_is_not() {
    let running = Running::new(Broker::builder().idle_timeout(Duration::from_millis(100)));
    running.broker.create_topic("t", 1, &[]).expect("new");
    let mut waiting = running.client();
    waiting.send(12, &Client::fetch_request("t", 0).with_max_wait_ms(i32::MAX));
    let mut idle = running.client();
    idle.call(9, &MetadataRequest::default());
    assert!(idle.is_closed());
    assert!(waiting.is_silent(), "a long poll is no idleness");
    until("only the long poll is left", || (running.broker.connections() == 1).then_some(()));
}

#[test]
fn a_client_that_never_reads_is_given_up() {
    let running = Running::new(Broker::builder().write_timeout(Duration::from_millis(100)));
    running.broker.create_topic("t", 1, &[("max.message.bytes", "4000000")]).expect("new");
    let mut client = running.client();
    let large = Batch { records: vec![(now(), None, "x".repeat(900_000))], ..Batch::of(1) };
    assert_eq!(client.produce("t", large.bytes()).error_code, 0);
    // More than any socket's buffers hold; the requests themselves are small.
    for _ in 0..64 {
        client.send(12, &Client::fetch_request("t", 0));
    }
    until("its task has ended", || (running.broker.connections() == 0).then_some(()));
    assert_eq!(running.client().call(9, &MetadataRequest::default()).brokers.len(), 1, "others are served");
}
