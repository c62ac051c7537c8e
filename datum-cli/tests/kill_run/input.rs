//! The input: portions of generated records, with records between that cannot be decoded; and the naive answer.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use datum::kafka::wire::murmur2;
use serde_json::Value;

use crate::size::{Mode, Size};
use crate::support::oracle;

/// How long before now the last record happens at the latest, so that no window ends after now.
const PAST_MS: u64 = 600_000;
const GRACE_MS: i64 = 1_000;
/// More than the grace, so that some records are late.
const DISORDER: &str = "1200ms";
/// Records that cannot be decoded, with each portion.
pub const BAD: u64 = 5;

/// What has been written so far.
pub struct Input {
    mode: Mode,
    seed: u64,
    start_ms: u64,
    pub partitions: i32,
    portions: Vec<Portion>,
}

struct Portion {
    first: u64,
    records: u64,
    partitions: i32,
}

impl Input {
    /// Nothing yet of so many records, a millisecond of event time each.
    ///
    /// They happen today, as records usually do.
    pub fn new(mode: Mode, size: &Size, window_ms: i64, partitions: i32) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let window_ms = u64::try_from(window_ms).unwrap();
        let start_ms = (u64::try_from(now).unwrap() - PAST_MS - size.records) / window_ms * window_ms;
        println!("event time begins at {start_ms}");
        Self { mode, seed: size.seed, start_ms, partitions, portions: Vec::new() }
    }

    pub fn records(&self) -> u64 {
        self.portions.last().map_or(0, |last| last.first + last.records)
    }

    /// The next records: the values of those that cannot be decoded, and the command that writes the others.
    pub fn next(&mut self, records: u64, brokers: &str, topic: &str) -> (Vec<String>, Command) {
        let portion = Portion { first: self.records(), records, partitions: self.partitions };
        let mut command = self.generated(&portion);
        command.args(["--brokers", brokers, "--topic", topic, "--key", self.key()]);
        let bad = bad(self.portions.len() as u64);
        self.portions.push(portion);
        (bad, command)
    }

    /// All that cannot be decoded.
    pub fn undecodable(&self) -> Vec<String> {
        (0..self.portions.len() as u64).flat_map(bad).collect()
    }

    /// The answer over what was written.
    pub fn answer(&self, window_ms: i64) -> oracle::Answer {
        let records = self.portions.iter().flat_map(|portion| {
            let mut command = self.generated(portion);
            let mut made = command.args(["--out", "-"]).stdout(Stdio::piped()).spawn().unwrap();
            let lines = BufReader::new(made.stdout.take().unwrap()).lines();
            // Waited for when its lines are over.
            let ended = std::iter::from_fn(move || {
                assert!(made.wait().unwrap().success());
                None
            });
            lines.map(|line| self.record(&line.unwrap(), portion.partitions)).chain(ended)
        });
        oracle::of_records(records, window_ms, GRACE_MS)
    }

    /// Whether a record of the next portion may belong to a window that closed before.
    pub fn is_at_a_close(&self, window_ms: i64) -> bool {
        (GRACE_MS - 100..GRACE_MS + 400).contains(&(i64::try_from(self.records()).unwrap() % window_ms))
    }

    const fn key(&self) -> &'static str {
        match self.mode {
            Mode::Exclusive => "partition_key",
            Mode::CoPartitioned => "region",
        }
    }

    fn record(&self, line: &str, partitions: i32) -> oracle::Record {
        let fields: Value = serde_json::from_str(line).unwrap();
        let key = fields[self.key()].as_str().unwrap();
        let partition = murmur2::partition_of(key.as_bytes(), partitions).unwrap();
        let timestamp = fields["timestamp"].as_i64().unwrap();
        oracle::Record { partition: usize::try_from(partition).unwrap(), timestamp, fields }
    }

    /// A thousand records are a second of event time.
    fn generated(&self, portion: &Portion) -> Command {
        let number = |n: u64| n.to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_datum"));
        command
            .args(["gen", "--records", &number(portion.records), "--event-time-rate", "1000"])
            .args(["--seed", &number(self.seed.wrapping_add(portion.first))])
            .args(["--start-ms", &number(self.start_ms + portion.first), "--disorder", DISORDER]);
        command
    }
}

fn bad(portion: u64) -> Vec<String> {
    (0..BAD).map(|i| format!("{{\"broken\": {}", portion * BAD + i)).collect()
}
