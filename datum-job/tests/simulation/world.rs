//! The world: who moves next, which fault strikes, and how it all settles.

use std::collections::{BTreeMap, BTreeSet};

use datum_job::protocol::{Delivery, DriverSettings, Ended, Ending};
use datum_job::restore::Committed;
use datum_job::stored::{JobHash, Stored};
use datum_job::{JobSettings, Mode};
use datum_window::Tumbling;

use crate::broker::{Broker, Log, Rec, State};
use crate::lies::Lie;
use crate::rng::Rng;
use crate::task::{Excuse, Outcome, Task};

/// What a run is made of; everything else follows from the seed.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub partitions: usize,
    pub co_partitioned: bool,
    pub at_least_once: bool,
    /// Silent partitions stop holding windows open.
    pub idle: bool,
    /// As `idle`, with the traffic that is hardest on it.
    pub idle_focus: bool,
    /// Partitions are added.
    pub growth: bool,
    /// An operator resets offsets.
    pub operator: bool,
    /// A consumer of another kind joins, and may commit.
    pub foreign: bool,
    /// The group's offsets expire.
    pub expiry: bool,
    /// Some runs stop at the end.
    pub bounded: bool,
    /// Some of those flush.
    pub flush: bool,
    pub instances: usize,
    pub steps: usize,
    /// How often instances crash, 0 to 3.
    pub crash: u64,
    /// Instances are stopped for a while.
    pub pause: bool,
    /// Some input is written in transactions.
    pub transactions: bool,
    /// Some records lie far ahead of the clock.
    pub ahead: bool,
    pub bad: bool,
    pub filtered: bool,
    /// Partitions fall silent.
    pub quiet: bool,
    /// The log's start moves up to what is committed.
    pub retention: bool,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut r = Rng::new(seed ^ 0x5EED);
        let co_partitioned = r.chance(1, 5);
        let idle = r.chance(1, 2);
        let bounded = r.chance(1, 5);
        let rare = r.below(20);
        let mut plan = Self {
            seed,
            partitions: 1 + r.below(6),
            co_partitioned,
            at_least_once: r.chance(1, 6),
            idle,
            idle_focus: false,
            growth: !co_partitioned && r.chance(1, 4),
            operator: rare == 0,
            foreign: !co_partitioned && rare == 1,
            expiry: !co_partitioned && rare == 2,
            bounded,
            flush: bounded && r.chance(1, 2),
            instances: 1 + r.below(3),
            steps: 300 + r.below(900),
            crash: r.below(4) as u64,
            pause: r.chance(2, 3),
            transactions: r.chance(2, 3),
            ahead: r.chance(1, 3),
            bad: r.chance(1, 2),
            filtered: r.chance(1, 3),
            quiet: r.chance(1, 2),
            retention: r.chance(1, 3),
        };
        if plan.idle && !plan.co_partitioned && r.chance(1, 3) {
            plan.focus_on_idleness(&mut r);
        }
        if !plan.growth && !plan.expiry && !plan.foreign && r.chance(1, 12) {
            plan.operator = true;
        }
        plan
    }

    pub fn focus_on_idleness(&mut self, r: &mut Rng) {
        self.idle = true;
        self.idle_focus = true;
        self.co_partitioned = false;
        self.quiet = true;
        self.partitions = 2 + r.below(3);
        self.crash = r.below(2) as u64;
        self.filtered = false;
    }

    fn mode(&self) -> Mode {
        if self.co_partitioned { Mode::CoPartitioned } else { Mode::Exclusive }
    }
}

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

    // Instances.

    fn start(&mut self, i: usize) {
        let bounded = self.plan.bounded && !self.plan.co_partitioned;
        let x = &mut self.instances[i];
        if x.up || x.ended.is_some() {
            return;
        }
        x.up = true;
        x.paused = 0;
        x.stopping = false;
        x.finished.clear();
        x.ending = Ending::Never;
        if bounded && self.r.chance(1, 2) {
            let flush = self.plan.flush && self.r.chance(1, 3);
            x.ending = if flush { Ending::AtEndFlushed } else { Ending::AtEnd };
        }
    }

    fn stop(&mut self, i: usize) {
        let x = &mut self.instances[i];
        if !x.up || x.ending != Ending::Never {
            return;
        }
        x.stopping = true;
        x.tasks.values_mut().for_each(|t| t.driver.stop());
        if x.tasks.is_empty() {
            x.up = false;
            if let Some(member) = x.member.take() {
                self.b.leave(member);
            }
        }
    }

    fn crash(&mut self, i: usize, why: &'static str) {
        self.note(why);
        let x = &mut self.instances[i];
        x.up = false;
        x.member = None;
        x.paused = 0;
        for task in std::mem::take(&mut x.tasks).into_values() {
            self.learn(task);
        }
        self.instances[i].finished.clear();
    }

    /// Leaves the group and forgets everything, to join again at the next step.
    fn rejoin(&mut self, i: usize) {
        let x = &mut self.instances[i];
        if let Some(member) = x.member.take() {
            self.b.leave(member);
        }
        for task in std::mem::take(&mut self.instances[i].tasks).into_values() {
            self.learn(task);
        }
        self.instances[i].finished.clear();
    }

    /// Keeps what the oracle needs of a task.
    fn learn(&mut self, task: Task) {
        self.longest_metadata = self.longest_metadata.max(task.longest_metadata);
        self.excuses.extend(task.excuses);
    }

    fn step(&mut self, i: usize, faults: bool) -> Checked {
        if !self.instances[i].up || self.instances[i].paused > self.b.now {
            return Ok(());
        }
        let Some(member) = self.instances[i].member else {
            let x = &mut self.instances[i];
            x.member = Some(self.b.join(false));
            x.generation = 0;
            return Ok(());
        };
        if self.instances[i].tasks.is_empty() || self.r.chance(1, 3) {
            return self.heartbeat(i, member);
        }
        let units: Vec<usize> = self.instances[i].tasks.keys().copied().collect();
        let unit = units[self.r.below(units.len())];
        let task = self.instances[i].tasks.get_mut(&unit).expect("a unit of the instance");
        let outcome = task.step(&mut self.b, &mut self.r);
        let (committing, restoring) = (task.committing(), task.restoring());
        match outcome {
            Outcome::Goes => {}
            Outcome::Lost => {
                self.note("lost");
                self.rejoin(i);
            }
            Outcome::Ended(Ended::Finished) => self.finished(i, unit),
            Outcome::Ended(Ended::Blocked(p)) => return Err(format!("blocked by {p:?} without a limit")),
            Outcome::Ended(Ended::Refused(why)) => {
                self.rejoin(i);
                let x = &mut self.instances[i];
                x.up = false;
                x.ended = Some(why.to_string());
                if !self.expect_refusal {
                    return Err(format!("refused in a legal situation: {why}"));
                }
                self.note("refused");
            }
        }
        if faults && self.plan.crash > 0 {
            if committing && self.r.chance(self.plan.crash, 60) {
                self.crash(i, "crash in a transaction");
            } else if restoring && self.r.chance(self.plan.crash, 60) {
                self.crash(i, "crash in a restore");
            } else if self.r.chance(self.plan.crash, 500) {
                self.crash(i, "crash anywhere");
            }
        }
        Ok(())
    }

    fn finished(&mut self, i: usize, unit: usize) {
        let x = &mut self.instances[i];
        if let Some(task) = x.tasks.remove(&unit) {
            x.finished.insert(unit);
            self.learn(task);
        }
        let x = &mut self.instances[i];
        if x.finished.len() == self.b.units || (x.tasks.is_empty() && x.stopping) {
            self.rejoin(i);
            self.instances[i].up = false;
            self.note("ended gracefully");
        }
    }

    fn heartbeat(&mut self, i: usize, member: u32) -> Checked {
        let Some(generation) = self.b.heartbeat(member) else {
            self.note("membership lost");
            self.rejoin(i);
            return Ok(());
        };
        if generation == self.instances[i].generation {
            return Ok(());
        }
        if self.b.broken {
            self.rejoin(i);
            self.instances[i].up = false;
            self.instances[i].ended = Some(OWNERSHIP_BROKEN.to_owned());
            self.note("ownership broken");
            return Ok(());
        }
        for unit in 0..self.b.units {
            let mine = self.b.owners[unit] == Some(member);
            let x = &mut self.instances[i];
            if !mine {
                if let Some(task) = x.tasks.remove(&unit) {
                    self.learn(task);
                }
                continue;
            }
            if x.finished.contains(&unit) {
                continue;
            }
            if let Some(task) = x.tasks.get_mut(&unit) {
                task.driver.assigned(generation);
                continue;
            }
            let settings = DriverSettings {
                delivery: if self.plan.at_least_once { Delivery::AtLeastOnce } else { Delivery::ExactlyOnce },
                ending: x.ending,
                retry: 1,
                end_retry: 6,
                ..DriverSettings::new(self.settings.clone())
            };
            let mut task = Task::new(unit, member, generation, settings, self.resetting, self.lie);
            if x.stopping {
                task.driver.stop();
            }
            x.tasks.insert(unit, task);
        }
        self.instances[i].generation = generation;
        Ok(())
    }

    fn all_down(&self) -> bool {
        self.instances.iter().all(|x| !x.up || x.paused > self.b.now)
            && self.b.empty_group()
            && self.b.no_transactions()
    }

    // Operators and strangers.

    /// Everything is down, or paused past its session; then offsets are changed by hand.
    fn operator(&mut self) {
        let zombies = self.r.chance(1, 2);
        let wait = self.b.session.max(self.b.txn_timeout) + 1;
        for i in 0..self.instances.len() {
            if !self.instances[i].up {
                continue;
            }
            if zombies && self.instances[i].member.is_some() {
                self.instances[i].paused = self.b.now + wait + 101 + self.r.range(0, 50);
            } else {
                self.crash(i, "crash before an operator");
            }
        }
        self.wait_for_expiry(wait);
        if !self.all_down() || self.b.offsets.is_empty() {
            return;
        }
        if self.r.chance(1, 2) {
            let offsets: BTreeMap<u32, i64> = (0..self.b.logs.len())
                .map(|p| {
                    let log = &self.b.logs[p];
                    let span = (log.high_watermark() - log.start + 1) as usize;
                    (p as u32, log.start + self.r.below(span) as i64)
                })
                .collect();
            self.b.offsets = offsets.iter().map(|(p, o)| (*p, bare(*o))).collect();
            self.new_era(offsets);
            self.note("operator reset");
        } else {
            let p = self.r.below(self.b.logs.len()) as u32;
            let all_with_state = self.b.offsets.values().all(|c| !c.metadata.is_empty());
            if self.b.offsets.len() > 1 && all_with_state && self.b.offsets.contains_key(&p) {
                self.b.offsets.insert(p, bare(self.b.logs[p as usize].high_watermark()));
                self.expect_refusal = true;
                self.resetting = false;
                self.note("partial reset");
            }
        }
    }

    fn foreign_member(&mut self) {
        if let Some(member) = self.foreign.take() {
            self.b.leave(member);
            self.forgive();
            return;
        }
        self.foreign = Some(self.b.join(true));
        self.note("foreign member");
        if self.r.chance(1, 2) {
            self.expect_refusal = true;
            self.resetting = false;
            let all = self.r.chance(1, 2);
            let one = self.r.below(self.b.logs.len());
            for p in (0..self.b.logs.len()).filter(|p| all || *p == one) {
                self.b.offsets.insert(p as u32, bare(self.b.logs[p].high_watermark()));
            }
            self.note("foreign commit");
        }
    }

    /// Instances that ended because of a foreign member may start again.
    fn forgive(&mut self) {
        for x in &mut self.instances {
            if x.ended.as_deref() == Some(OWNERSHIP_BROKEN) {
                x.ended = None;
            }
        }
    }

    fn expire(&mut self) {
        for i in 0..self.instances.len() {
            if self.instances[i].up {
                self.crash(i, "crash before the offsets expire");
            }
        }
        self.wait_for_expiry(self.b.session.max(self.b.txn_timeout) + 1);
        if self.all_down() {
            self.b.offsets.clear();
            self.note("offsets expired");
            self.expect_refusal |= !self.b.output.is_empty();
        }
    }

    fn wait_for_expiry(&mut self, wait: i64) {
        for by in [wait, 50, 50] {
            self.b.advance(by);
        }
    }

    fn new_era(&mut self, offsets: BTreeMap<u32, i64>) {
        self.eras.push(Era { output_from: self.b.output.len(), offsets });
        // What the tasks of before excused is over.
        self.excuses.clear();
        for x in &mut self.instances {
            x.tasks.values_mut().for_each(|t| t.excuses.clear());
            x.ended = None;
        }
        self.resetting = true;
        self.expect_refusal = false;
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

fn bare(offset: i64) -> Committed {
    Committed { offset, metadata: String::new() }
}
