//! What a record costs in a batch: built, and decoded whole (CRC, decompression, index, a look at each value).
//!
//! Scenario: 1,000 records of a 12-byte key and a 600-byte JSON value, as a producer of telemetry sends them; random ids
//! keep the lz4 ratio near 2.6. Each figure is the median of seven runs of at least 0.2 s; the checksum shows that
//! all wrote and read the same. Time is the thread's own where the kernel tells it (Linux), so that neighbours disturb it only
//! through the caches; elsewhere it is the wall's.
//!
//! `cargo bench -p datum-kafka --bench record_batch`

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints figures and may fail")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use datum_codec::compression::Compressor;
use datum_kafka::wire::batch::{BatchBuilder, BatchDecoder, BatchSet, Codec, NewRecord, RawBatch, Seal};

const RECORDS: u32 = 1_000;
const VALUE: usize = 600;

fn main() {
    let records = Records::new();
    println!("codec    bytes      decode ns/record  build ns/record  checksum");
    for codec in Codec::ALL {
        let seal = Seal { codec, level: (codec == Codec::Zstd).then_some(1), ..Seal::default() };
        let batch = raw(records.build(&mut BatchBuilder::new(), &mut Compressor::new(), &seal));
        let mut decoder = BatchDecoder::new();
        let mut checksum = 0;
        let decode = median(|| checksum = look(&mut decoder, black_box(&batch)));
        let (mut builder, mut compressor) = (BatchBuilder::new(), Compressor::new());
        let build = median(|| {
            black_box(records.build(&mut builder, &mut compressor, &seal));
        });
        println!("{:<8} {:>7} {decode:>18.0} {build:>16.0}  {checksum}", codec.name(), batch.bytes.len());
    }
}

/// Decodes a batch and touches every record.
fn look(decoder: &mut BatchDecoder, batch: &RawBatch) -> u64 {
    let records = decoder.decode(batch).unwrap();
    records
        .iter()
        .map(|record| {
            let value = record.value().unwrap_or_default();
            value.len() as u64 + u64::from(value[2]) + record.key().unwrap_or_default().len() as u64
        })
        .sum()
}

/// Nanoseconds per record.
fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut samples: Vec<f64> = (0..7)
        .map(|_| {
            let watch = Stopwatch::start();
            let mut runs = 0u32;
            while watch.wall.elapsed() < Duration::from_millis(200) {
                run();
                runs += 1;
            }
            watch.elapsed().as_secs_f64() * 1e9 / f64::from(runs) / f64::from(RECORDS)
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

struct Stopwatch {
    wall: Instant,
    thread: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { wall: Instant::now(), thread: thread_time() }
    }

    fn elapsed(&self) -> Duration {
        match (self.thread, thread_time()) {
            (Some(from), Some(to)) => to - from,
            _ => self.wall.elapsed(),
        }
    }
}

/// How long this thread has run, exact to a tick of the kernel's scheduler.
fn thread_time() -> Option<Duration> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    line.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn raw(batch: Vec<u8>) -> RawBatch {
    BatchSet::new(Bytes::from(batch)).next().unwrap().unwrap()
}

struct Records {
    keys: Vec<String>,
    values: Vec<String>,
}

impl Records {
    fn new() -> Self {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let keys = (0..RECORDS).map(|_| format!("tenant-{:05}", random.below(5_000))).collect();
        let values = (0..RECORDS).map(|i| telemetry(&mut random, i)).collect();
        Self { keys, values }
    }

    fn build(&self, builder: &mut BatchBuilder, compressor: &mut Compressor, seal: &Seal) -> Vec<u8> {
        for (timestamp, (key, value)) in (1_790_000_000_000..).zip(self.keys.iter().zip(&self.values)) {
            let (key, value) = (Some(key.as_bytes()), Some(value.as_bytes()));
            builder.append(&NewRecord { timestamp, key, value, headers: &[] }).unwrap();
        }
        builder.close(seal, compressor).unwrap()
    }
}

/// A flat JSON object of 600 bytes.
fn telemetry(random: &mut Random, i: u32) -> String {
    const REGIONS: [&str; 8] = [
        "eu-west-1",
        "eu-central-1",
        "us-east-1",
        "us-west-2",
        "ap-south-1",
        "ap-northeast-1",
        "sa-east-1",
        "af-south-1",
    ];
    let region = REGIONS[usize::try_from(random.below(8)).unwrap()];
    let mut out = String::with_capacity(VALUE);
    write!(
        out,
        "{{\"event_id\":\"{:016x}{:016x}\",\"timestamp_ms\":{},\"service\":\"svc-{}\",\"host\":\"host-{:04}.{region}.\
         example.internal\",\"region\":\"{region}\",\"tenant\":\"tenant-{:05}\",\"endpoint\":\"/api/v{}/resource/{}\",\
         \"status\":{},\"latency_ms\":{}.{:03},\"request_size\":{},\"response_size\":{},\"cpu_usage\":0.{:04},\
         \"memory_mb\":{}.{:02},\"queue_depth\":{},\"error_count\":{},\"throughput\":{}.{:02},\"trace_id\":\"{:016x}{:016x}\",\
         \"user_agent\":\"Mozilla/5.0 (X11; Linux x86_64) client/{}.{}\",\"pad\":\"",
        random.next(),
        random.next(),
        1_790_000_000_000u64 + u64::from(i),
        random.below(50),
        random.below(2_000),
        random.below(5_000),
        random.below(3) + 1,
        random.below(100_000),
        200 + random.below(3) * 100,
        random.below(500),
        random.below(1_000),
        random.below(20_000),
        random.below(200_000),
        random.below(10_000),
        random.below(16_000),
        random.below(100),
        random.below(300),
        random.below(3),
        random.below(10_000),
        random.below(100),
        random.next(),
        random.next(),
        random.below(120),
        random.below(10),
    )
    .unwrap();
    while out.len() < VALUE - 2 {
        out.push(char::from(b'a' + random.next().to_le_bytes()[3] % 4));
    }
    out.push_str("\"}");
    out
}

/// Marsaglia's xorshift, so that every run has the same data.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
