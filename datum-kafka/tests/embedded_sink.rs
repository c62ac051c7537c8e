//! `Sink::kafka` on the embedded broker: everything written, acknowledged when written, and failures told.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod producing;

use std::time::Duration;

use datum_broker::{Api, Broker};
use datum_core::prelude::*;
use datum_kafka::{
    ConsumerSettings,
    producer::{ProducerRecord, SendError},
    stages::{KafkaSinks, KafkaSources, KafkaTransactionalSinks},
    wire::ErrorCode,
};
use producing::{PATIENCE, read, settings, topic};
use tokio::time::timeout;

#[tokio::test]
async fn a_stream_completes_when_its_last_record_is_written() {
    let broker = Broker::builder().start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let topic = topic(&bootstrap, 1).await;
    let into = topic.clone();
    let done = Source::from_iter(0..5_000)
        .map(move |i| ProducerRecord::new(into.as_str(), format!("{i:06}")))
        .run_with(Sink::kafka(settings(&bootstrap).batch_bytes(8_000).buffer_bytes(40_000)))
        .unwrap();
    timeout(PATIENCE, done).await.unwrap().unwrap();
    let expected: Vec<_> = (0..5_000).map(|i| format!("{i:06}")).collect();
    assert_eq!(read(&bootstrap, &topic, 1).await[&0], expected);
}

#[tokio::test]
async fn a_record_that_is_not_delivered_fails_the_stream_with_its_error() {
    let broker = Broker::builder().start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let topic = topic(&bootstrap, 1).await;
    broker.faults().on(Api::Produce).error(ErrorCode::InvalidTimestamp);
    let done = Source::from_iter(0..10)
        .map(move |i| ProducerRecord::new(topic.as_str(), i.to_string()))
        .run_with(Sink::kafka(settings(&bootstrap)))
        .unwrap();
    let error = timeout(PATIENCE, done).await.unwrap().unwrap_err();
    let error = error.downcast_ref::<SendError>().expect("the producer's own error");
    assert!(!error.possibly_written, "{error}");
}

#[tokio::test]
async fn records_from_a_group_are_committed_once_their_copies_are_written() {
    let broker = Broker::builder().start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let (input, output) = (topic(&bootstrap, 1).await, topic(&bootstrap, 1).await);
    let from = input.clone();
    let filled = Source::from_iter(0..300)
        .map(move |i| ProducerRecord::new(from.as_str(), format!("{i:04}")))
        .run_with(Sink::kafka(settings(&bootstrap)))
        .unwrap();
    timeout(PATIENCE, filled).await.unwrap().unwrap();
    let into = output.clone();
    let consumer = ConsumerSettings::new(&bootstrap)
        .group("copy")
        .topic(&input)
        .commit_interval(Duration::from_millis(50));
    let copied = Source::kafka(consumer)
        .take(300)
        .map(move |record| record.map(|value| ProducerRecord::new(into.as_str(), value)))
        .run_with(Sink::kafka(settings(&bootstrap)))
        .unwrap();
    timeout(PATIENCE, copied).await.unwrap().unwrap();
    let expected: Vec<_> = (0..300).map(|i| format!("{i:04}")).collect();
    assert_eq!(read(&bootstrap, &output, 1).await[&0], expected);
    assert_eq!(broker.committed("copy", &input, 0).map(|(offset, _)| offset), Some(300));
}

#[tokio::test]
async fn a_transactional_copy_is_visible_together_with_its_offsets() {
    for version in [1, 2] {
        let broker = Broker::builder().transaction_version(version).start().await.unwrap();
        let bootstrap = broker.bootstrap();
        let (input, output) = (topic(&bootstrap, 1).await, topic(&bootstrap, 1).await);
        let from = input.clone();
        let filled = Source::from_iter(0..300)
            .map(move |i| ProducerRecord::new(from.as_str(), format!("{i:04}")))
            .run_with(Sink::kafka(settings(&bootstrap)))
            .unwrap();
        timeout(PATIENCE, filled).await.unwrap().unwrap();
        // In three runs, as if the process had been started anew twice; each goes on where the transaction before ended.
        for _ in 0..3 {
            let into = output.clone();
            // What was fetched and not taken is never acknowledged, and leaving does not wait for it.
            let mut consumer = ConsumerSettings::new(&bootstrap).group("copy").topic(&input);
            consumer.group.drain_timeout = PATIENCE * 2;
            let copied = Source::kafka(consumer)
                .take(100)
                .map(move |record| record.map(|value| ProducerRecord::new(into.as_str(), value)))
                .run_with(Sink::kafka_transactional(settings(&bootstrap).transactional_id("copy")))
                .unwrap();
            timeout(PATIENCE, copied).await.unwrap().unwrap();
        }
        let expected: Vec<_> = (0..300).map(|i| format!("{i:04}")).collect();
        assert_eq!(read(&bootstrap, &output, 1).await[&0], expected);
        assert_eq!(broker.committed("copy", &input, 0).map(|(offset, _)| offset), Some(300));
    }
}

#[tokio::test]
async fn a_transaction_that_is_refused_fails_the_stream_and_shows_nothing() {
    let broker = Broker::builder().start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let output = topic(&bootstrap, 1).await;
    broker.faults().on(Api::Produce).error(ErrorCode::InvalidTimestamp);
    let into = output.clone();
    let done = Source::from_iter(0..10)
        .map(move |i| ProducerRecord::new(into.as_str(), i.to_string()))
        .run_with(Sink::kafka_transactional(settings(&bootstrap).transactional_id("tx")))
        .unwrap();
    assert!(timeout(PATIENCE, done).await.unwrap().is_err());
    assert!(read(&bootstrap, &output, 1).await[&0].is_empty());
}
