//! The rollup on a real Kafka, killed again and again: at the points of a cut at which a crash matters, and at random moments.
//!
//! Run by `ci/kill-run`, which says how large in the environment. A topic of six partitions, with keys across all of them, is filled at
//! a steady rate while the rollup is killed and started again; then it drains the rest. Each kill is shown to have hit (by signal 9,
//! and by a line of the process's own at a named point), and panes to have become visible between two kills at named points. At the
//! end the output, read committed by Kafka's own console consumer, must hold each pane of the naive oracle once, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use datum::kafka::wire::murmur2;
use serde_json::Value;
use support::topic::Cluster;
use support::{Files, datum, oracle};

const PARTITIONS: &str = "6";
/// Records per second of event time.
const PER_SECOND: u64 = 1_000;
const GRACE_MS: i64 = 1_000;
/// Long past, so that no window ends after now; the start of a window of any size used here.
const START_MS: i64 = 1_700_000_400_000;
const KEEP: [(&str, &str); 2] = [("retention.ms", "-1"), ("retention.bytes", "-1")];
const POINTS: [&str; 3] = ["before-transaction", "output-written", "transaction-ended"];
/// The passing at which it is killed: what the first one does is visible before. The very first only says where the input begins.
const NTH: u64 = 2;
/// How long what was committed may take to become visible.
const MARKERS: Duration = Duration::from_secs(20);
/// How long one life may last.
const LIFE: Duration = Duration::from_secs(120);
/// Within how long of its start it is killed at random.
const RANDOM: Duration = Duration::from_secs(4);
/// How many seconds of input there are for each kill.
const SECONDS_PER_KILL: u64 = 6;
/// Event time is cut in this many windows for each kill.
const WINDOWS_PER_KILL: u64 = 6;

/// How large the run is.
struct Size {
    records: u64,
    /// At each named point.
    kills: u64,
    /// At random moments.
    random: u64,
    seed: u64,
}

impl Size {
    fn of_environment() -> Self {
        let number = |name: &str, default: u64| {
            let given = std::env::var(format!("DATUM_KILL_RUN_{name}"));
            given.map_or(default, |text| text.parse().expect(name))
        };
        let (kills, random) = (number("KILLS_PER_POINT", 1), number("RANDOM_KILLS", 1));
        Self { records: number("RECORDS", 60_000), kills, random, seed: number("SEED", 1) }
    }

    fn deaths(&self) -> u64 {
        POINTS.len() as u64 * self.kills + self.random
    }

    /// So long that there are some windows for each kill, at most 30 s.
    fn window_ms(&self) -> i64 {
        let event_ms = self.records * 1_000 / PER_SECOND;
        let window = event_ms / (self.deaths().max(1) * WINDOWS_PER_KILL);
        i64::try_from((window / 100 * 100).clamp(500, 30_000)).unwrap()
    }

    /// The records, to wherever.
    fn generated(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_datum"));
        command
            .args(["gen", "--records", &self.records.to_string(), "--seed", &self.seed.to_string()])
            .args(["--event-time-rate", &PER_SECOND.to_string(), "--start-ms", &START_MS.to_string()])
            .args(["--disorder", "500ms"])
            .args(more);
        command
    }
}

/// How a life of the rollup ends.
#[derive(Clone, Copy, Debug)]
enum Death {
    At(&'static str),
    AfterMs(u64),
}

/// Deaths in an order that the seed decides.
fn deaths(size: &Size) -> Vec<Death> {
    let mut random = Random(size.seed);
    let mut deaths: Vec<Death> = (0..size.kills).flat_map(|_| POINTS.map(Death::At)).collect();
    let most = u64::try_from(RANDOM.as_millis()).unwrap();
    deaths.extend((0..size.random).map(|_| Death::AfterMs(random.below(most))));
    for i in (1..deaths.len()).rev() {
        let j = usize::try_from(random.below(i as u64 + 1)).unwrap();
        deaths.swap(i, j);
    }
    deaths
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// A child that does not outlive the test.
struct Process(Child);

impl Process {
    /// Waits for its end, for as long as a life may last.
    fn end(&mut self, what: &str) -> std::process::ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < LIFE, "{what} did not end");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Rollup<'a> {
    brokers: &'a str,
    topic: &'a str,
    out: &'a str,
    window: String,
    log: &'a Path,
}

impl Rollup<'_> {
    fn line(&self) -> Vec<&str> {
        vec![
            "rollup",
            "--brokers",
            self.brokers,
            "--topic",
            self.topic,
            "--out-topic",
            self.out,
            "--group",
            self.topic,
            "--window",
            &self.window,
            "--instance-id",
            self.topic,
            "--idle-timeout",
            "10m",
            "--format",
            "json",
        ]
    }

    /// A life that ends as it is told to.
    fn live(&self, death: Death, nth: u64) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_datum"));
        command.args(self.line()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let logged = self.logged();
        if let Death::At(point) = death {
            command.env("DATUM_CRASH_AT", format!("{point}:{nth}")).env("DATUM_CRASH_LOG", self.log);
        }
        let mut process = Process(command.spawn().unwrap());
        if let Death::AfterMs(delay) = death {
            std::thread::sleep(Duration::from_millis(delay));
            process.0.kill().unwrap();
        }
        let status = process.end(&format!("the rollup to be killed {death:?}"));
        assert_eq!(status.signal(), Some(9), "killed {death:?}, it ended with {status}");
        if let Death::At(point) = death {
            let after = self.logged();
            assert_eq!(after.len(), logged.len() + 1, "one kill, one line");
            assert_eq!(after.last().unwrap(), &format!("{point}:{nth}"));
        }
    }

    fn logged(&self) -> Vec<String> {
        std::fs::read_to_string(self.log).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

/// What the console consumer sees of the output: panes, each with the key and the time it should have.
fn console(brokers: &str, topic: &str) -> Vec<Value> {
    let tool = std::env::var("DATUM_DEV_KAFKA").expect("DATUM_DEV_KAFKA names dev/kafka");
    let folder =
        std::env::var("DATUM_TEST_KAFKA_DIR").expect("DATUM_TEST_KAFKA_DIR names the cluster's folder");
    let output = Command::new(tool)
        .args(["tool", &folder, "consumer.ConsoleConsumer", "--bootstrap-server", brokers, "--topic", topic])
        .args(["--from-beginning", "--isolation-level", "read_committed", "--timeout-ms", "10000"])
        .args(["--property", "print.key=true", "--property", "print.timestamp=true"])
        .output()
        .unwrap();
    let mut panes: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("CreateTime:"))
        .map(|line| {
            let (time, rest) = line["CreateTime:".len()..].split_once('\t').unwrap();
            let (key, value) = rest.split_once('\t').unwrap();
            let pane: Value = serde_json::from_str(value).unwrap();
            assert_eq!(pane["region"], key);
            assert_eq!(
                pane["window_end_ms"],
                time.parse::<i64>().unwrap() + 1,
                "a pane's time is its last moment"
            );
            pane
        })
        .collect();
    assert!(!panes.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    panes.sort_by_key(|pane| {
        (pane["window_start_ms"].as_i64().unwrap(), pane["region"].as_str().unwrap().to_owned())
    });
    panes
}

/// Panes of the same records, computed from a file of them.
fn expected(size: &Size, files: &Files) -> oracle::Answer {
    let file = files.path("records.ndjson");
    let made = size.generated(&["--out", file.to_str().unwrap()]).status().unwrap();
    assert!(made.success());
    let partitions: i32 = PARTITIONS.parse().unwrap();
    let records = BufReader::new(File::open(&file).unwrap()).lines().map(|line| {
        let fields: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let key = fields["partition_key"].as_str().unwrap();
        let partition = murmur2::partition_of(key.as_bytes(), partitions).unwrap();
        let timestamp = fields["timestamp"].as_i64().unwrap();
        oracle::Record { partition: usize::try_from(partition).unwrap(), timestamp, fields }
    });
    oracle::of_records(records, size.window_ms(), GRACE_MS)
}

#[test]
fn each_pane_is_published_once_however_often_the_rollup_is_killed() {
    let Some(brokers) = support::brokers::real() else { return };
    let size = Size::of_environment();
    println!(
        "{} records, {} kills at each point, {} random, windows of {} ms, seed {}",
        size.records,
        size.kills,
        size.random,
        size.window_ms(),
        size.seed
    );
    let files = Files::new();
    let mut answer = expected(&size, &files);
    assert_eq!(answer.late, 0, "the grace covers the disorder");

    let cluster = Cluster::connect(&brokers);
    let (topic, log) = (format!("kill-run-{}", std::process::id()), files.path("crashes"));
    let out = format!("{topic}-out");
    cluster.create(&topic, PARTITIONS.parse().unwrap(), &KEEP);
    cluster.create(&out, 1, &KEEP);
    let rate = (size.records / (size.deaths().max(1) * SECONDS_PER_KILL)).max(100).to_string();
    let to_topic = ["--brokers", &brokers, "--topic", &topic, "--partitions", PARTITIONS];
    let mut filling = size.generated(&[&to_topic[..], &["--key", "partition_key", "--rate", &rate]].concat());
    let mut filling = Process(filling.spawn().unwrap());

    let rollup = Rollup {
        brokers: &brokers,
        topic: &topic,
        out: &out,
        window: format!("{}ms", size.window_ms()),
        log: &log,
    };
    let (begun, mut visible, mut before) = (Instant::now(), cluster.visible(&out), 0);
    for (i, death) in deaths(&size).into_iter().enumerate() {
        rollup.live(death, if before == 0 { NTH + 1 } else { NTH });
        let dead = Instant::now();
        let mut panes = cluster.read_on(&mut visible);
        // The markers of a transaction are written after its end.
        while matches!(death, Death::At(_)) && panes == before {
            assert!(dead.elapsed() < MARKERS, "no progress since the last kill");
            std::thread::park_timeout(Duration::from_millis(20));
            panes = cluster.read_on(&mut visible);
        }
        before = panes;
        println!("{:6.1} s: kill {} {death:?}, {panes} panes visible", begun.elapsed().as_secs_f64(), i + 1);
    }
    let filled = filling.end("the generator");
    assert!(filled.success());
    let line = rollup.line();
    datum(line.iter().chain(&["--stop-at-end", "--flush"])).ok();

    answer.closed.append(&mut answer.open);
    let published = console(&brokers, &out);
    println!("{:6.1} s: {} panes", begun.elapsed().as_secs_f64(), published.len());
    oracle::assert_panes(&answer.closed, size.window_ms(), &published);
    let logged = rollup.logged();
    for point in POINTS {
        let hits = logged.iter().filter(|line| line.starts_with(point)).count() as u64;
        assert_eq!(hits, size.kills, "kills at {point}");
    }
}
