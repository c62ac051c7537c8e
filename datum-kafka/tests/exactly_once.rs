//! Consume-transform-produce in transactions, on the embedded broker and, where `DATUM_TEST_KAFKA` names one (`host:port`), on a real Apache
//! Kafka; without it those tests say that they were skipped.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests too")]

mod producing;
mod transforming;

use std::time::Duration;

use datum_broker::{Api, Broker};
use datum_core::prelude::*;
use datum_kafka::{
    ConsumerSettings,
    producer::{Producer, ProducerRecord},
    stages::{KafkaSources, KafkaTransactionalSinks},
};
use producing::{PATIENCE, read, settings, topic};
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn partitions_that_move_within_transactions_are_copied_once() {
    for version in [1, 2] {
        let builder = Broker::builder().transaction_version(version).marker_delay(Duration::from_millis(20));
        let broker = builder.start().await.unwrap();
        transforming::partitions_that_move_within_transactions_are_copied_once(&broker.bootstrap()).await;
    }
}

#[tokio::test]
async fn partitions_that_move_within_transactions_are_copied_once_on_a_real_kafka() {
    match std::env::var("DATUM_TEST_KAFKA") {
        Ok(bootstrap) => {
            transforming::partitions_that_move_within_transactions_are_copied_once(&bootstrap).await;
        }
        Err(_) => println!("skipped: DATUM_TEST_KAFKA is not set"),
    }
}

/// Offsets that a transaction has committed are committed: a plain commit of them beside the next transaction could take the place of its
/// offsets. What is left out on the way goes into transactions, too, and a transaction begins though nothing follows.
#[tokio::test]
async fn nothing_is_committed_beside_transactions() {
    let broker = Broker::builder().start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let (input, output) = (topic(&bootstrap, 1).await, topic(&bootstrap, 1).await);
    let producer = Producer::connect(settings(&bootstrap)).await.unwrap();
    let consumer = ConsumerSettings::new(&bootstrap)
        .group("copy")
        .topic(&input)
        .commit_interval(Duration::from_millis(1));
    let transactional =
        settings(&bootstrap).transactional_id("copy").transaction_interval(Duration::from_millis(5));
    let into = output.clone();
    let materializer = Materializer::current().unwrap();
    let done = Source::kafka(consumer)
        .filter_map(move |record| {
            let kept = record.value().ends_with(b"0");
            if !kept {
                record.ack();
            }
            kept.then(|| record.map(|value| ProducerRecord::new(into.as_str(), value)))
        })
        .run_with_on(Sink::kafka_transactional(transactional), &materializer)
        .unwrap();
    let mut expected = Vec::new();
    for round in 0..20 {
        for i in 0..15 {
            let value = format!("{round:02}{i:02}");
            producer.send(ProducerRecord::new(input.as_str(), value.clone())).await.unwrap();
            if value.ends_with('0') {
                expected.push(value);
            }
        }
        producer.flush().await;
        let (end, begun) = ((round + 1) * 15, Instant::now());
        while broker.committed("copy", &input, 0).map(|(offset, _)| offset) != Some(end) {
            assert!(begun.elapsed() < PATIENCE, "{:?} of {end}", broker.committed("copy", &input, 0));
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(broker.faults().requests(Api::OffsetCommit), 0);
    materializer.shutdown().await;
    timeout(PATIENCE, done).await.unwrap().unwrap();
    assert_eq!(broker.faults().requests(Api::OffsetCommit), 0, "nor when the member leaves");
    assert_eq!(read(&bootstrap, &output, 1).await[&0], expected);
}
