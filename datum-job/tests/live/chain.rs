//! The chain of verbs, from bytes in the input to JSON in the output.

use std::collections::BTreeMap;
use std::future::{IntoFuture, ready};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use datum_codec::sample::{Layout, RecordGenerator};
use datum_codec::{CompactString, Json, Projected};
use datum_core::{Sink, Source};
use datum_job::chain::{GroupKey, KafkaJob, KafkaJobs, KafkaPaneSinks, KeyedRecords, PaneJob, PaneSink};
use datum_job::restore::Refusal;
use datum_job::{JobError, JobReport};
use datum_kafka::consumer::Consumer;
use datum_kafka::wire::murmur2;
use datum_kafka::{ConsumerSettings, ProducerSettings, StartAt, TopicPartition};
use datum_window::{Aggregate, Aggregates, AggregatesError, Key, Row, Tumbling, TumblingError, secs};
use serde_json::Value;

use crate::support::{Stage, within};

/// In the past, and the start of a window.
const START: i64 = 1_762_732_800_000;
const WINDOW: i64 = 30_000;

#[derive(Projected)]
struct Metric {
    region: CompactString,
    latency_ms: f64,
    error_count: u64,
    request_size: u64,
    response_size: u64,
    memory_mb: f64,
}

fn rollup() -> impl Aggregate<Metric, Out = Row> {
    Aggregates::<Metric>::new()
        .count("count")
        .mean("latency_avg", |m| m.latency_ms)
        .min("latency_min", |m| m.latency_ms)
        .max("latency_max", |m| m.latency_ms)
        .stddev_pop("latency_stddev", |m| m.latency_ms)
        .count_if("sla_breaches", |m| m.latency_ms > 80.0)
        .sum("error_sum", |m| m.error_count)
        .sum("bytes_sum", |m| m.request_size + m.response_size)
        .max("memory_max", |m| m.memory_mb)
}

const NAMES: [&str; 12] = [
    "region",
    "window_start_ms",
    "window_end_ms",
    "count",
    "latency_avg",
    "latency_min",
    "latency_max",
    "latency_stddev",
    "sla_breaches",
    "error_sum",
    "bytes_sum",
    "memory_max",
];

fn input(stage: &Stage) -> KafkaJob {
    let settings =
        ConsumerSettings::new(&stage.bootstrap).group(&stage.topic("group")).topic(&stage.topic("in"));
    Source::kafka_job(settings)
}

fn output(stage: &Stage) -> PaneSink {
    Sink::kafka_panes(ProducerSettings::new(&stage.bootstrap), stage.topic("out"))
}

fn windows() -> Tumbling {
    Tumbling::of(secs(30)).grace(secs(1))
}

type Number = (String, i64);

/// Sums of numbers by key, in windows of ten seconds without grace; records are `key,number`.
fn sums(
    stage: &Stage,
) -> PaneJob<impl KeyedRecords<Key = str, Value = Number> + use<>, impl Aggregate<Number, Out = Row> + use<>>
{
    input(stage)
        .decode(|line: &[u8]| {
            let (key, number) = std::str::from_utf8(line)?.split_once(',').ok_or("no comma")?;
            Ok::<Number, Box<dyn std::error::Error + Send + Sync>>((key.to_owned(), number.parse()?))
        })
        .key_by(|number| number.0.as_str())
        .window(Tumbling::of(secs(10)))
        .aggregate(Aggregates::<Number>::new().sum("sum", |number| number.1))
}

async fn run<R, A>(stage: &Stage, job: PaneJob<R, A>) -> Result<JobReport, JobError>
where
    R: KeyedRecords,
    A: Aggregate<R::Value, Out = Row> + Sync,
{
    within(job.run_with(output(stage)).into_future()).await
}

/// The pane of [`sums`] for the window that ends at `end` seconds.
fn sum_pane(key: &str, end: i64, sum: i64) -> (String, i64, String) {
    let (start_ms, end_ms) = (end * 1_000 - 10_000, end * 1_000);
    let value =
        format!(r#"{{"key":"{key}","window_start_ms":{start_ms},"window_end_ms":{end_ms},"sum":{sum}}}"#);
    (key.into(), end_ms - 1, value)
}

async fn stage(name: &str, partitions: i32) -> Stage {
    let stage = Stage::embedded(name).await;
    stage.create("in", partitions).await;
    for topic in ["out", "late", "dead"] {
        stage.create(topic, 1).await;
    }
    stage
}

/// What serde_json and a map make of the same records.
fn oracle(records: &[(i32, i64, String)]) -> BTreeMap<(i64, String), Vec<Value>> {
    let mut groups: BTreeMap<(i64, String), Vec<Value>> = BTreeMap::new();
    for (_, timestamp, text) in records {
        let record: Value = serde_json::from_str(text).unwrap();
        let region = record["region"].as_str().unwrap().to_owned();
        groups.entry((timestamp.div_euclid(WINDOW) * WINDOW, region)).or_default().push(record);
    }
    groups
}

fn assert_pane(pane: &str, region: &str, start: i64, records: &[Value]) {
    let mut from = 0;
    for name in NAMES {
        let at = pane[from..].find(&format!("\"{name}\":"));
        from += at.unwrap_or_else(|| panic!("{name} in its place in {pane}"));
    }
    let pane: Value = serde_json::from_str(pane).unwrap();
    assert_eq!(pane.as_object().unwrap().len(), NAMES.len());
    assert_eq!(pane["region"], region);
    assert_eq!(pane["window_start_ms"], start);
    assert_eq!(pane["window_end_ms"], start + WINDOW);
    let floats = |name: &str| records.iter().map(|r| r[name].as_f64().unwrap()).collect::<Vec<f64>>();
    let whole = |name: &str| records.iter().map(|r| r[name].as_u64().unwrap()).sum::<u64>();
    let latency = floats("latency_ms");
    let count = latency.len() as f64;
    let mean = latency.iter().sum::<f64>() / count;
    let variance = latency.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    assert_eq!(pane["count"], latency.len());
    assert_eq!(pane["sla_breaches"], latency.iter().filter(|x| **x > 80.0).count());
    assert_eq!(pane["error_sum"], whole("error_count"));
    assert_eq!(pane["bytes_sum"], whole("request_size") + whole("response_size"));
    let exact = [
        ("latency_min", latency.iter().copied().fold(f64::INFINITY, f64::min)),
        ("latency_max", latency.iter().copied().fold(0.0, f64::max)),
        ("memory_max", floats("memory_mb").into_iter().fold(0.0, f64::max)),
    ];
    for (name, want) in exact {
        assert_eq!(pane[name].as_f64(), Some(want), "{name} of {region}");
    }
    for (name, want) in [("latency_avg", mean), ("latency_stddev", variance.sqrt())] {
        let got = pane[name].as_f64().unwrap();
        assert!((got - want).abs() <= 1e-9 * want.abs(), "{name} of {region}: {got}, not {want}");
    }
}

fn samples(layout: Layout, count: i64) -> Vec<(i32, i64, String)> {
    let mut generator = RecordGenerator::new(7, layout);
    let record = |n: i64| {
        // 30 ms apart, each fourth half a second early.
        let timestamp = START + n * 30 - if n % 4 == 0 { 500 } else { 0 };
        let mut line = Vec::new();
        generator.write_record(&mut line, timestamp);
        (i32::try_from(n % 3).unwrap(), timestamp, String::from_utf8(line).unwrap())
    };
    (0..count).map(record).collect()
}

#[tokio::test]
async fn the_rollup_of_sample_records_is_the_oracles() {
    let stage = stage("rollup", 3).await;
    let records = samples(Layout::Natural, 4_000);
    let all: Vec<_> = records.iter().map(|(p, t, r)| (*p, *t, r.as_str())).collect();
    let (first, rest) = all.split_at(2_500);
    let told = Arc::new(Mutex::new(Vec::new()));
    let job = || {
        let told = Arc::clone(&told);
        input(&stage)
            .decode(Json::<Metric>::projected())
            .key_by(|m| m.region.as_str())
            .named("region")
            .window(windows())
            .aggregate(rollup())
            .on_published(move |panes| {
                let keys = panes.iter().map(|pane| (pane.key.to_string(), pane.timestamp()));
                told.lock().unwrap().extend(keys);
            })
    };
    stage.feed(first).await;
    let report = run(&stage, job().stop_at_end()).await.unwrap();
    assert_eq!((report.counters.accepted, report.counters.late), (2_500, 0));
    assert!(report.windows > 0 && report.open_windows > 0, "{report:?}");
    stage.feed(rest).await;
    run(&stage, job().flush()).await.unwrap();

    let panes = stage.read("out").await;
    let want = oracle(&records);
    assert_eq!(panes.len(), want.len());
    let by_place: BTreeMap<(i64, &str), &str> =
        panes.iter().map(|(key, at, value)| ((at + 1 - WINDOW, key.as_str()), value.as_str())).collect();
    for ((start, region), records) in &want {
        assert_pane(by_place[&(*start, region.as_str())], region, *start, records);
    }
    // Whoever is told of panes hears of each once, in the order of window and key.
    let told = told.lock().unwrap();
    let order: Vec<_> = want.keys().map(|(start, key)| (key.clone(), start + WINDOW - 1)).collect();
    assert_eq!(*told, order);
}

#[tokio::test]
async fn what_cannot_be_decoded_ends_the_job_is_skipped_or_is_routed() {
    let stage = stage("undecodable", 1).await;
    stage.feed(&[(0, 1_000, "a,1"), (0, 2_000, "bad"), (0, 3_000, "a,2"), (0, 4_000, "b,x")]).await;
    let failing = sums(&stage).configure(|_, run| run.input = run.input.clone().group("failing"));
    let failed = run(&stage, failing.flush()).await;
    let Err(JobError::Unreadable { at, source, .. }) = &failed else { panic!("{failed:?}") };
    assert_eq!((at.offset, source.to_string().as_str()), (1, "no comma"));
    assert_eq!(stage.read("out").await, []);

    let report = run(&stage, sums(&stage).skip_undecodable().stop_at_end()).await.unwrap();
    assert_eq!((report.counters.accepted, report.counters.undecodable), (2, 2));
    stage.feed(&[(0, 5_000, "worse"), (0, 11_000, "a,7")]).await;
    // What was skipped stays so when it is read again.
    let report = run(&stage, sums(&stage).dead_letters_to(stage.topic("dead")).flush()).await.unwrap();
    assert_eq!(report.counters.undecodable, 1);
    assert_eq!(stage.read("dead").await, [(String::new(), 5_000, "worse".into())]);
    assert_eq!(
        headers(&stage, "dead").await,
        [("datum-reason".into(), "undecodable".into()), ("datum-input".into(), stage.topic("in") + "-0@4")]
    );
    assert_eq!(stage.read("out").await, [sum_pane("a", 10, 3), sum_pane("a", 20, 7)]);
}

#[tokio::test]
async fn late_records_and_those_too_far_ahead_are_counted_or_routed() {
    let stage = stage("late", 1).await;
    // Half an hour ahead, of which a minute is accepted.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let far = i64::try_from(now).unwrap() + 1_800_000;
    let sums = |stage: &Stage| sums(stage).configure(|job, _| job.max_ahead = 60_000);
    stage.feed(&[(0, 1_000, "a,1"), (0, 11_000, "a,2"), (0, 2_000, "a,3"), (0, far, "a,4")]).await;
    let report = run(&stage, sums(&stage).stop_at_end()).await.unwrap();
    assert_eq!((report.counters.late, report.counters.ahead), (1, 1));
    assert_eq!(stage.read("late").await, []);

    stage.feed(&[(0, 3_000, "b,5"), (0, far, "b,6")]).await;
    let late = || sums(&stage).late_to(stage.topic("late"));
    for _ in 0..2 {
        run(&stage, late().flush()).await.unwrap();
    }
    let routed = stage.read("late").await;
    assert_eq!(routed, [(String::new(), 3_000, "b,5".into()), (String::new(), far, "b,6".into())]);
    assert_eq!(headers(&stage, "late").await[0], ("datum-reason".into(), "late".into()));
    assert_eq!(stage.read("out").await, [sum_pane("a", 10, 1), sum_pane("a", 20, 2)]);
}

#[tokio::test]
async fn partitions_close_alone_when_they_are_co_partitioned() {
    let stage = stage("co", 2).await;
    let place = |key: &str| murmur2::partition_of(key.as_bytes(), 2).unwrap();
    let key_in = |partition| {
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        keys.into_iter().find(|key| place(key) == partition).unwrap()
    };
    let (zero, one) = (key_in(0), key_in(1));
    let (lines, other) = ([format!("{zero},1"), format!("{zero},2")], format!("{one},3"));
    stage.feed(&[(0, 1_000, &lines[0]), (0, 12_000, &lines[1]), (1, 1_500, &other)]).await;
    run(&stage, sums(&stage).co_partitioned().stop_at_end()).await.unwrap();
    // Partition 1 has not come as far, and partition 0 has not waited for it.
    assert_eq!(stage.read("out").await, [sum_pane(zero, 10, 1)]);

    stage.feed(&[(1, 2_000, &lines[0])]).await;
    let failed = run(&stage, sums(&stage).co_partitioned().stop_at_end()).await;
    let Err(JobError::KeyNotCoPartitioned { key, belongs, offset, .. }) = &failed else {
        panic!("{failed:?}")
    };
    assert_eq!((key.as_str(), *belongs, *offset), (zero, 0, 1));
}

#[derive(Projected)]
struct Borrowed<'a> {
    region: &'a str,
    latency_ms: f64,
}

/// A key that is computed, from a value that borrows.
struct Timed {
    area: u8,
    latency_ms: f64,
}

#[tokio::test]
async fn values_that_borrow_are_filtered_and_mapped_before_the_key() {
    let stage = stage("mapped", 2).await;
    let records = samples(Layout::Spaced, 300);
    let all: Vec<_> = records.iter().map(|(p, t, r)| (p % 2, *t, r.as_str())).collect();
    stage.feed(&all).await;
    let job = input(&stage)
        .decode(Json::<Borrowed<'_>>::projected())
        .filter(|m| m.region.starts_with("eu-"))
        .map(|m| Timed { area: m.region.as_bytes()[3], latency_ms: m.latency_ms })
        .filter(|m| m.latency_ms > 1.0)
        .key_by(|m| &m.area)
        .named("area")
        .window(windows())
        .aggregate(Aggregates::<Timed>::new().count("count"))
        .at_least_once()
        .flush();
    let report = run(&stage, job).await.unwrap();

    let mut want: BTreeMap<u8, u64> = BTreeMap::new();
    for (_, _, record) in &records {
        let record: Value = serde_json::from_str(record).unwrap();
        let region = record["region"].as_str().unwrap();
        if region.starts_with("eu-") && record["latency_ms"].as_f64().unwrap() > 1.0 {
            *want.entry(region.as_bytes()[3]).or_default() += 1;
        }
    }
    let accepted: u64 = want.values().sum();
    assert_eq!((report.counters.accepted, report.counters.filtered), (accepted, 300 - accepted));
    let mut counts: BTreeMap<u8, u64> = BTreeMap::new();
    for (key, _, pane) in stage.read("out").await {
        let pane: Value = serde_json::from_str(&pane).unwrap();
        assert_eq!(pane["area"].to_string(), key);
        *counts.entry(key.parse().unwrap()).or_default() += pane["count"].as_u64().unwrap();
    }
    assert_eq!(counts, want);
}

/// The key is lent by the record; only the value owns what it holds.
#[tokio::test]
async fn a_key_may_be_lent_by_a_record_that_is_taken_apart() {
    let stage = stage("lent", 2).await;
    let records = samples(Layout::Natural, 300);
    let all: Vec<_> = records.iter().map(|(p, t, r)| (p % 2, *t, r.as_str())).collect();
    stage.feed(&all).await;
    let job = input(&stage)
        .decode(Json::<Borrowed<'_>>::projected())
        .filter(|m| m.latency_ms > 1.0)
        .key_and_value(|m: &Borrowed<'_>| (m.region, m.latency_ms))
        .named("region")
        .window(windows())
        .aggregate(Aggregates::<f64>::new().count("count").max("most", |latency| *latency))
        .flush();
    run(&stage, job).await.unwrap();

    let mut want: BTreeMap<(String, i64), (u64, f64)> = BTreeMap::new();
    for (_, timestamp, record) in &records {
        let record: Value = serde_json::from_str(record).unwrap();
        let latency = record["latency_ms"].as_f64().unwrap();
        if latency > 1.0 {
            let last = timestamp.div_euclid(WINDOW) * WINDOW + WINDOW - 1;
            let pane =
                want.entry((record["region"].as_str().unwrap().to_owned(), last)).or_insert((0, f64::MIN));
            *pane = (pane.0 + 1, pane.1.max(latency));
        }
    }
    let mut got = BTreeMap::new();
    for (key, last, pane) in stage.read("out").await {
        let pane: Value = serde_json::from_str(&pane).unwrap();
        assert_eq!(pane["region"], key);
        got.insert((key, last), (pane["count"].as_u64().unwrap(), pane["most"].as_f64().unwrap()));
    }
    assert_eq!(got, want);
}

#[tokio::test]
async fn a_stop_is_graceful() {
    let stage = stage("stop", 1).await;
    stage.feed(&[(0, 1_000, "a,1"), (0, 11_000, "a,2")]).await;
    let (published, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let job = sums(&stage).on_published(move |panes| published.send(panes.len()).unwrap());
    let stop = async move { assert_eq!(seen.recv().await, Some(1)) };
    let report = within(job.run_with(output(&stage)).until(stop)).await.unwrap();
    assert_eq!((report.windows, report.open_windows), (1, 1));
    assert_eq!(stage.read("out").await, [sum_pane("a", 10, 1)]);
}

#[tokio::test]
async fn another_computation_under_the_same_group_is_refused_while_windows_are_open() {
    let stage = stage("other", 1).await;
    stage.feed(&[(0, 1_000, "a,1")]).await;
    run(&stage, sums(&stage).stop_at_end()).await.unwrap();
    let other = input(&stage)
        .decode(|line: &[u8]| Ok::<_, std::convert::Infallible>(line.len()))
        .key_by(|_| &())
        .window(Tumbling::of(secs(10)))
        .aggregate(Aggregates::<usize>::new().count("sum"));
    let refused = run(&stage, other.stop_at_end()).await;
    assert!(matches!(refused, Err(JobError::Refused(Refusal::OtherJob { .. }))), "{refused:?}");
}

/// Nothing is asked of a cluster for these: there is none.
#[tokio::test]
async fn a_chain_that_cannot_work_is_refused_before_anything_else() {
    let nowhere = Stage { bootstrap: "127.0.0.1:1".into(), name: "nowhere".into(), broker: None };
    let lengths =
        || input(&nowhere).decode(|line: &[u8]| Ok::<_, std::convert::Infallible>(Length(line.len())));
    let windowed = |windows| lengths().key_by(|length| length).named("length").window(windows);
    let count = |name: &'static str| Aggregates::<Length>::new().count(name);

    let none = run(&nowhere, windowed(windows()).aggregate(Aggregates::<Length>::new())).await;
    assert!(matches!(none, Err(JobError::Aggregates(AggregatesError::None))), "{none:?}");
    for taken in ["length", "window_start_ms", "window_end_ms"] {
        let refused = run(&nowhere, windowed(windows()).aggregate(count(taken))).await;
        assert!(
            matches!(&refused, Err(JobError::Aggregates(AggregatesError::Reserved { name })) if name == taken)
        );
    }
    let twice = run(&nowhere, windowed(windows()).aggregate(count("n").count("n"))).await;
    assert!(matches!(twice, Err(JobError::Aggregates(AggregatesError::Duplicate { .. }))), "{twice:?}");
    let empty = run(&nowhere, windowed(Tumbling::of(secs(0))).aggregate(count("n"))).await;
    assert!(matches!(empty, Err(JobError::Windows(TumblingError::SizeNotPositive { .. }))), "{empty:?}");
    let circle = windowed(windows()).aggregate(count("n")).late_to(nowhere.topic("in"));
    let circle = run(&nowhere, circle).await;
    assert!(matches!(circle, Err(JobError::OutputIsInput { .. })), "{circle:?}");
    let timeout =
        windowed(windows()).aggregate(count("n")).configure(|_, run| run.transaction_timeout = secs(60));
    let timeout = within(timeout.run_with(output(&nowhere)).until(ready(()))).await;
    assert!(matches!(timeout, Err(JobError::TransactionTimeout { .. })), "{timeout:?}");
}

/// A key of one's own, without bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Length(usize);

impl Key for Length {
    fn to_value(&self) -> datum_window::Value {
        self.0.into()
    }
}

impl GroupKey for Length {
    type Owned = Self;

    fn key_bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// The first record of a topic's headers, by name.
async fn headers(stage: &Stage, what: &str) -> Vec<(String, String)> {
    let settings = ConsumerSettings::new(&stage.bootstrap)
        .assign(TopicPartition::new(&*stage.topic(what), 0), StartAt::Beginning);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let batch = within(consumer.next()).await.unwrap();
    let record = batch.records().next().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let own = |name: &String| name == "datum-reason" || name == "datum-input";
    let all = record.headers().map(|h| (text(h.key), text(h.value.unwrap_or_default())));
    all.filter(|(name, _)| own(name)).collect()
}
