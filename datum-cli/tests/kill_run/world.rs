//! The run: a topic that is filled portion by portion, lives of the rollup over it, and what happens to them.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use nix::sys::signal::Signal;

use crate::foreign::{Console, dev_kafka};
use crate::input::{BAD, Input};
use crate::process::{Process, until};
use crate::size::{Event, Mode, Random, Size};
use crate::support::topic::{Cluster, Visible};
use crate::support::{Files, Run, datum};

const PARTITIONS: i32 = 6;
/// What growth adds.
const MORE: i32 = 2;
const KEEP: [(&str, &str); 2] = [("retention.ms", "-1"), ("retention.bytes", "-1")];

/// How often something is proven to have hit.
#[derive(Debug, Default)]
pub struct Tally {
    pub kills_at_points: u64,
    /// Of those, the ones of a member with an instance id.
    pub static_members_killed: u64,
    pub random_kills: u64,
    pub broker_restarts: u64,
    pub sessions_lost: u64,
    pub transactions_lost: u64,
    pub joined: u64,
    pub left: u64,
    pub foreigners_refused: u64,
    pub refused_beside_foreigners: u64,
    pub partitions_added: i32,
}

/// One run.
pub struct World {
    brokers: String,
    mode: Mode,
    files: Files,
    cluster: Cluster,
    pub topic: String,
    window_ms: i64,
    portion: u64,
    pub input: Input,
    random: Random,
    visible: Visible,
    lives: u64,
    begun: Instant,
    pub tally: Tally,
}

impl World {
    /// Topics, and the first portion of the input.
    pub fn new(brokers: &str, mode: Mode, size: &Size, events: &[Event], random: Random) -> Self {
        let cluster = Cluster::connect(brokers);
        let topic = format!("kill-run-{mode:?}-{}", std::process::id()).to_lowercase();
        cluster.create(&topic, PARTITIONS, &KEEP);
        for output in ["out", "late", "dead"] {
            cluster.create(&format!("{topic}-{output}"), 1, &KEEP);
        }
        let visible = cluster.visible(&format!("{topic}-out"));
        let mut world = Self {
            brokers: brokers.to_owned(),
            mode,
            files: Files::new(),
            cluster,
            topic,
            window_ms: size.window_ms(events),
            portion: size.portion(events),
            input: Input::new(mode, size, size.window_ms(events), PARTITIONS),
            random,
            visible,
            lives: 0,
            begun: Instant::now(),
            tally: Tally::default(),
        };
        world.feed();
        world
    }

    /// Lets something happen, and proves that it did, and that the rollup goes on.
    pub fn meet(&mut self, event: Event) {
        match event {
            Event::KillAt(point) => self.kill_at(point),
            Event::KillAfter(panes) => self.kill_after(panes),
            Event::BrokerRestart => self.restart_broker(),
            Event::PausedBeyondSession => self.pause_beyond_session(),
            Event::PausedBeyondTransaction => self.pause_beyond_transaction(),
            Event::SecondInstance { first_leaves } => self.second_instance(first_leaves),
            Event::ForeignAfter(protocol) => self.foreign_after(protocol),
            Event::ForeignBefore(protocol) => self.foreign_before(protocol),
            Event::Growth => self.grow(),
        }
        let panes = self.panes();
        println!("{:6.1} s: {event:?}, {panes} panes visible", self.begun.elapsed().as_secs_f64());
    }

    /// Feeds what is left of so many records and lets the rollup end by itself.
    pub fn finish(&mut self, records: u64) -> Run {
        let left = records - self.input.records();
        self.feed_of(left).done();
        let line = self.line("first", false);
        datum(line.iter().map(String::as_str).chain(["--stop-at-end", "--flush"])).ok()
    }

    /// New partitions under a running co-partitioned rollup end it, with nothing more published.
    pub fn end_by_growth(&mut self) {
        let before = self.panes();
        let rollup = self.begin("first", None);
        until("it has joined", || self.cluster.members(&self.topic) > 0);
        self.add_partitions();
        let (status, said) = rollup.end();
        self.refused(status, &said, "keys have moved, so a co-partitioned job ends");
        assert_eq!(self.panes(), before);
    }

    /// What is visible in one of the outputs.
    pub fn read(&self, output: &str) -> Vec<String> {
        let topic = format!("{}-{output}", self.topic);
        self.cluster.read(&topic).into_iter().map(|record| record.value.unwrap()).collect()
    }

    fn kill_at(&mut self, point: &str) {
        let logged = self.logged();
        let (rollup, armed) = self.armed(&format!("{point}:kill"));
        std::fs::write(armed, "").unwrap();
        self.feed();
        rollup.killed();
        assert_eq!(self.logged(), [logged, vec![format!("{point}:kill")]].concat(), "one kill, one line");
        self.tally.kills_at_points += 1;
    }

    fn kill_after(&mut self, panes: usize) {
        let rollup = self.progressing();
        let seen = self.panes();
        self.feed();
        until("so many panes are visible", || self.panes() >= seen + panes);
        rollup.signal(Signal::SIGKILL);
        rollup.killed();
        self.tally.random_kills += 1;
    }

    fn restart_broker(&mut self) {
        let mut rollup = self.progressing();
        let seen = self.panes();
        // Records are on their way when it dies.
        let written = self.cluster.written(&self.topic);
        let feeding = self.feed_of(self.portion);
        until("the generator writes", || self.cluster.written(&self.topic) > written + BAD);
        self.dev_kafka("kill");
        until("the broker is dead", || std::net::TcpStream::connect(&self.brokers).is_err());
        self.dev_kafka("node");
        feeding.done();
        self.progress(seen);
        assert!(!rollup.has_ended(), "{}", rollup.said());
        rollup.ask_to_end();
        self.tally.broker_restarts += 1;
    }

    fn pause_beyond_session(&mut self) {
        self.alone();
        let first = self.progressing();
        let second = self.joined();
        first.signal(Signal::SIGSTOP);
        until("it stands still", || first.is_stopped());
        until("its session has ended", || self.cluster.members(&self.topic) == 1);
        let seen = self.panes();
        self.feed();
        self.progress(seen);
        first.signal(Signal::SIGCONT);
        until("it has come back", || self.cluster.members(&self.topic) == 2);
        second.ask_to_end();
        let seen = self.panes();
        self.feed();
        self.progress(seen);
        first.ask_to_end();
        self.tally.sessions_lost += 1;
    }

    fn pause_beyond_transaction(&mut self) {
        self.alone();
        let (rollup, armed) = self.armed("output-written:stop");
        let seen = self.panes();
        std::fs::write(armed, "").unwrap();
        self.feed();
        until("it stands still", || rollup.is_stopped());
        let out = format!("{}-out", self.topic);
        assert!(self.cluster.has_open_transaction(&out), "it stopped inside a transaction");
        until("its session has ended", || self.cluster.members(&self.topic) == 0);
        until("its transaction has ended", || !self.cluster.has_open_transaction(&out));
        rollup.signal(Signal::SIGCONT);
        self.progress(seen);
        rollup.ask_to_end();
        self.tally.transactions_lost += 1;
    }

    fn second_instance(&mut self, first_leaves: bool) {
        self.alone();
        let first = self.progressing();
        let second = self.joined();
        let seen = self.panes();
        self.feed();
        self.progress(seen);
        let (leaves, stays) = if first_leaves { (first, second) } else { (second, first) };
        leaves.ask_to_end();
        until("it has left", || self.cluster.members(&self.topic) == 1);
        let seen = self.panes();
        self.feed();
        self.progress(seen);
        stays.ask_to_end();
        self.tally.left += 1;
    }

    fn foreign_after(&mut self, protocol: &str) {
        self.alone();
        let mut rollup = self.progressing();
        // It ends by itself, turned away.
        let (_, said) = self.foreigner(protocol).end();
        assert!(said.contains("terminating consumer process") && said.contains("Exception"), "{said}");
        let seen = self.panes();
        self.feed();
        self.progress(seen);
        assert!(!rollup.has_ended(), "{}", rollup.said());
        rollup.ask_to_end();
        self.tally.foreigners_refused += 1;
    }

    fn foreign_before(&mut self, protocol: &str) {
        self.alone();
        self.feed();
        let before = self.panes();
        let foreigner = self.foreigner(protocol);
        until("the foreigner has joined", || self.cluster.members(&self.topic) == 1);
        let (status, said) = self.begin("first", None).end();
        self.refused(status, &said, "the group's ownership is broken");
        assert_eq!(self.panes(), before);
        foreigner.signal(Signal::SIGTERM);
        drop(foreigner.end());
        self.alone();
        self.progressing().ask_to_end();
        self.tally.refused_beside_foreigners += 1;
    }

    fn grow(&mut self) {
        let rollup = self.progressing();
        // Windows closed before the new partitions are known are closed for their records, too.
        while self.input.is_at_a_close(self.window_ms) {
            self.feed_of(self.portion / 10).done();
        }
        self.add_partitions();
        let last = self.input.partitions - 1;
        until("the rollup reads them", || self.cluster.has_committed(&self.topic, &self.topic, last));
        let seen = self.panes();
        self.feed();
        self.progress(seen);
        rollup.ask_to_end();
    }

    fn add_partitions(&mut self) {
        self.input.partitions += MORE;
        self.cluster.grow(&self.topic, self.input.partitions);
        self.tally.partitions_added += MORE;
    }

    /// The rollup must have ended with this error.
    fn refused(&self, status: ExitStatus, said: &str, error: &str) {
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains(error), "{said}");
    }

    /// A life that has made some progress over a portion of its own.
    fn progressing(&mut self) -> Process {
        self.progressing_with(None)
    }

    /// The same, with a signal at a point as soon as the file returned is there.
    fn armed(&mut self, at: &str) -> (Process, PathBuf) {
        let armed = self.files.path(&format!("armed-{}", self.lives));
        (self.progressing_with(Some((at, armed.clone()))), armed)
    }

    fn progressing_with(&mut self, crash: Option<(&str, PathBuf)>) -> Process {
        let seen = self.panes();
        self.feed();
        let rollup = self.begin("first", crash);
        self.progress(seen);
        rollup
    }

    /// A second instance, in the group beside the first.
    fn joined(&mut self) -> Process {
        let second = self.begin("second", None);
        until("a second instance has joined", || self.cluster.members(&self.topic) == 2);
        self.tally.joined += 1;
        second
    }

    fn begin(&mut self, name: &str, crash: Option<(&str, PathBuf)>) -> Process {
        let is_static = self.random.index(2) == 0;
        let mut command = Command::new(env!("CARGO_BIN_EXE_datum"));
        command.args(self.line(name, is_static));
        if let Some((at, when)) = crash {
            command.env("DATUM_CRASH_AT", at).env("DATUM_CRASH_WHEN", when);
            command.env("DATUM_CRASH_LOG", self.files.path("crashes"));
            self.tally.static_members_killed += u64::from(is_static && at.ends_with("kill"));
        }
        let said = self.said("rollup");
        Process::start(&mut command, &said)
    }

    fn line(&self, name: &str, is_static: bool) -> Vec<String> {
        let topic = &self.topic;
        let mut line = format!(
            "rollup --brokers {} --topic {topic} --group {topic} --out-topic {topic}-out --late-topic {topic}-late \
             --on-bad-record dead-letter --dead-letter-topic {topic}-dead --window {}ms --idle-timeout 10m \
             --session-timeout 6s --format json",
            self.brokers, self.window_ms
        );
        if is_static {
            line += &format!(" --instance-id {topic}-{name}");
        }
        if self.mode == Mode::CoPartitioned {
            line += " --co-partitioned";
        }
        line.split(' ').map(str::to_owned).collect()
    }

    fn foreigner(&mut self, protocol: &str) -> Process {
        let said = self.said("foreigner");
        Console { brokers: &self.brokers, topic: &self.topic, group: &self.topic, protocol }.start(&said)
    }

    fn dev_kafka(&self, verb: &str) {
        let (tool, folder) = dev_kafka();
        // Not through a pipe: the node that it starts would keep it open.
        assert!(Command::new(tool).args([verb, &folder, "1"]).status().unwrap().success());
    }

    /// Where the next process says what it has to say.
    fn said(&mut self, what: &str) -> PathBuf {
        self.lives += 1;
        self.files.path(&format!("{what}-{}", self.lives))
    }

    /// Waits until nobody is in the group, not even the dead.
    fn alone(&self) {
        until("nobody is in the group", || self.cluster.members(&self.topic) == 0);
    }

    fn feed(&mut self) {
        self.feed_of(self.portion).done();
    }

    fn feed_of(&mut self, records: u64) -> Process {
        let (bad, mut command) = self.input.next(records, &self.brokers, &self.topic);
        let bad: Vec<&str> = bad.iter().map(String::as_str).collect();
        let partition = i32::try_from(self.random.index(usize::try_from(self.input.partitions).unwrap()));
        self.cluster.write(&self.topic, partition.unwrap(), "bad", &bad);
        let said = self.said("generator");
        Process::start(&mut command, &said)
    }

    fn panes(&mut self) -> usize {
        self.cluster.read_on(&mut self.visible)
    }

    /// Waits for more panes than were seen.
    fn progress(&mut self, seen: usize) {
        until("more panes are visible", || self.panes() > seen);
    }

    fn logged(&self) -> Vec<String> {
        let crashes = std::fs::read_to_string(self.files.path("crashes")).unwrap_or_default();
        crashes.lines().map(str::to_owned).collect()
    }
}
