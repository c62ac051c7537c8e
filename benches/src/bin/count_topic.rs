//! Counts a topic to the end it has at the start, on the public API, and prints what that took as one JSON object: the figure beside
//! `librdkafka/count.c`. One partition or many, assigned by hand; CRCs are checked.
//!
//! usage: `count_topic BROKERS TOPIC [FETCH_BYTES]`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use datum::kafka::admin::{Admin, OffsetSpec};
use datum::kafka::consumer::Consumer;
use datum::kafka::{ClientSettings, ConsumerSettings, StartAt, TopicPartition};
use nix::sys::resource::{UsageWho, getrusage};

/// A broker that says nothing for this long has failed.
const QUIET_LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, topic, rest @ ..] = args.as_slice() else {
        return complain("usage: count_topic BROKERS TOPIC [FETCH_BYTES]");
    };
    let fetch_bytes = rest.first().and_then(|bytes| bytes.parse().ok()).unwrap_or(4 << 20);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.to_string()),
    };
    match runtime.block_on(count(brokers, topic, fetch_bytes)) {
        Ok(line) => {
            print(&line);
            ExitCode::SUCCESS
        }
        Err(error) => complain(&error.to_string()),
    }
}

async fn count(brokers: &str, topic: &str, fetch_bytes: usize) -> Result<String, Box<dyn std::error::Error>> {
    let admin = Admin::connect(ClientSettings::new(brokers)).await?;
    let partitions = admin.describe_topic(topic).await?.partition_count(topic).unwrap_or_default();
    let mut settings = ConsumerSettings::new(brokers)
        .with_fetch(|f| f.max_bytes(fetch_bytes).partition_max_bytes(fetch_bytes));
    let all = (0..).take(partitions).map(|partition| TopicPartition::new(topic, partition));
    let wanted: Vec<_> = all.map(|partition| (partition, OffsetSpec::Latest)).collect();
    let mut ends = admin.list_offsets(&wanted, settings.isolation).await?;
    ends.retain(|_, end| end.offset.is_some_and(|end| end > 0));
    for partition in ends.keys() {
        settings = settings.assign(partition.clone(), StartAt::Beginning);
    }

    // Start-up is excluded, as it is for what this is compared with.
    let (cpu, started) = (cpu_time(), Instant::now());
    let mut consumer = Consumer::on(admin.cluster().clone(), &settings)?;
    let (mut records, mut bytes) = (0_u64, 0_u64);
    while !ends.is_empty() {
        let Ok(batch) = tokio::time::timeout(QUIET_LIMIT, consumer.next()).await else {
            return Err("the broker is silent".into());
        };
        let batch = batch?;
        for record in batch.records() {
            records += 1;
            bytes += record.value().map_or(0, <[u8]>::len) as u64;
        }
        if ends.get(batch.partition()).is_some_and(|end| end.offset <= Some(batch.next_offset())) {
            ends.remove(batch.partition());
        }
    }
    let per_record = (cpu_time() - cpu).as_secs_f64() * 1e6 / records.max(1) as f64;
    Ok(format!(
        "{{\"records\": {records}, \"bytes\": {bytes}, \"seconds\": {:.3}, \"cpu_us_per_record\": {per_record:.4}}}",
        started.elapsed().as_secs_f64()
    ))
}

fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    [usage.user_time(), usage.system_time()]
        .into_iter()
        .map(|t| {
            Duration::from_secs(t.tv_sec().unsigned_abs()) + Duration::from_micros(t.tv_usec().unsigned_abs())
        })
        .sum()
}

#[expect(clippy::print_stdout, reason = "its output is what it is for")]
fn print(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "its complaints are for whoever runs it")]
fn complain(what: &str) -> ExitCode {
    eprintln!("count_topic: {what}");
    ExitCode::FAILURE
}
