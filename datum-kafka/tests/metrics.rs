//! What a consumer counts. A binary of its own, since a recorder is the process's.
#![allow(clippy::unwrap_used, reason = "test code: a failed step fails the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datum_kafka::StartAt;
use datum_kafka::consumer::Consumer;
use datum_kafka::wire::batch::Codec;
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use support::embedded::{broker, cluster, manual, offsets, partition};
use support::produce::{values, write_values};

/// Everything by name and labels; of a histogram how often something was recorded.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

struct Times(Arc<AtomicU64>);

impl HistogramFn for Times {
    fn record(&self, _: f64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Book {
    fn cell(&self, name: String) -> Arc<AtomicU64> {
        Arc::clone(self.0.lock().unwrap().entry(name).or_default())
    }

    fn of(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        self.cell(format!("{}{{{}}}", key.name(), labels.join(",")))
    }

    fn count(&self, name: &str) -> u64 {
        self.cell(name.into()).load(Ordering::Relaxed)
    }

    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.count(name))
    }
}

impl Recorder for Book {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.of(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Times(self.of(key))))
    }
}

#[tokio::test]
async fn what_is_consumed_and_what_fails_is_counted() {
    let book = Book::default();
    assert!(metrics::set_global_recorder(book.clone()).is_ok(), "the first");
    let broker = broker(1, 1).await;
    let known = cluster(&broker).await;
    for _ in 0..3 {
        write_values(&known, &partition(0), &values("v", 10), Codec::None).await;
    }
    let mut consumer = Consumer::connect(&manual(&broker, StartAt::Offset(5))).await.unwrap();
    let first = consumer.next().await.unwrap();
    assert_eq!(first.len(), 5);
    assert_eq!(book.count("datum_kafka_consumer_records_total{topic=t,partition=0}"), 5);
    assert_eq!(book.gauge("datum_kafka_consumer_lag_records{topic=t,partition=0}"), 20.0);
    assert_eq!(offsets(&mut consumer, 30).await.len(), 20);
    assert_eq!(book.count("datum_kafka_consumer_records_total{topic=t,partition=0}"), 25);
    assert_eq!(book.gauge("datum_kafka_consumer_lag_records{topic=t,partition=0}"), 0.0);
    let stored = broker.partition("t", 0).unwrap().bytes;
    assert_eq!(book.count("datum_kafka_consumer_bytes_total{topic=t,partition=0}"), stored);
    assert_eq!(book.gauge("datum_kafka_consumer_buffered_bytes{}"), 0.0, "all of it was taken");
    let fetches = book.count("datum_kafka_consumer_fetches_total{broker=1}");
    assert!(fetches > 0);
    assert_eq!(book.count("datum_kafka_consumer_fetch_seconds{broker=1}"), fetches);
    assert_eq!(book.count("datum_kafka_consumer_fetch_failures_total{broker=1}"), 0);

    // The broker goes away for good: nothing is emitted, and it shows.
    broker.stop().await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while book.count("datum_kafka_consumer_fetch_failures_total{broker=1}") < 3 {
        assert!(tokio::time::Instant::now() < deadline, "failures are not counted");
        tokio::task::yield_now().await;
    }
}
