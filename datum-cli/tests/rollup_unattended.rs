//! `datum rollup` left alone for the night, while its broker goes away: it says so, waits, and ends when it is asked to.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use support::brokers::Broker;
use support::datum;

const PATIENCE: Duration = Duration::from_secs(30);

/// The lines of an output as they come.
fn lines(of: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(of).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The exit code of a process that ends soon; it is ended by force otherwise.
fn ended(mut process: Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > PATIENCE {
            process.kill().unwrap();
            process.wait().unwrap();
            panic!("it does not end though it was asked to");
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_broker_that_does_not_return_is_warned_about_and_waited_for_until_asked_to_stop() {
    let broker = Broker::start();
    datum([
        "gen",
        "--brokers",
        &broker.address,
        "--topic",
        "in",
        "--records",
        "3000",
        "--event-time-rate",
        "50",
        "--start-ms",
        "1700000010000",
    ])
    .ok();
    let mut rollup = Command::new(env!("CARGO_BIN_EXE_datum"))
        .args(["rollup", "--brokers", &broker.address, "--topic", "in", "--out-topic", "out"])
        .args(["--session-timeout", "1s", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let panes = lines(rollup.stdout.take().unwrap());
    let log = lines(rollup.stderr.take().unwrap());
    panes.recv_timeout(PATIENCE).expect("a pane");

    drop(broker);
    let mut said = Vec::new();
    while !said.iter().any(|line: &String| line.contains("partitions were lost")) {
        said.push(log.recv_timeout(PATIENCE).expect("a warning"));
    }
    // It is still there, and does not repeat itself with every attempt.
    let quiet = Instant::now() + Duration::from_secs(2);
    let rest = loop {
        match log.recv_timeout(quiet.saturating_duration_since(Instant::now())) {
            Ok(line) => said.push(line),
            Err(why) => break why,
        }
    };
    assert_eq!(rest, RecvTimeoutError::Timeout, "it has ended: {said:#?}");
    assert!(said.len() <= 4, "{said:#?}");
    assert!(said.iter().all(|line| !line.contains('\x1b')), "a log in a file has no colours: {said:#?}");

    let told = Command::new("kill").args(["-TERM", &rollup.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(ended(rollup), Some(0), "what it published is committed, the rest is for the next start");
    assert!(log.iter().any(|line| line.contains("windows still open") || line.contains("window still open")));
}
