//! What a consumer counts, through the `metrics` facade; `docs/metrics.md` is the list.
//!
//! Handles are taken from the recorder when a partition is assigned and when a broker is first asked, so a recorder must be installed before; without
//! one each is a branch that does nothing.

use metrics::{Counter, Gauge, Histogram};
use tokio::time::Instant;

use crate::TopicPartition;

/// Of one partition.
pub(super) struct PartitionMeter {
    /// Records emitted.
    pub(super) records: Counter,
    /// Bytes of record batches fetched, as they came.
    pub(super) bytes: Counter,
    /// Records between what was emitted and the high watermark.
    pub(super) lag: Gauge,
}

impl PartitionMeter {
    pub(super) fn new(partition: &TopicPartition) -> Self {
        let labels = [("topic", partition.topic.to_string()), ("partition", partition.partition.to_string())];
        Self {
            records: metrics::counter!("datum_kafka_consumer_records_total", &labels),
            bytes: metrics::counter!("datum_kafka_consumer_bytes_total", &labels),
            lag: metrics::gauge!("datum_kafka_consumer_lag_records", &labels),
        }
    }
}

/// Of one broker.
pub(super) struct BrokerMeter {
    /// Fetches that were answered.
    fetches: Counter,
    /// Fetches that failed and are tried again.
    pub(super) failures: Counter,
    /// From the request to its answer, the broker's waiting for data included.
    seconds: Histogram,
}

impl BrokerMeter {
    pub(super) fn new(broker: i32) -> Self {
        let labels = [("broker", broker.to_string())];
        Self {
            fetches: metrics::counter!("datum_kafka_consumer_fetches_total", &labels),
            failures: metrics::counter!("datum_kafka_consumer_fetch_failures_total", &labels),
            seconds: metrics::histogram!("datum_kafka_consumer_fetch_seconds", &labels),
        }
    }

    /// The request that left at `since` was answered.
    pub(super) fn answered(&self, since: Instant) {
        self.fetches.increment(1);
        self.seconds.record(since.elapsed());
    }
}

/// Bytes fetched that wait for consumers, of all consumers of the process.
pub(super) fn buffered_bytes() -> Gauge {
    metrics::gauge!("datum_kafka_consumer_buffered_bytes")
}
