//! What the options of `datum rollup`, `gen` and `probe` promise, on the embedded broker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use support::brokers::Broker;
use support::topic::{Cluster, Written};
use support::{Files, Run, datum, oracle, read_json};

const SIZE_MS: i64 = 30_000;
const GRACE_MS: i64 = 1_000;
const SAMPLE: [&str; 8] =
    ["--records", "3000", "--event-time-rate", "50", "--start-ms", "1700000010000", "--seed", "17"];

/// A broker of its own, a topic of sample records `in`, and the same records as text.
struct Case {
    broker: Broker,
    files: Files,
    lines: String,
}

impl Case {
    fn new(more: &[&str]) -> Self {
        let (broker, files) = (Broker::start(), Files::new());
        let to_topic = ["gen", "--brokers", &broker.address, "--topic", "in"];
        datum(to_topic.iter().chain(&SAMPLE).chain(more)).ok();
        // A file has neither partitions nor keys.
        let of_file: Vec<&str> =
            more.chunks(2).filter(|pair| pair[0] == "--disorder").flatten().copied().collect();
        let lines = datum(["gen", "--out", "-"].iter().chain(&SAMPLE).chain(&of_file)).ok().stdout;
        Self { broker, files, lines }
    }

    fn rollup(&self, more: &[&str]) -> Run {
        self.rollup_to("out", more)
    }

    fn rollup_to(&self, out: &str, more: &[&str]) -> Run {
        let summary = self.files.path("summary.json");
        let line = [
            "rollup",
            "--brokers",
            &self.broker.address,
            "--topic",
            "in",
            "--out-topic",
            out,
            "--stop-at-end",
            "--format",
            "json",
            "--summary-json",
            summary.to_str().unwrap(),
        ];
        datum(line.iter().chain(more))
    }

    fn summary(&self) -> Value {
        read_json(&self.files.path("summary.json"))
    }

    fn cluster(&self) -> Cluster {
        Cluster::connect(&self.broker.address)
    }
}

fn values(records: &[Written]) -> Vec<&str> {
    let mut values: Vec<&str> = records.iter().map(|record| record.value.as_deref().unwrap()).collect();
    values.sort_unstable();
    values
}

#[test]
fn late_records_are_kept_once_in_the_topic_for_them() {
    let case = Case::new(&["--disorder", "9s"]);
    let answer = oracle::of_lines(&case.lines, SIZE_MS, GRACE_MS);
    assert!(!answer.late.is_empty());
    let panes = case.rollup(&["--late-topic", "late"]).ok().json_panes();
    oracle::assert_panes(&answer.closed, SIZE_MS, &panes);
    assert_eq!(case.summary()["late"], answer.late.len());

    let mut latest = i64::MIN;
    let mut expected: Vec<&str> = Vec::new();
    for line in case.lines.lines() {
        let at = serde_json::from_str::<Value>(line).unwrap()["timestamp"].as_i64().unwrap();
        if latest >= at - at.rem_euclid(SIZE_MS) + SIZE_MS + GRACE_MS {
            expected.push(line);
        }
        latest = latest.max(at);
    }
    expected.sort_unstable();
    let late = case.cluster().read("late");
    assert_eq!(values(&late), expected);
    for record in &late {
        let value: Value = serde_json::from_str(record.value.as_deref().unwrap()).unwrap();
        assert_eq!(value["timestamp"], record.timestamp, "it keeps its time");
    }
    // All is committed: neither panes nor late records come again.
    assert!(case.rollup(&["--late-topic", "late"]).ok().json_panes().is_empty());
    assert_eq!(case.cluster().read("late"), late);
}

#[test]
fn bad_records_fail_are_counted_or_kept() {
    let case = Case::new(&[]);
    let bad = ["not JSON", r#"{"region":"eu-1"}"#, r#"{"region":7}"#];
    case.cluster().write("in", 0, "k", &bad);
    let failed = case.rollup(&[]);
    assert_eq!(failed.code, 1, "{}", failed.stdout);
    let line = failed.complaint();
    assert!(line.starts_with("datum: offset 3000 of in-0 is not a record: "), "{line}");
    assert!(
        line.contains("`--on-bad-record skip`") && line.contains("`--on-bad-record dead-letter`"),
        "{line}"
    );
    assert!(line.contains("`--dead-letter-topic`"), "{line}");

    let answer = oracle::of_lines(&case.lines, SIZE_MS, GRACE_MS);
    let skipped = case.rollup_to("out-skips", &["--group", "skips", "--on-bad-record", "skip"]).ok();
    oracle::assert_panes(&answer.closed, SIZE_MS, &skipped.json_panes());
    assert_eq!(case.summary()["undecodable"], 3);

    let keeps = ["--group", "keeps", "--on-bad-record", "dead-letter", "--dead-letter-topic", "bad"];
    oracle::assert_panes(&answer.closed, SIZE_MS, &case.rollup_to("out-keeps", &keeps).ok().json_panes());
    assert_eq!(case.summary()["undecodable"], 3);
    let kept = case.cluster().read("bad");
    let mut expected = bad;
    expected.sort_unstable();
    assert_eq!(values(&kept), expected);
    assert!(kept.iter().all(|record| record.key.as_deref() == Some("k") && record.timestamp == 7));
    assert!(case.rollup_to("out-keeps", &keeps).ok().json_panes().is_empty());
    assert_eq!(case.cluster().read("bad"), kept, "kept once");
}

#[test]
fn co_partitioned_each_partition_closes_its_windows_alone() {
    let case = Case::new(&["--partitions", "3", "--key", "region"]);
    let panes = case.rollup(&["--co-partitioned", "--flush"]).ok().json_panes();
    // All regions of a window, whichever partition published them.
    let mut sorted: Vec<Value> = panes;
    sorted.sort_by_key(|pane| (pane["window_start_ms"].as_i64(), pane["region"].as_str().map(str::to_owned)));
    let answer = oracle::of_lines(&case.lines, SIZE_MS, GRACE_MS);
    let all: BTreeMap<_, _> = answer.closed.into_iter().chain(answer.open).collect();
    oracle::assert_panes(&all, SIZE_MS, &sorted);
    assert_eq!(case.summary()["open_windows"], 0);
    assert!(case.rollup(&["--co-partitioned", "--flush"]).ok().json_panes().is_empty());
}

#[test]
fn a_broken_promise_of_co_partitioning_ends_with_1_and_says_which_key() {
    let case = Case::new(&["--partitions", "3", "--key", "partition_key"]);
    let broken = case.rollup(&["--co-partitioned"]);
    assert_eq!(broken.code, 1, "{}", broken.stdout);
    assert!(broken.complaint().contains("`--co-partitioned` promises; run without it"), "{}", broken.stderr);
    assert!(broken.json_panes().is_empty() && case.cluster().read("out").is_empty(), "nothing is published");
}

#[test]
fn at_least_once_gives_the_same_panes_without_transactions() {
    let case = Case::new(&["--partitions", "2"]);
    let answer = oracle::of_lines(&case.lines, SIZE_MS, GRACE_MS);
    let line = ["--delivery", "at-least-once"];
    oracle::assert_panes(&answer.closed, SIZE_MS, &case.rollup(&line).ok().json_panes());
    assert!(case.rollup(&line).ok().json_panes().is_empty(), "what was committed is not published again");
    let flushed = case.rollup(&["--delivery", "at-least-once", "--flush"]).ok().json_panes();
    oracle::assert_panes(&answer.open, SIZE_MS, &flushed);
}

#[test]
fn offsets_of_something_else_are_refused_unless_it_is_told_to_start_there() {
    let case = Case::new(&[]);
    // An ordinary consumer of the same group has committed the end.
    datum([
        "enrich",
        "--brokers",
        &case.broker.address,
        "--topic",
        "in",
        "--out-topic",
        "enriched",
        "--group",
        "g",
        "--stop-at-end",
    ])
    .ok();
    let refused = case.rollup(&["--group", "g"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.complaint().contains("start with --reset"), "{}", refused.stderr);
    case.rollup(&["--group", "g", "--reset"]).ok();
    assert_eq!(case.summary()["records"], 0, "it starts at the offsets that are there");
    case.rollup(&["--group", "g"]).ok();
}

#[test]
fn a_probe_says_how_long_after_their_time_records_were_published() {
    let broker = Broker::start();
    let cluster = Cluster::connect(&broker.address);
    cluster.create("in", 2, &[]);
    let line = [
        "probe",
        "--brokers",
        &broker.address,
        "--topic",
        "in",
        "--field",
        "timestamp",
        "--records",
        "300",
        "--json",
    ];
    let probe = Command::new(env!("CARGO_BIN_EXE_datum")).args(line).stdout(Stdio::piped()).spawn().unwrap();
    // It tails: what it sees is written after it began. More than it waits for is written at a rate, so that it ends whenever it began.
    let mut generator = Command::new(env!("CARGO_BIN_EXE_datum"))
        .args([
            "gen",
            "--brokers",
            &broker.address,
            "--topic",
            "in",
            "--records",
            "1000000",
            "--rate",
            "1000",
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = probe.wait_with_output().unwrap();
    generator.kill().unwrap();
    generator.wait().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["records"], &report["unreadable"]), (&300.into(), &0.into()), "{report}");
    let quantiles: Vec<u64> = ["p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"]
        .map(|name| report[name].as_u64().unwrap())
        .to_vec();
    assert!(quantiles.is_sorted() && quantiles[4] < 60_000, "{report}");
}

#[test]
fn records_at_a_rate_happen_as_they_are_written() {
    let broker = Broker::start();
    let now = || i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let before = now();
    datum(["gen", "--brokers", &broker.address, "--topic", "in", "--records", "500", "--rate", "1000"]).ok();
    let after = now();
    let times: Vec<i64> = Cluster::connect(&broker.address).read("in").iter().map(|r| r.timestamp).collect();
    assert_eq!(times.len(), 500);
    assert_eq!(times[499] - times[0], 499, "a record per millisecond of event time");
    // The first window is a whole one, so event time begins up to 30 s before now.
    assert!(times[0] > before - 31_000 && times[499] <= after, "{} {before} {after}", times[0]);
}
