//! `datum enrich` against a naive expectation: on the embedded broker, and on a real one where the environment names it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use support::brokers::{Broker, real};
use support::topic::{Cluster, PATIENCE, Written};
use support::{Files, datum, read_json};

const RECORDS: [&str; 8] =
    ["--records", "3000", "--event-time-rate", "50", "--start-ms", "1700000010000", "--seed", "31"];
const FIELDS: [&str; 6] = ["event_id", "region", "timestamp", "latency_ms", "latency_ratio", "sla_breach"];

/// A topic of sample records, and what enriching them should give, by event.
struct Case {
    cluster: Cluster,
    brokers: String,
    name: String,
    files: Files,
    expected: Vec<Value>,
}

impl Case {
    fn new(brokers: &str, name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let files = Files::new();
        let file = files.path("records.ndjson");
        let to_topic =
            ["gen", "--brokers", brokers, "--topic", &name, "--partitions", "3", "--key", "partition_key"];
        datum(to_topic.iter().chain(&RECORDS)).ok();
        datum(["gen", "--out", file.to_str().unwrap()].iter().chain(&RECORDS)).ok();
        let mut expected: Vec<Value> = std::fs::read_to_string(&file)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|record| record["region"].as_str().unwrap().starts_with("eu-"))
            .map(|record| {
                let latency = record["latency_ms"].as_f64().unwrap();
                json!({
                    "event_id": record["event_id"],
                    "region": record["region"],
                    "timestamp": record["timestamp"],
                    "latency_ms": latency,
                    "latency_ratio": latency / 80.0,
                    "sla_breach": latency > 80.0,
                })
            })
            .collect();
        sort(&mut expected);
        let breaches = expected.iter().filter(|record| record["sla_breach"] == true).count();
        assert!(breaches > 0 && breaches < expected.len() && expected.len() < 3_000, "all cases occur");
        Self { cluster: Cluster::connect(brokers), brokers: brokers.to_owned(), name, files, expected }
    }

    /// Runs it from one topic to another as a group of its own name, to the end.
    fn enrich(&self, from: &str, to: &str, more: &[&str]) -> support::Run {
        let group = format!("{to}-group");
        let summary = self.files.path("summary.json");
        let line = [
            "enrich",
            "--brokers",
            &self.brokers,
            "--topic",
            from,
            "--out-topic",
            to,
            "--group",
            &group,
            "--stop-at-end",
            "--summary-json",
            summary.to_str().unwrap(),
        ];
        datum(line.iter().chain(more))
    }

    fn summary(&self) -> Value {
        read_json(&self.files.path("summary.json"))
    }

    /// Fails unless a topic holds exactly what is expected, with the key and the time of what it was made from.
    fn assert_is_in(&self, topic: &str) {
        let written = self.cluster.read(topic);
        let mut values: Vec<Value> = written
            .iter()
            .map(|record| {
                let text = record.value.as_deref().unwrap();
                let value: Value = serde_json::from_str(text).unwrap();
                assert_eq!(value["timestamp"], record.timestamp);
                let key = record.key.as_deref().unwrap();
                assert!(!key.is_empty());
                let places: Vec<_> =
                    FIELDS.iter().map(|f| text.find(&format!("\"{f}\":")).unwrap()).collect();
                assert!(places.is_sorted(), "{text}");
                value
            })
            .collect();
        sort(&mut values);
        assert_eq!(values, self.expected);
    }
}

fn sort(records: &mut [Value]) {
    records.sort_by_key(|record| record["event_id"].as_str().unwrap().to_owned());
}

/// Once, again, and again over its own output, which ends in markers where it was transactional.
fn check(brokers: &str, delivery: &str) {
    let case = Case::new(brokers, &format!("enrich-{delivery}"));
    let (out, second) = (format!("{}-out", case.name), format!("{}-second", case.name));
    case.enrich(&case.name, &out, &["--delivery", delivery]).ok();
    case.assert_is_in(&out);
    let summary = case.summary();
    assert_eq!(summary["records"], 3_000);
    assert_eq!(summary["published"], case.expected.len());
    assert_eq!(summary["filtered"], 3_000 - case.expected.len());
    assert_eq!(summary["undecodable"], 0);
    for name in ["seconds", "records_per_second", "cpu_us_per_record", "peak_rss_bytes"] {
        assert!(summary[name].as_f64().unwrap() > 0.0, "{name}");
    }

    case.enrich(&case.name, &out, &["--delivery", delivery]).ok();
    assert_eq!(case.summary()["records"], 0, "everything was committed, filtered records too");
    case.assert_is_in(&out);

    case.enrich(&out, &second, &["--delivery", delivery]).ok();
    case.assert_is_in(&second);
    case.enrich(&out, &second, &["--delivery", delivery]).ok();
    assert_eq!(case.summary()["records"], 0);
}

#[test]
fn what_is_published_is_as_expected_at_least_once() {
    let broker = Broker::start();
    check(&broker.address, "at-least-once");
}

#[test]
fn what_is_published_is_as_expected_exactly_once() {
    let broker = Broker::start();
    check(&broker.address, "exactly-once");
}

#[test]
fn what_is_published_is_as_expected_on_a_real_kafka() {
    let Some(brokers) = real() else { return };
    check(&brokers, "at-least-once");
    check(&brokers, "exactly-once");
}

#[test]
fn bad_records_fail_are_counted_or_kept() {
    let broker = Broker::start();
    let case = Case::new(&broker.address, "bad");
    let bad = ["no record", "{\"event_id\":\"a\",\"region\":\"eu-1\",\"timestamp\":1}", ""];
    case.cluster.write(&case.name, 1, "a key", &bad);

    let failed = case.enrich(&case.name, "bad-failed", &[]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(failed.stderr.contains(&format!("of {}-1 is not a record", case.name)), "{}", failed.stderr);
    assert!(failed.stderr.contains("--on-bad-record skip"), "{}", failed.stderr);

    case.enrich(&case.name, "bad-skipped", &["--on-bad-record", "skip"]).ok();
    case.assert_is_in("bad-skipped");
    let summary = case.summary();
    assert_eq!((summary["records"].as_u64(), summary["undecodable"].as_u64()), (Some(3_003), Some(3)));
    case.enrich(&case.name, "bad-skipped", &["--on-bad-record", "skip"]).ok();
    assert_eq!(case.summary()["records"], 0, "what was skipped is done");

    for delivery in ["at-least-once", "exactly-once"] {
        let (out, letters) = (format!("bad-kept-{delivery}"), format!("bad-letters-{delivery}"));
        let more =
            ["--on-bad-record", "dead-letter", "--dead-letter-topic", &letters, "--delivery", delivery];
        case.enrich(&case.name, &out, &more).ok();
        case.assert_is_in(&out);
        assert_eq!(case.summary()["undecodable"], 3);
        let as_they_came =
            bad.map(|value| Written { key: Some("a key".into()), value: Some(value.into()), timestamp: 7 });
        assert_eq!(case.cluster.read(&letters), as_they_came);
    }
}

#[test]
fn policies_and_topics_that_do_not_fit_end_with_2() {
    let line = ["enrich", "--brokers", "127.0.0.1:1"];
    for more in [&["--on-bad-record", "dead-letter"][..], &["--dead-letter-topic", "bad"]] {
        let run = datum(line.iter().chain(more));
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("dead-letter"), "{}", run.stderr);
    }
}

#[test]
fn an_output_topic_that_deletes_is_warned_about() {
    let broker = Broker::start();
    let case = Case::new(&broker.address, "kept");
    case.cluster.create("short", 1, &[("retention.ms", "1000"), ("retention.bytes", "-1")]);
    let warned = case.enrich(&case.name, "short", &[]).ok();
    assert!(warned.stderr.contains("short has retention.ms=1000"), "{}", warned.stderr);
    let created = case.enrich(&case.name, "unlimited", &[]).ok();
    assert!(!created.stderr.contains("warning"), "{}", created.stderr);
}

#[test]
#[cfg(unix)]
fn asked_to_stop_it_commits_what_it_has_written() {
    let broker = Broker::start();
    let case = Case::new(&broker.address, "stopped");
    for delivery in ["at-least-once", "exactly-once"] {
        let out = format!("stopped-{delivery}");
        // The records' time is long past: with the default retention the broker deletes them as they come.
        case.cluster.create(&out, 1, &[("retention.ms", "-1")]);
        let group = format!("{out}-group");
        let mut running = Command::new(env!("CARGO_BIN_EXE_datum"))
            .args(["enrich", "--brokers", &case.brokers, "--topic", &case.name, "--out-topic", &out])
            .args(["--group", &group, "--delivery", delivery])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (begun, mut visible) = (Instant::now(), case.cluster.visible(&out));
        while case.cluster.read_on(&mut visible) < case.expected.len() {
            assert!(begun.elapsed() < PATIENCE, "{} visible", visible.records.len());
            assert_eq!(running.try_wait().unwrap(), None, "it runs until it is told to stop");
            std::thread::yield_now();
        }
        let told = Command::new("kill").args(["-TERM", &running.id().to_string()]).status().unwrap();
        assert!(told.success());
        assert_eq!(running.wait().unwrap().code(), Some(0));
        case.enrich(&case.name, &out, &["--delivery", delivery]).ok();
        // What was filtered behind the last record that was kept may have been on its way.
        assert_eq!(case.summary()["published"], 0);
        case.assert_is_in(&out);
    }
}
