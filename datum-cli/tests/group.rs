//! `datum group`: what it shows of a rollup and of an ordinary consumer, and setting a group back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use support::brokers::{Broker, real};
use support::topic::PATIENCE;
use support::{Run, datum};

struct Case {
    brokers: String,
    name: String,
}

impl Case {
    fn new(brokers: &str, name: &str) -> Self {
        let case = Self { brokers: brokers.to_owned(), name: format!("{name}-{}", std::process::id()) };
        case.generate("3000", "1700000010000");
        case
    }

    fn generate(&self, records: &str, start_ms: &str) {
        let line = [
            "gen",
            "--brokers",
            &self.brokers,
            "--topic",
            &self.name,
            "--partitions",
            "2",
            "--key",
            "region",
        ];
        datum(line.iter().chain(&["--records", records, "--start-ms", start_ms, "--event-time-rate", "50"]))
            .ok();
    }

    fn job(&self, command: &str, more: &[&str]) -> Run {
        let out = format!("{}-{command}", self.name);
        let line = [command, "--brokers", &self.brokers, "--topic", &self.name, "--group", &self.name];
        datum(line.iter().chain(&["--out-topic", &out, "--stop-at-end"]).chain(more))
    }

    fn group(&self, action: &str, more: &[&str]) -> Run {
        let line =
            ["group", action, "--brokers", &self.brokers, "--topic", &self.name, "--group", &self.name];
        datum(line.iter().chain(more))
    }

    fn shown(&self) -> Vec<Value> {
        self.group("show", &["--json"]).ok().json_panes()
    }
}

fn sum(rows: &[Value], name: &str) -> i64 {
    rows.iter().map(|row| row[name].as_i64().unwrap()).sum()
}

fn a_rollup_is_shown_and_set_back(brokers: &str, more: &[&str]) {
    let case = Case::new(brokers, &format!("rollup{}", more.concat()));
    let before = case.shown();
    assert_eq!((before.len(), sum(&before, "lag")), (2, 3_000), "nothing is processed");
    assert!(before.iter().all(|row| row["committed"].is_null() && row["replay"].is_null()));

    let json = ["--format", "json"];
    let options: Vec<&str> = json.iter().chain(more).copied().collect();
    let panes = case.job("rollup", &options).ok().json_panes();
    assert!(!panes.is_empty());
    let rows = case.shown();
    assert_eq!((sum(&rows, "lag"), sum(&rows, "end")), (0, 3_000), "{rows:?}");
    assert!(sum(&rows, "replay") > 0, "the open window's records would be read again: {rows:?}");
    for row in &rows {
        assert_eq!(row["position"].as_i64(), row["end"].as_i64());
        assert_eq!(
            row["replay"].as_i64().unwrap(),
            row["position"].as_i64().unwrap() - row["committed"].as_i64().unwrap()
        );
        assert_eq!(
            (row["published_ms"].as_i64().unwrap() - 1_000) % 30_000,
            0,
            "a window's end and the grace"
        );
    }
    case.generate("500", "1700000070000");
    assert_eq!(sum(&case.shown(), "lag"), 500, "what came since is not processed");
    let table = case.group("show", &[]).ok().stdout;
    assert!(table.contains("LAG") && table.contains("500 records are not processed"), "{table}");
    assert!(table.contains("no members"), "{table}");

    case.group("reset", &["--to", "earliest"]).ok();
    let rows = case.shown();
    assert_eq!((sum(&rows, "committed"), sum(&rows, "lag")), (0, 3_500), "{rows:?}");
    let refused = case.job("rollup", &options);
    assert_eq!(refused.code, 1, "the state has gone: {}", refused.stdout);
    let again: Vec<&str> = options.iter().copied().chain(["--reset"]).collect();
    let mut repeated = case.job("rollup", &again).ok().json_panes();
    repeated.truncate(panes.len());
    assert_eq!(repeated, panes, "it starts over, and publishes the same");
}

#[test]
fn a_rollup_is_shown_and_set_back_on_the_embedded_broker() {
    let broker = Broker::start();
    a_rollup_is_shown_and_set_back(&broker.address, &[]);
}

#[test]
fn a_rollup_is_shown_and_set_back_on_a_real_kafka() {
    let Some(brokers) = real() else { return };
    a_rollup_is_shown_and_set_back(&brokers, &[]);
}

#[test]
fn an_ordinary_group_has_nothing_to_replay() {
    let broker = Broker::start();
    let case = Case::new(&broker.address, "enrich");
    case.job("enrich", &[]).ok();
    let rows = case.shown();
    assert_eq!(sum(&rows, "lag"), 0);
    assert!(rows.iter().all(|row| row["replay"].is_null() && row["published_ms"].is_null()), "{rows:?}");
    case.group("reset", &["--to", "100"]).ok();
    assert_eq!(sum(&case.shown(), "committed"), 200);
    case.group("reset", &["--to", "latest"]).ok();
    assert_eq!(sum(&case.shown(), "lag"), 0);
    assert_eq!(case.group("reset", &["--to", "yesterday"]).code, 2);
}

#[test]
fn a_group_with_members_is_not_set_back() {
    let broker = Broker::start();
    let case = Case::new(&broker.address, "busy");
    let mut running = Command::new(env!("CARGO_BIN_EXE_datum"))
        .args(["rollup", "--brokers", &case.brokers, "--topic", &case.name, "--group", &case.name])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while !case.group("show", &[]).ok().stdout.contains("one member: ") {
        assert!(since.elapsed() < PATIENCE, "it joins");
    }
    let refused = case.group("reset", &["--to", "earliest"]);
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("has members"), "{}", refused.stderr);
}
