//! Counts the records and value bytes of a topic up to its end, and says what a record cost in CPU time.
//!
//! Run with `cargo run --release -p datum-kafka --example count -- localhost:9092 TOPIC [PARTITION_MAX_BYTES]`.
//! The counterpart over librdkafka's batch API is in `benches/librdkafka`.
#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "a program that prints a figure")]

use std::collections::HashMap;
use std::time::Instant;

use datum_kafka::admin::{Admin, OffsetSpec};
use datum_kafka::consumer::Consumer;
use datum_kafka::{ConsumerSettings, Isolation, StartAt, TopicPartition};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(broker), Some(topic)) = (args.next(), args.next()) else {
        return Err("usage: count BROKERS TOPIC [PARTITION_MAX_BYTES]".into());
    };
    let mut settings = ConsumerSettings::new(&broker);
    if let Some(bytes) = args.next() {
        let bytes = bytes.parse()?;
        settings = settings.with_fetch(|fetch| fetch.partition_max_bytes(bytes));
    }
    let admin = Admin::connect(settings.client.clone()).await?;
    let count = admin.describe_topic(&topic).await?.partition_count(&topic).unwrap_or(0);
    let mut wanted = Vec::new();
    for partition in 0..i32::try_from(count)? {
        let partition = TopicPartition::new(topic.as_str(), partition);
        wanted.push((partition.clone(), OffsetSpec::Latest));
        settings = settings.assign(partition, StartAt::Beginning);
    }
    let ends = admin.list_offsets(&wanted, Isolation::ReadCommitted).await?;
    let ends = ends.into_iter().map(|(partition, end)| (partition, end.offset.unwrap_or(0)));
    let mut left: HashMap<TopicPartition, i64> = ends.filter(|(_, end)| *end > 0).collect();

    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut consumer = Consumer::on(admin.cluster().clone(), &settings)?;
    let (mut records, mut bytes) = (0u64, 0u64);
    while !left.is_empty() {
        let batch = consumer.next().await?;
        for record in batch.records() {
            records += 1;
            bytes += record.value().map_or(0, <[u8]>::len) as u64;
        }
        if left.get(batch.partition()).is_some_and(|end| batch.next_offset() >= *end) {
            left.remove(batch.partition());
        }
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{records} records, {bytes} bytes, {seconds:.3} s, {:.0} records/s, {:.0} ns CPU per record",
        records as f64 / seconds,
        cpu * 1e9 / records.max(1) as f64
    );
    Ok(())
}

/// CPU time of this process so far, user and system, from `/proc` (Linux); 0 elsewhere.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields count from behind the command name, which may contain spaces; ticks are 1/100 s on every Linux in use.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |i: usize| fields.get(i).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
