//! Nanoseconds per sample record: the projected decoder against serde_json, for what the region rollup reads.
//!
//! ```text
//! cargo run --release -p datum-codec --features sample --example decode_speed
//! ```
//!
//! Takes the least of several rounds over the same records, about 4 MB of them, in each layout. A checksum over the
//! decoded values shows that both decoders have read the same.

#![expect(clippy::print_stdout, reason = "a program that prints its findings")]

use std::hint::black_box;
use std::time::Instant;

use datum_codec::sample::{Layout, RecordGenerator};
use datum_codec::{Json, Projected};
use serde::Deserialize;

/// The nine fields of the region rollup.
#[derive(Projected, Deserialize)]
struct Metric<'a> {
    region: &'a str,
    latency_ms: f64,
    error_count: u64,
    request_size: u64,
    response_size: u64,
    cpu_usage: f64,
    memory_mb: f64,
    queue_depth: u64,
    throughput: f64,
}

/// The same, owned, with the event time: what a job over a file reads.
#[derive(Projected)]
struct OwnedMetric {
    timestamp: i64,
    region: String,
    latency_ms: f64,
    error_count: u64,
    request_size: u64,
    response_size: u64,
    cpu_usage: f64,
    memory_mb: f64,
    queue_depth: u64,
    throughput: f64,
}

impl Metric<'_> {
    fn checksum(&self) -> u64 {
        [
            self.region.len() as u64,
            self.latency_ms.to_bits(),
            self.error_count,
            self.request_size,
            self.response_size,
            self.cpu_usage.to_bits(),
            self.memory_mb.to_bits(),
            self.queue_depth,
            self.throughput.to_bits(),
        ]
        .into_iter()
        .fold(0, |sum: u64, value| sum.rotate_left(5) ^ value)
    }
}

impl OwnedMetric {
    fn checksum(&self) -> u64 {
        let metric = Metric {
            region: &self.region,
            latency_ms: self.latency_ms,
            error_count: self.error_count,
            request_size: self.request_size,
            response_size: self.response_size,
            cpu_usage: self.cpu_usage,
            memory_mb: self.memory_mb,
            queue_depth: self.queue_depth,
            throughput: self.throughput,
        };
        black_box(self.timestamp);
        metric.checksum()
    }
}

const RECORDS: u32 = 8_000;
const ROUNDS: usize = 60;

/// A way to decode a record, to its checksum.
type Decode<'d> = &'d mut dyn FnMut(&[u8]) -> u64;

fn main() {
    println!(
        "{:<12} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "layout", "generate", "borrowed", "portably", "owned", "in full", "serde_json"
    );
    for layout in Layout::ALL {
        let (records, generate) = sample(layout);
        let mut borrowed = Json::<Metric<'_>>::projected();
        let mut portable = Json::<Metric<'_>>::projected_portably();
        let mut owned = Json::<OwnedMetric>::projected();
        // A clone of a decoder that has seen nothing has no shape to go by.
        let fresh = borrowed.clone();
        let best = least(
            &records,
            [
                &mut |record| borrowed.decode_with(record, |metric| metric.checksum()).unwrap_or(0),
                &mut |record| portable.decode_with(record, |metric| metric.checksum()).unwrap_or(0),
                &mut |record| owned.decode(record).map_or(0, |metric| metric.checksum()),
                &mut |record| fresh.clone().decode_with(record, |metric| metric.checksum()).unwrap_or(0),
                &mut |record| {
                    serde_json::from_slice::<Metric<'_>>(record).map_or(0, |metric| metric.checksum())
                },
            ],
        );
        print!("{layout:<12} {generate:>9.0}");
        best.iter().for_each(|best| print!(" {best:>10.0}"));
        println!();
    }
}

fn sample(layout: Layout) -> (Vec<Vec<u8>>, f64) {
    let mut generator = RecordGenerator::new(1, layout);
    let mut line = Vec::with_capacity(1_024);
    let started = Instant::now();
    let records = (0..RECORDS)
        .map(|i| {
            line.clear();
            generator.write_record(&mut line, 1_762_732_800_000 + i64::from(i));
            line.clone()
        })
        .collect();
    (records, per_record(started))
}

/// The fastest round of each, taken in turns so that a busy machine troubles all alike.
fn least<const N: usize>(records: &[Vec<u8>], mut ways: [Decode<'_>; N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    let mut sums = [0; N];
    for _ in 0..ROUNDS {
        for (i, decode) in ways.iter_mut().enumerate() {
            let started = Instant::now();
            sums[i] = records.iter().fold(0_u64, |sum, record| sum.wrapping_add(decode(record)));
            best[i] = best[i].min(per_record(started));
        }
    }
    assert!(sums.iter().all(|sum| *sum == sums[0]), "the decoders differ: {sums:?}");
    best
}

fn per_record(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e9 / f64::from(RECORDS)
}
