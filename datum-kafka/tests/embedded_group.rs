//! Members that leave or are dropped while others hold a rebalance up, on the embedded broker.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod producing;

use std::time::Duration;

use datum_broker::{Api, Broker, BrokerHandle};
use datum_kafka::{
    ConsumerSettings,
    consumer::GroupConsumer,
    producer::{Producer, ProducerRecord},
};
use producing::{PATIENCE, admin, settings, topic};
use tokio::time::{Instant, timeout};

/// Far below the session and the drain that would be waited for otherwise.
const SOON: Duration = Duration::from_secs(8);

async fn join(bootstrap: &str, topic: &str) -> GroupConsumer {
    let mut settings = ConsumerSettings::new(bootstrap).group("g").topic(topic);
    settings.group.drain_timeout = Duration::from_secs(60);
    settings.group.heartbeat_interval = Duration::from_millis(50);
    GroupConsumer::join(&settings).await.unwrap()
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < SOON, "not soon: {what}");
        tokio::task::yield_now().await;
    }
}

/// A member whose drain holds the others' joins back, one record of it unacknowledged for as long as what is returned lives.
async fn holding(
    broker: &BrokerHandle,
    topic: &str,
) -> (GroupConsumer, datum_kafka::consumer::Acknowledgement) {
    let bootstrap = broker.bootstrap();
    let producer = Producer::connect(settings(&bootstrap)).await.unwrap();
    producer.send_and_wait(ProducerRecord::new(topic, "x")).await.unwrap();
    let mut member = join(&bootstrap, topic).await;
    let (_, ack) = timeout(PATIENCE, member.next()).await.unwrap().unwrap();
    (member, ack)
}

/// Another member, its join held back.
async fn parked(broker: &BrokerHandle, topic: &str) -> GroupConsumer {
    let before = broker.faults().requests(Api::JoinGroup);
    let member = join(&broker.bootstrap(), topic).await;
    // The first one only gives it its name.
    until("the second join is sent", async || broker.faults().requests(Api::JoinGroup) >= before + 2).await;
    assert!(member.handles().is_empty());
    member
}

#[tokio::test]
async fn leaving_does_not_wait_behind_a_join_that_is_held_back() {
    let broker = Broker::builder().start().await.unwrap();
    let topic = topic(&broker.bootstrap(), 1).await;
    let admin = admin(&broker.bootstrap()).await;
    let (holder, ack) = holding(&broker, &topic).await;
    for dropped in [false, true] {
        let member = parked(&broker, &topic).await;
        let left = broker.faults().requests(Api::LeaveGroup);
        if dropped {
            drop(member);
        } else {
            timeout(SOON, member.leave(Duration::ZERO)).await.expect("soon").unwrap();
        }
        until("it has said goodbye", async || broker.faults().requests(Api::LeaveGroup) > left).await;
        until("only one is left", async || admin.group_members("g").await.unwrap().len() == 1).await;
    }
    assert!(ack.ack(), "the other one has its partition all the time");
    drop(holder);
}

#[tokio::test]
async fn the_next_member_does_not_wait_for_one_that_was_dropped() {
    let broker = Broker::builder().start().await.unwrap();
    let topic = topic(&broker.bootstrap(), 1).await;
    let (holder, ack) = holding(&broker, &topic).await;
    drop(holder);
    let mut next = join(&broker.bootstrap(), &topic).await;
    let (batch, _) = timeout(SOON, next.next()).await.expect("soon").unwrap();
    assert_eq!(batch.first_offset(), 0, "what was not acknowledged comes again");
    assert!(!ack.ack(), "and the dropped member's word counts no more");
}
