//! What the rollup computes: the fields it reads and the twelve aggregates over them.

use datum::codec::Projected;
use datum::window::{Aggregate, Aggregates, Row};

/// A latency above this breaches the objective, in milliseconds.
pub(crate) const OBJECTIVE_MS: f64 = 80.0;

/// When a record happened, for input that does not carry it beside the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Projected)]
pub(crate) struct Dated {
    /// In milliseconds since 1970.
    pub(crate) timestamp: i64,
}

/// The fields of a record that the rollup reads.
#[derive(Clone, Copy, Debug, PartialEq, Projected)]
pub(crate) struct Metric<'a> {
    /// Where; the key of the panes.
    pub(crate) region: &'a str,
    /// How long the request took.
    pub(crate) latency_ms: f64,
    /// How many errors it met.
    pub(crate) error_count: u64,
    /// Bytes in.
    pub(crate) request_size: u64,
    /// Bytes out.
    pub(crate) response_size: u64,
    /// Percent.
    pub(crate) cpu_usage: f64,
    /// Megabytes.
    pub(crate) memory_mb: f64,
    /// Requests waiting.
    pub(crate) queue_depth: u64,
    /// Requests per second.
    pub(crate) throughput: f64,
}

impl<'a> Metric<'a> {
    /// The key, lent, and what is aggregated.
    #[inline]
    pub(crate) fn key_and_load(&self) -> (&'a str, Load) {
        let load = Load {
            latency_ms: self.latency_ms,
            error_count: self.error_count,
            bytes: self.request_size.saturating_add(self.response_size),
            cpu_usage: self.cpu_usage,
            memory_mb: self.memory_mb,
            queue_depth: self.queue_depth,
            throughput: self.throughput,
        };
        (self.region, load)
    }
}

/// What one record adds to its pane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    latency_ms: f64,
    error_count: u64,
    bytes: u64,
    cpu_usage: f64,
    memory_mb: f64,
    queue_depth: u64,
    throughput: f64,
}

/// The twelve aggregates of a pane, in the order in which they are published.
pub(crate) fn slo_rollup() -> impl Aggregate<Load, Out = Row> {
    Aggregates::<Load>::new()
        .count("count")
        .mean("latency_avg", |m| m.latency_ms)
        .min("latency_min", |m| m.latency_ms)
        .max("latency_max", |m| m.latency_ms)
        .stddev_pop("latency_stddev", |m| m.latency_ms)
        .count_if("sla_breaches", |m| m.latency_ms > OBJECTIVE_MS)
        .sum("error_sum", |m| m.error_count)
        .sum("bytes_sum", |m| m.bytes)
        .mean("cpu_avg", |m| m.cpu_usage)
        .max("memory_max", |m| m.memory_mb)
        .max("queue_depth_max", |m| m.queue_depth)
        .sum("throughput_sum", |m| m.throughput)
}
