//! Decodes sample records for a counter of instructions, which `ci/instructions` sets to work on it.
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*decode_sample*' target/release/examples/decode_instructions natural
//! ```
//!
//! Prints how many records there are, and how many of them were parsed in full, which is one.

#![expect(clippy::print_stdout, reason = "a program that prints its findings")]

use std::hint::black_box;

use datum_codec::sample::{Layout, RecordGenerator};
use datum_codec::{Json, Projected, ProjectedJson};

/// The nine fields of the region rollup.
#[derive(Projected)]
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

const RECORDS: i64 = 10_000;

fn main() -> Result<(), String> {
    let wanted = std::env::args().nth(1).unwrap_or_else(|| "natural".into());
    let named = Layout::ALL.into_iter().find(|layout| layout.to_string() == wanted);
    let layout = named.ok_or_else(|| format!("there is no layout `{wanted}`"))?;
    let mut generator = RecordGenerator::new(1, layout);
    let records: Vec<Vec<u8>> = (0..RECORDS)
        .map(|i| {
            let mut record = Vec::new();
            generator.write_record(&mut record, 1_762_732_800_000 + i);
            record
        })
        .collect();
    let mut decoder = Json::<Metric<'static>>::projected();
    decode_sample(&records, &mut decoder);
    println!("{RECORDS} records, {} in full", decoder.paths_taken().in_full);
    Ok(())
}

#[inline(never)]
fn decode_sample(records: &[Vec<u8>], decoder: &mut ProjectedJson<Metric<'static>>) {
    for record in records {
        let decoded = decoder.decode_with(record, |metric| {
            black_box((metric.region.len(), metric.latency_ms, metric.error_count, metric.request_size));
            black_box((metric.response_size, metric.cpu_usage, metric.memory_mb));
            black_box((metric.queue_depth, metric.throughput));
        });
        assert!(decoded.is_ok(), "a sample record is refused");
    }
}
