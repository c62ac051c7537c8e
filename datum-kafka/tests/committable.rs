//! What is committed of committable streams, on the embedded broker: by a committer, and of records that are left out on the way.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod producing;

use std::time::Duration;

use datum_broker::{Api, Broker, BrokerHandle};
use datum_codec::prelude::*;
use datum_core::prelude::*;
use datum_kafka::{
    ConsumerSettings,
    group::CommitError,
    producer::{Producer, ProducerRecord},
    stages::{CommittableOps, CommittableRecord, Committed, Committer, CommitterSettings, KafkaSources},
    wire::ErrorCode,
};
use producing::{PATIENCE, settings, topic};
use tokio::time::{Instant, timeout};

const RECORDS: usize = 100;

/// A topic of numbers as JSON, every fifth of them no JSON at all.
async fn numbers(broker: &BrokerHandle) -> String {
    let bootstrap = broker.bootstrap();
    let topic = topic(&bootstrap, 1).await;
    let producer = Producer::connect(settings(&bootstrap)).await.unwrap();
    for i in 0..RECORDS {
        let value = if i % 5 == 4 { "no JSON".to_owned() } else { format!("{{\"n\":{i}}}") };
        producer.send(ProducerRecord::new(topic.as_str(), value)).await.unwrap();
    }
    producer.flush().await;
    topic
}

/// A member that commits nothing by itself between its assignments.
fn consumer(broker: &BrokerHandle, group: &str, topic: &str) -> ConsumerSettings {
    let settings = ConsumerSettings::new(&broker.bootstrap()).group(group).topic(topic);
    settings.commit_interval(Duration::from_secs(3_600))
}

fn committed(broker: &BrokerHandle, group: &str, topic: &str) -> Option<i64> {
    broker.committed(group, topic, 0).map(|(offset, _)| offset)
}

async fn until_committed(broker: &BrokerHandle, group: &str, topic: &str, wanted: i64) {
    let begun = Instant::now();
    while committed(broker, group, topic) != Some(wanted) {
        assert!(begun.elapsed() < PATIENCE, "{:?} of {wanted}", committed(broker, group, topic));
        tokio::task::yield_now().await;
    }
}

#[derive(Projected)]
struct Number {
    n: u64,
}

#[tokio::test]
async fn a_committer_commits_full_batches_at_once_and_the_rest_in_time() {
    let broker = Broker::builder().start().await.unwrap();
    let topic = numbers(&broker).await;
    let batches = Source::kafka(consumer(&broker, "full", &topic))
        .take(RECORDS as u64)
        .via(Committer::flow(&CommitterSettings::new().max_batch(30).max_interval(PATIENCE * 2)))
        .run_with(Sink::collect())
        .unwrap();
    let batches = timeout(PATIENCE, batches).await.unwrap().unwrap();
    assert_eq!(batches.iter().map(|batch: &Committed| batch.records).collect::<Vec<_>>(), [30, 30, 30, 10]);
    assert_eq!(committed(&broker, "full", &topic), Some(100));

    let materializer = Materializer::current().unwrap();
    let settings = CommitterSettings::new().max_batch(1_000).max_interval(Duration::from_millis(10));
    let done = Source::kafka(consumer(&broker, "timed", &topic))
        .run_with_on(Committer::sink::<CommittableRecord>(&settings), &materializer)
        .unwrap();
    until_committed(&broker, "timed", &topic, 100).await;
    materializer.shutdown().await;
    timeout(PATIENCE, done).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_failing_stream_commits_nothing_of_what_its_committer_has_gathered() {
    let broker = Broker::builder().start().await.unwrap();
    let topic = numbers(&broker).await;
    let settings = CommitterSettings::new().max_batch(20).max_interval(PATIENCE * 2);
    let begun = Instant::now();
    let done = Source::kafka(consumer(&broker, "failing", &topic))
        .try_map(|record: CommittableRecord| if record.offset() < 50 { Ok(record) } else { Err("offset 50") })
        .run_with(Committer::sink(&settings))
        .unwrap();
    let error = timeout(PATIENCE, done).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("offset 50"), "{error}");
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "it leaves without waiting for what nobody will acknowledge"
    );
    assert_eq!(committed(&broker, "failing", &topic), Some(40));
}

#[tokio::test]
async fn a_refused_commit_fails_the_stream_with_its_error() {
    let broker = Broker::builder().start().await.unwrap();
    let topic = numbers(&broker).await;
    broker.faults().on(Api::OffsetCommit).error(ErrorCode::OffsetMetadataTooLarge);
    let done = Source::kafka(consumer(&broker, "refused", &topic))
        .run_with(Committer::sink::<CommittableRecord>(&CommitterSettings::new().max_batch(10)))
        .unwrap();
    let error = timeout(PATIENCE, done).await.unwrap().unwrap_err();
    let refused = error.downcast_ref::<CommitError>().expect("the commit's own error");
    assert!(
        matches!(refused, CommitError::Refused { code: ErrorCode::OffsetMetadataTooLarge, .. }),
        "{refused}"
    );
}

/// Records that a policy or a filter leaves out are done; the offset passes them, also at the very end.
#[tokio::test]
async fn what_is_left_out_does_not_hold_the_offset_back() {
    let broker = Broker::builder().start().await.unwrap();
    let topic = numbers(&broker).await;
    let materializer = Materializer::current().unwrap();
    let settings = consumer(&broker, "left-out", &topic).commit_interval(Duration::from_millis(5));
    let (seen, mut numbers) = tokio::sync::mpsc::unbounded_channel();
    let done = Source::kafka(settings)
        .decode(Json::<Number>::projected().on_error(DecodePolicy::Skip))
        .filter_value(|number| number.n % 2 == 0)
        .filter_map_value(|number| (number.n % 3 == 0).then_some(number.n))
        .map_value(|n| n * 10)
        .run_with_on(
            Sink::foreach(move |record: datum_kafka::stages::Committable<u64>| {
                seen.send(*record.value()).unwrap();
                record.ack();
            }),
            &materializer,
        )
        .unwrap();
    until_committed(&broker, "left-out", &topic, 100).await;
    materializer.shutdown().await;
    timeout(PATIENCE, done).await.unwrap().unwrap();
    let expected: Vec<u64> = (0..100).filter(|n| n % 5 != 4 && n % 6 == 0).map(|n| n * 10).collect();
    let mut found = Vec::new();
    while let Ok(n) = numbers.try_recv() {
        found.push(n);
    }
    assert_eq!(found, expected);
}

/// A stream that fails or is aborted drops what was under way, and that does not count as left out.
#[tokio::test]
async fn what_a_failure_drops_is_delivered_again() {
    let broker = Broker::builder().start().await.unwrap();
    let topic = numbers(&broker).await;
    let run = || {
        Source::kafka(consumer(&broker, "dropped", &topic))
            .decode(Json::<Number>::projected().on_error(DecodePolicy::Skip))
            .filter_value(|number| number.n != 30)
            .try_map(|record| {
                // 30 and 34 are left out; 31 is dropped by the failure, 32 was never seen.
                if record.value().n == 31 { Err("number 31") } else { Ok(record.ack()) }
            })
            .run_with(Sink::ignore())
            .unwrap()
    };
    for _ in 0..2 {
        let error = timeout(PATIENCE, run()).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("number 31"), "{error}");
        assert_eq!(committed(&broker, "dropped", &topic), Some(31), "and not a record further");
    }
}
