//! The world: who moves next, which fault strikes, and how it all settles.

mod instances;
mod operator;
mod plan;

use std::collections::{BTreeMap, BTreeSet};

use datum_job::JobSettings;
use datum_job::protocol::Ending;
use datum_job::stored::{JobHash, Stored};
use datum_window::Tumbling;

use crate::broker::{Broker, Log, Rec, State};
use crate::lies::Lie;
use crate::rng::Rng;
use crate::task::{Excuse, Task};

pub use plan::Plan;

/// How far beyond the clock event time may lie, here.
pub const MAX_AHEAD: i64 = 400;

struct Instance {
    up: bool,
    ended: Option<String>,
    paused: i64,
    member: Option<u32>,
    generation: i32,
    tasks: BTreeMap<usize, Task>,
    ending: Ending,
    stopping: bool,
    finished: BTreeSet<usize>,
}

/// A stretch of output between two resets, and where its input begins.
pub struct Era {
    pub output_from: usize,
    pub offsets: BTreeMap<u32, i64>,
}

pub struct World {
    pub plan: Plan,
    pub b: Broker,
    pub settings: JobSettings,
    pub excuses: Vec<Excuse>,
    pub eras: Vec<Era>,
    pub longest_metadata: usize,
    pub events: BTreeMap<&'static str, u64>,
    instances: Vec<Instance>,
    r: Rng,
    lie: Option<Lie>,
    expect_refusal: bool,
    resetting: bool,
    foreign: Option<u32>,
    event_time: i64,
    silent_until: Vec<i64>,
}

pub type Checked = Result<(), String>;

const OWNERSHIP_BROKEN: &str = "ownership broken";

impl World {
    pub fn new(plan: Plan, lie: Option<Lie>) -> Self {
        let mut r = Rng::new(plan.seed);
        let focus = plan.idle_focus;
        let grace = if focus { r.range(0, 10) } else { r.range(0, 60) };
        let idle_timeout = if focus { r.range(3, 15) } else { r.range(10, 80) };
        let windows = Tumbling::of_millis(100).grace_millis(grace).checked().unwrap();
        let settings = JobSettings {
            mode: plan.mode(),
            max_ahead: MAX_AHEAD,
            idle_timeout: plan.idle.then_some(idle_timeout),
            idle_fresh: if lie == Some(Lie::StaleAnswers) { i64::MAX / 4 } else { 12 },
            side_bound: 1 + r.below(8),
            commit_interval: r.range(50, 400),
            end_wait: i64::MAX / 4,
            ..JobSettings::new(windows, JobHash(1))
        };
        settings.check().unwrap();
        let units = if plan.co_partitioned { plan.partitions } else { 1 };
        let b = Broker::new(plan.partitions, units, &mut r);
        let instances = (0..plan.instances)
            .map(|_| Instance {
                up: false,
                ended: None,
                paused: 0,
                member: None,
                generation: 0,
                tasks: BTreeMap::new(),
                ending: Ending::Never,
                stopping: false,
                finished: BTreeSet::new(),
            })
            .collect();
        Self {
            event_time: 10_000 - r.range(0, 1_500),
            silent_until: vec![0; plan.partitions],
            eras: vec![Era { output_from: 0, offsets: BTreeMap::new() }],
            plan,
            b,
            settings,
            excuses: vec![],
            longest_metadata: 0,
            events: BTreeMap::new(),
            instances,
            r,
            lie,
            expect_refusal: false,
            resetting: false,
            foreign: None,
        }
    }

    pub fn run(&mut self) -> Checked {
        for _ in 0..self.plan.steps {
            self.turn()?;
        }
        self.settle()
    }

    fn note(&mut self, what: &'static str) {
        *self.events.entry(what).or_default() += 1;
    }

    fn turn(&mut self) -> Checked {
        let kind = self.r.below(1_000);
        let i = self.r.below(self.instances.len());
        match kind {
            0..250 => self.produce(),
            250..285 => {
                if !self.b.open.is_empty() {
                    let index = self.r.below(self.b.open.len());
                    let commit = self.r.chance(3, 4);
                    self.b.end_input(index, commit);
                }
            }
            285..380 => {
                let by = if self.r.chance(1, 40) { self.r.range(50, 300) } else { self.r.range(1, 8) };
                self.b.advance(by);
            }
            380..940 => return self.step(i, true),
            940..970 => self.start(i),
            970..980 => {
                if self.plan.pause && self.instances[i].up {
                    self.instances[i].paused = self.b.now + self.r.range(10, 400);
                    self.note("paused");
                }
            }
            980..985 => self.stop(i),
            985..988 => {
                if self.plan.growth && self.b.logs.len() < 7 {
                    self.b.logs.push(Log::default());
                    self.silent_until.push(0);
                    self.note("partition added");
                }
            }
            988..991 => self.retain(),
            991..994 => {
                if self.plan.operator {
                    self.operator();
                }
            }
            994..997 => {
                if self.plan.foreign && self.r.chance(1, 3) {
                    self.foreign_member();
                }
            }
            _ => {
                if self.plan.expiry && self.r.chance(1, 3) {
                    self.expire();
                }
            }
        }
        Ok(())
    }

    // Input.

    fn produce(&mut self) {
        let p = self.r.below(self.b.logs.len());
        let (quiet, focus) = (self.plan.quiet, self.plan.idle_focus);
        if quiet && self.silent_until[p] > self.b.now {
            return;
        }
        let woken = focus && self.silent_until[p] > 0 && self.b.now < self.silent_until[p] + 15;
        if focus && p > 0 && !woken && self.r.chance(1, 8) {
            self.silent_until[p] = self.b.now + self.r.range(20, 120);
            return;
        }
        if quiet && self.r.chance(1, 40) {
            self.silent_until[p] = self.b.now + self.r.range(20, 300);
            return;
        }
        if self.event_time < self.b.now {
            self.event_time += self.r.range(0, if focus { 30 } else { 9 });
        }
        if self.r.chance(1, 60) {
            self.event_time += self.r.range(50, 350); // a gap
        }
        self.event_time = self.event_time.min(self.b.now + 300);
        let mut ts = self.event_time - self.r.range(0, 90);
        if self.r.chance(1, 12) {
            ts -= self.r.range(50, 900);
        }
        if woken {
            ts -= self.r.range(0, 250);
        }
        if self.plan.ahead && self.r.chance(1, 25) {
            ts = self.b.now + self.r.range(200, 900);
        }
        let key = self.r.below(2) as u8;
        let rec = Rec {
            ts,
            key: if self.plan.co_partitioned { p as u8 * 2 + key } else { key },
            bad: self.plan.bad && self.r.chance(1, 15),
            filtered: self.plan.filtered && self.r.chance(1, 4),
        };
        let mut txn = None;
        if self.plan.transactions && self.r.chance(1, 3) {
            if self.b.open.is_empty() || (self.b.open.len() < 3 && self.r.chance(1, 3)) {
                self.b.begin_input();
            }
            txn = Some(self.b.open[self.r.below(self.b.open.len())].0);
        }
        self.b.append(p, rec, txn);
    }

    /// Retention never passes what is committed: that a refusal follows otherwise is a test of its own.
    fn retain(&mut self) {
        if !self.plan.retention {
            return;
        }
        let p = self.r.below(self.b.logs.len());
        let Some(low) = self.b.offsets.get(&(p as u32)).map(|c| c.offset) else { return };
        let start = self.b.logs[p].start;
        if low > start && self.b.no_pending_offsets() {
            self.b.logs[p].start = start + self.r.below((low - start + 1) as usize) as i64;
        }
    }

    // The end.

    /// Faults end; each partition gets one last record that lets everything before it close; one instance drains it all
    /// and stops.
    fn settle(&mut self) -> Checked {
        self.plan.quiet = false;
        while !self.b.open.is_empty() {
            self.b.end_input(0, true);
        }
        if let Some(member) = self.foreign.take() {
            self.b.leave(member);
        }
        self.forgive();
        for i in 0..self.instances.len() {
            if self.instances[i].up {
                self.crash(i, "crash at the end");
            }
        }
        self.wait_for_expiry(600);
        let in_time =
            |e: &&crate::broker::Entry| e.state == State::Committed && e.rec.ts <= self.b.now + MAX_AHEAD;
        let top = self.b.logs.iter().flat_map(|l| &l.entries).filter(in_time).map(|e| e.rec.ts).max();
        let last = top.unwrap_or(self.b.now).max(self.b.now) + 300;
        self.b.advance(last - self.b.now);
        for p in 0..self.b.logs.len() {
            let key = if self.plan.co_partitioned { p as u8 * 2 } else { 0 };
            self.b.append(p, Rec { ts: last, key, bad: false, filtered: false }, None);
        }
        if let Some(why) = self.instances.iter().find_map(|x| x.ended.clone())
            && !self.expect_refusal
        {
            return Err(format!("ended: {why}"));
        }
        self.plan.bounded = false;
        if self.instances[0].ended.is_none() {
            self.start(0);
        }
        self.drain()
    }

    fn drain(&mut self) -> Checked {
        for n in 0..60_000 {
            if n % 5 == 0 {
                self.b.advance(1);
            }
            let refused = self.instances.iter().any(|x| x.ended.is_some());
            if refused && !self.instances[0].up {
                if !self.all_down() {
                    continue;
                }
                let offsets = self.b.logs.iter().enumerate().map(|(p, log)| (p as u32, log.start)).collect();
                self.b.offsets.clear();
                self.new_era(offsets);
                self.note("reset after a refusal");
                self.start(0);
            }
            self.step(0, false)?;
            let x = &self.instances[0];
            let drained = x.tasks.len() == self.b.units && x.tasks.values().all(|t| t.drained(&self.b));
            if !x.stopping && drained {
                self.stop(0);
            }
            let x = &self.instances[0];
            if x.stopping && !x.up && x.ended.is_none() {
                self.wait_for_expiry(50);
                if self.all_committed() {
                    return Ok(());
                }
                self.start(0);
            }
        }
        Err("stuck: never drained".into())
    }

    fn all_committed(&self) -> bool {
        self.b
            .logs
            .iter()
            .enumerate()
            .all(|(p, log)| self.stored(p as u32).is_some_and(|s| s.position == log.high_watermark()))
    }

    /// What is committed of partition `p`, if it is a job's.
    pub fn stored(&self, p: u32) -> Option<Stored> {
        let committed = self.b.offsets.get(&p)?;
        Stored::from_text(committed.offset, &committed.metadata).unwrap()
    }
}
