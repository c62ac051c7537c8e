//! What once went wrong for somebody in public with consumers and their groups, each with what must hold instead; `roadmap/cases.md` lists them all.
#![allow(clippy::unwrap_used, reason = "test code: a failed step fails the test")]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use datum_broker::{Api, Broker, BrokerHandle};
use datum_kafka::consumer::{Acknowledgement, Consumer, GroupConsumer};
use datum_kafka::wire::batch::Codec;
use datum_kafka::{ConsumerSettings, KafkaErrorKind, StartAt, TopicPartition};
use support::embedded::{TOPIC, broker, cluster, manual, offsets, partition};
use support::produce::{values, write_values};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

fn member(broker: &BrokerHandle) -> ConsumerSettings {
    ConsumerSettings::new(&broker.bootstrap())
        .group("g")
        .topic(TOPIC)
        .session_timeout(Duration::from_secs(6))
        .commit_interval(Duration::from_millis(20))
        .metadata_max_age(Duration::from_millis(50))
}

/// Kafka 17: work is aborted and begun again while a fetch is in flight.
#[tokio::test]
async fn after_a_rewind_nothing_fetched_before_it_is_seen() {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    for _ in 0..3 {
        write_values(&cluster, &partition(0), &values("v", 10), Codec::None).await;
    }
    let settings =
        manual(&broker, StartAt::Beginning).with_fetch(|fetch| fetch.max_wait(Duration::from_millis(300)));
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let handle = consumer.handles()[0].clone();
    for round in 0..6 {
        let end = 30 + round * 10;
        // Half-way through, with the rest buffered or on its way, and a long poll at the end in flight in the later rounds.
        let half = consumer.next().await.unwrap();
        assert_eq!(half.first_offset(), 0, "round {round}");
        if round % 2 == 1 {
            until("all is fetched", || handle.answer().is_some_and(|answer| answer.position == end)).await;
        }
        consumer.fetcher().seek(&handle, StartAt::Offset(0));
        write_values(&cluster, &partition(0), &values("more", 10), Codec::None).await;
        assert_eq!(
            offsets(&mut consumer, end + 10).await,
            (0..end + 10).collect::<Vec<_>>(),
            "round {round}"
        );
        consumer.fetcher().seek(&handle, StartAt::Offset(0));
    }
    broker.stop().await;
}

/// Kafka 27: the topic is deleted and created again while it is read and committed.
#[tokio::test]
async fn no_offset_of_a_deleted_topic_is_committed_under_its_successor() {
    let broker = broker(1, 1).await;
    let known = cluster(&broker).await;
    write_values(&known, &partition(0), &values("old", 30), Codec::None).await;
    let mut consumer = GroupConsumer::join(&member(&broker)).await.unwrap();
    let (_, first) = timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
    first.ack();
    until("it is committed", || broker.committed("g", TOPIC, 0).is_some_and(|(offset, _)| offset == 30))
        .await;
    write_values(&known, &partition(0), &values("old", 30), Codec::None).await;
    let (_, late) = timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();

    broker.delete_topic(TOPIC).unwrap();
    broker.create_topic(TOPIC, 1, &[]).unwrap();
    let error = timeout(PATIENCE, consumer.next()).await.expect("no silent spin").unwrap_err();
    assert!(matches!(error.kind(), KafkaErrorKind::TopicRecreated { topic } if &**topic == TOPIC), "{error}");
    assert!(!late.ack(), "an offset of the old topic counts");
    consumer.leave(Duration::from_secs(5)).await.ok();
    assert_eq!(broker.committed("g", TOPIC, 0), None);
    broker.stop().await;
}

/// Kafka 29: two topics, one partition taken away, acknowledgements outstanding for both.
#[tokio::test]
async fn only_the_acknowledgements_of_what_was_taken_away_are_void() {
    let broker = Broker::builder().start().await.unwrap();
    let known = cluster(&broker).await;
    for topic in ["a", "b"] {
        broker.create_topic(topic, 1, &[]).unwrap();
        write_values(&known, &TopicPartition::new(topic, 0), &values("v", 10), Codec::None).await;
    }
    let settings = |broker: &BrokerHandle| {
        let mut settings = member(broker).topic("a").topic("b").cooperative(true);
        settings.topics.retain(|topic| &**topic != TOPIC);
        settings.group.drain_timeout = Duration::from_millis(200);
        settings.group.heartbeat_interval = Duration::from_millis(50);
        settings
    };
    let mut first = GroupConsumer::join(&settings(&broker)).await.unwrap();
    let mut open: BTreeMap<String, Acknowledgement> = BTreeMap::new();
    while open.len() < 2 {
        let (batch, ack) = timeout(PATIENCE, first.next()).await.unwrap().unwrap();
        open.insert(batch.partition().topic.to_string(), ack);
    }
    // Neither is acknowledged while the second member takes one of them over.
    let mut second = GroupConsumer::join(&settings(&broker)).await.unwrap();
    let moved = tokio::select! {
        moved = second.next() => moved.unwrap().0.partition().topic.to_string(),
        none = first.next() => panic!("nothing new is there for the first: {none:?}"),
        () = tokio::time::sleep(PATIENCE) => panic!("nothing moved"),
    };
    for (topic, ack) in &open {
        assert_eq!(ack.ack(), *topic != moved, "{topic} of which {moved} was taken away");
    }
    let kept = if moved == "a" { "b" } else { "a" };
    until("what was kept is committed", || broker.committed("g", kept, 0).is_some_and(|(at, _)| at == 10))
        .await;
    assert_eq!(broker.committed("g", &moved, 0), None, "the second has acknowledged nothing");
    second.leave(Duration::from_secs(5)).await.unwrap();
    first.leave(Duration::from_secs(5)).await.unwrap();
    broker.stop().await;
}

/// Streams K5: the position is being looked up when the partition is assigned anew.
#[tokio::test]
async fn a_look_up_that_hangs_holds_up_no_later_assignment() {
    let broker = broker(1, 1).await;
    write_values(&cluster(&broker).await, &partition(0), &values("v", 30), Codec::None).await;
    broker.faults().on(Api::ListOffsets).silence();
    let settings = manual(&broker, StartAt::Beginning)
        .with_client(|client| client.request_timeout(Duration::from_secs(2)));
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    until("the look-up is under way", || broker.faults().pending() == 0).await;
    consumer.assign(partition(0), StartAt::Offset(20));
    assert_eq!(offsets(&mut consumer, 30).await, (20..30).collect::<Vec<_>>());
    // The old one comes to its end, of no effect.
    assert!(timeout(Duration::from_secs(3), consumer.next()).await.is_err(), "nothing follows");
    broker.stop().await;
}

/// Streams K13: the stream has all it wants before the topic ends.
#[tokio::test]
async fn a_stream_that_ends_early_leaves_its_group() {
    use datum_core::prelude::*;
    use datum_kafka::stages::KafkaSources;

    let broker = broker(1, 1).await;
    write_values(&cluster(&broker).await, &partition(0), &values("v", 30), Codec::None).await;
    let seen = Source::kafka(member(&broker))
        .take(5)
        .map(|record: datum_kafka::stages::CommittableRecord| record.offset())
        .run_with(Sink::collect())
        .unwrap();
    assert_eq!(timeout(PATIENCE, seen).await.unwrap().unwrap(), [0, 1, 2, 3, 4]);
    until("its connections are closed", || broker.connections() == 0).await;
    // Its place is free at once, not when a session has expired.
    let mut next = GroupConsumer::join(&member(&broker)).await.unwrap();
    let (batch, _) =
        timeout(Duration::from_secs(4), next.next()).await.expect("the member has left").unwrap();
    assert_eq!(batch.first_offset(), 0, "nothing was acknowledged");
    broker.stop().await;
}
