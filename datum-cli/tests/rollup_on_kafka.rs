//! `datum rollup` through Kafka's protocol against the naive oracle: on the embedded broker, and on a real one where the environment names it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use support::brokers::{Broker, real};
use support::{Files, datum, oracle, read_json};

const SIZE_MS: i64 = 30_000;
const GRACE_MS: i64 = 1_000;
const RECORDS: &str = "6000";
/// Long past, so that no window ends after now.
const START_MS: &str = "1700000010000";

/// Fills a topic, runs the rollup over it to its end, and compares with the oracle over the same records.
fn check(brokers: &str, name: &str, partitions: &str, layout: &str, disorder: &str) {
    let files = Files::new();
    let name = format!("{name}-{partitions}-{layout}-{}", std::process::id());
    let (out, file) = (format!("{name}-out"), files.path("records.ndjson"));
    let summary = files.path("summary.json");
    let records = [
        "--records",
        RECORDS,
        "--event-time-rate",
        "50",
        "--start-ms",
        START_MS,
        "--layout",
        layout,
        "--disorder",
        disorder,
        "--seed",
        "21",
    ];
    let to_topic =
        ["gen", "--brokers", brokers, "--topic", &name, "--partitions", partitions, "--key", "partition_key"];
    datum(to_topic.iter().chain(&records)).ok();
    datum(["gen", "--out", file.to_str().unwrap()].iter().chain(&records)).ok();

    let rollup = [
        "rollup",
        "--brokers",
        brokers,
        "--topic",
        &name,
        "--out-topic",
        &out,
        "--group",
        &name,
        "--stop-at-end",
        "--format",
        "json",
        "--summary-json",
        summary.to_str().unwrap(),
    ];
    let published = datum(rollup).ok().json_panes();
    let answer = oracle::of_lines(&std::fs::read_to_string(&file).unwrap(), SIZE_MS, GRACE_MS);
    oracle::assert_panes(&answer.closed, SIZE_MS, &published);
    let summary = read_json(&summary);
    assert_eq!(summary["records"].to_string(), RECORDS);
    assert_eq!(summary["panes"], answer.closed.len());
    assert_eq!(summary["open_windows"], answer.open_windows);
    assert_eq!(summary["late"], answer.late.len());

    // Run again: everything is committed, so nothing is published twice.
    assert!(datum(rollup).ok().json_panes().is_empty());
    // What was open is published by a flush, once.
    let flushed = datum(rollup.iter().chain(&["--flush"])).ok().json_panes();
    oracle::assert_panes(&answer.open, SIZE_MS, &flushed);
}

#[test]
fn panes_are_the_oracle_s_on_the_embedded_broker() {
    let broker = Broker::start();
    check(&broker.address, "in-order", "1", "natural", "0ms");
    check(&broker.address, "disorder", "6", "spread", "800ms");
    check(&broker.address, "disorder", "6", "spaced", "800ms");
    check(&broker.address, "late", "1", "long-floats", "9s");
}

#[test]
fn panes_are_the_oracle_s_on_a_real_kafka() {
    let Some(brokers) = real() else { return };
    check(&brokers, "in-order", "1", "natural", "0ms");
    check(&brokers, "disorder", "6", "spread", "800ms");
    check(&brokers, "disorder", "6", "spaced", "800ms");
    check(&brokers, "late", "1", "long-floats", "9s");
}

#[test]
fn with_no_argument_but_a_size_it_needs_nothing() {
    let files = Files::new();
    let summary = files.path("summary.json");
    let run = datum([
        "rollup",
        "--records",
        RECORDS,
        "--event-time-rate",
        "50",
        "--seed",
        "21",
        "--partitions",
        "3",
        "--format",
        "json",
        "--summary-json",
        summary.to_str().unwrap(),
    ])
    .ok();
    let published = run.json_panes();
    let start = published[0]["window_start_ms"].to_string();
    let file = files.path("records.ndjson");
    datum([
        "gen",
        "--out",
        file.to_str().unwrap(),
        "--records",
        RECORDS,
        "--event-time-rate",
        "50",
        "--seed",
        "21",
        "--start-ms",
        &start,
    ])
    .ok();
    let answer = oracle::of_lines(&std::fs::read_to_string(&file).unwrap(), SIZE_MS, GRACE_MS);
    oracle::assert_panes(&answer.closed, SIZE_MS, &published);
    assert_eq!(read_json(&summary)["records"].to_string(), RECORDS);
}

#[test]
fn a_missing_topic_ends_with_1_and_is_named() {
    let broker = Broker::start();
    let started = Instant::now();
    let missing = datum(["rollup", "--brokers", &broker.address, "--topic", "nowhere", "--stop-at-end"]);
    assert_eq!(missing.code, 1);
    let wanted = "topic `nowhere` does not exist, also not after 3s; check the name, or create it";
    assert!(missing.stderr.contains(wanted), "{}", missing.stderr);
    assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
}
