//! One owner: the real driver and machine, with the shell's part played step by step. Each step is at most one request
//! reaching the broker, so a crash can fall between any two.

use datum_job::machine::Observation;
use datum_job::protocol::{Answer, Driver, DriverSettings, Ended, Lost, Next, Request, Ticket};
use datum_job::restore::{Committed, PartitionFacts, StartFacts};
use datum_job::stored::{Stored, TopicId};
use datum_job::{Content, Mode, SideKind};
use datum_window::{RecordPosition, Watermark};

use crate::broker::{Broker, Offsets, Refused, State};
use crate::ids::Ids;
use crate::lies::Lie;
use crate::out::Out;
use crate::rng::Rng;

pub const TOPIC: TopicId = TopicId([7; 16]);

/// E was raised to `e` while partition `partition` was out of the minimum: what it sends from `from` on, appended at
/// `at` or later, may be late for windows up to E.
#[derive(Clone, Copy, Debug)]
pub struct Excuse {
    pub partition: u32,
    pub e: i64,
    pub from: i64,
    pub at: i64,
}

pub enum Outcome {
    Goes,
    Lost,
    Ended(Ended),
}

struct Flight {
    ticket: Ticket,
    request: Request,
    out: Vec<Out>,
    offsets: Offsets,
    done: usize,
}

pub struct Task {
    pub unit: usize,
    pub member: u32,
    pub driver: Driver<Ids, fn() -> Ids>,
    flight: Option<Flight>,
    epoch: u32,
    pub settings: DriverSettings,
    pub reset: bool,
    pub excuses: Vec<Excuse>,
    pub longest_metadata: usize,
    lie: Option<Lie>,
    exactly_once: bool,
}

impl Task {
    pub fn new(
        unit: usize,
        member: u32,
        generation: i32,
        settings: DriverSettings,
        reset: bool,
        lie: Option<Lie>,
    ) -> Self {
        let mut driver = Driver::new(settings.clone(), Ids::default as fn() -> Ids);
        driver.assigned(generation);
        Self {
            unit,
            member,
            driver,
            flight: None,
            epoch: 0,
            exactly_once: settings.delivery == datum_job::protocol::Delivery::ExactlyOnce,
            settings,
            reset,
            excuses: vec![],
            longest_metadata: 0,
            lie,
        }
    }

    /// Whether it is between the start of a commit and its end.
    pub fn committing(&self) -> bool {
        self.driver.cut().is_some()
    }

    /// Whether it has not come to where it was.
    pub fn restoring(&self) -> bool {
        self.driver.machine().is_none_or(|m| m.replaying())
    }

    /// Nothing left to do: all read, nothing in flight, no output waiting.
    pub fn drained(&self, b: &Broker) -> bool {
        let Some(machine) = self.driver.machine() else { return false };
        self.flight.is_none()
            && self.driver.cut().is_none()
            && machine.partition_count() as usize == b.logs.len()
            && machine.due(b.now).is_none()
            && machine.partitions().all(|p| machine.position(p) == Some(b.logs[p as usize].high_watermark()))
    }

    pub fn step(&mut self, b: &mut Broker, r: &mut Rng) -> Outcome {
        if self.flight.is_some() {
            if self.driver.wants_input() && r.chance(1, 2) {
                self.fetch(b, r);
            } else {
                self.request(b, r);
            }
            return Outcome::Goes;
        }
        match self.driver.poll(b.now) {
            Next::Send(ticket, request) => self.take_off(ticket, request),
            Next::Wait(_) => self.fetch(b, r),
            Next::Rejoin(_) => {
                if self.lie == Some(Lie::NoNewAssignment) {
                    let generation = b.heartbeat(self.member).unwrap_or(b.generation);
                    self.driver.assigned(generation);
                    return Outcome::Goes;
                }
                return Outcome::Lost;
            }
            Next::Ended(ended) => return Outcome::Ended(ended),
        }
        Outcome::Goes
    }

    fn take_off(&mut self, ticket: Ticket, request: Request) {
        let (mut out, mut offsets) = (vec![], vec![]);
        if let Some(cut) = self.driver.cut() {
            for closed in &cut.closed {
                let closes = self.settings.job.windows.closes_at(closed.window);
                for without in &closed.without {
                    self.excuses.push(Excuse {
                        partition: without.partition,
                        e: closes,
                        from: without.high_watermark,
                        at: if closed.flushed { i64::MIN } else { closed.at },
                    });
                }
                for (key, ids) in &closed.panes {
                    out.push(Out::Pane { window: closed.window, key: *key, ids: ids.clone() });
                }
            }
            for side in &cut.sides {
                let id = (side.at.partition, side.at.offset);
                out.push(match side.kind {
                    SideKind::Late(_) => Out::Late(id),
                    SideKind::Undecodable => Out::Dead(id),
                    SideKind::Ahead => Out::Ahead(id),
                });
            }
            for (partition, stored) in &cut.offsets {
                let stored = self.told(*partition, stored.clone());
                let metadata = stored.to_text();
                self.longest_metadata = self.longest_metadata.max(metadata.len());
                offsets.push((*partition, Committed { offset: stored.low, metadata }));
            }
        }
        self.flight = Some(Flight { ticket, request, out, offsets, done: 0 });
    }

    /// What is committed for `partition`, if the environment lies.
    fn told(&self, partition: u32, mut stored: Stored) -> Stored {
        match self.lie {
            Some(Lie::LowIsPosition) => {
                stored.low = stored.position;
                stored.steps.iter_mut().for_each(|s| s.offset = s.offset.max(stored.low));
                stored.steps.dedup_by_key(|s| s.offset);
            }
            Some(Lie::PositionForgets) => {
                let position = self.driver.machine().and_then(|m| m.position(partition));
                stored.position = position.unwrap_or(stored.position).max(stored.low);
            }
            _ => {}
        }
        stored
    }

    /// One step of the request in flight.
    fn request(&mut self, b: &mut Broker, r: &mut Rng) {
        let Some(mut flight) = self.flight.take() else { return };
        let ticket = flight.ticket;
        let answer = match flight.request {
            Request::InitProducer => self.init(b),
            Request::Facts => self.facts(b),
            Request::Confirm { generation } => match b.heartbeat(self.member) {
                _ if self.lie == Some(Lie::RefusesUnconfirmed) => Answer::Done,
                Some(now) if now == generation => Answer::Done,
                Some(_) => Answer::StaleGeneration,
                None => Answer::Refused(Lost::NotAMember),
            },
            Request::Produce => match self.produce(&mut flight, b) {
                Some(answer) => answer,
                None => {
                    self.flight = Some(flight);
                    return;
                }
            },
            Request::CommitOffsets { generation } => self.commit_offsets(&flight.offsets, generation, b, r),
            Request::EndTransaction => self.end_transaction(b, r),
        };
        let found = matches!(answer, Answer::Facts(_));
        self.driver.answer(ticket, answer, b.now);
        if found {
            self.met_partitions(b);
        }
    }

    fn init(&mut self, b: &mut Broker) -> Answer {
        if self.lie == Some(Lie::UnstableOffsets) {
            return Answer::Done; // made after the offsets are fetched
        }
        match b.init_producer(self.unit) {
            Ok(epoch) => {
                self.epoch = epoch;
                Answer::Done
            }
            Err(_) => Answer::Again,
        }
    }

    fn facts(&mut self, b: &mut Broker) -> Answer {
        let exclusive = self.settings.job.mode == Mode::Exclusive;
        let partitions: Vec<u32> =
            if exclusive { (0..b.logs.len() as u32).collect() } else { vec![self.unit as u32] };
        let unstable = self.lie == Some(Lie::UnstableOffsets);
        let Ok(mut committed) = b.offset_fetch(&partitions, !unstable) else { return Answer::Again };
        if unstable && self.exactly_once {
            // The offsets are kept while the producer is made, however long that takes.
            let epoch = loop {
                match b.init_producer(self.unit) {
                    Ok(epoch) => break epoch,
                    Err(_) => b.advance(1),
                }
            };
            self.epoch = epoch;
        }
        self.lie_about(&mut committed);
        let panes_only = self.lie == Some(Lie::PanesOnly);
        let output_exists =
            exclusive && b.output.iter().any(|o| !panes_only || matches!(o, Out::Pane { .. }));
        Answer::Facts(Box::new(StartFacts {
            topic: TOPIC,
            partition_count: b.logs.len() as u32,
            partitions: partitions
                .iter()
                .map(|p| PartitionFacts {
                    partition: *p,
                    committed: committed.get(p).cloned(),
                    log_start: b.logs[*p as usize].start,
                    high_watermark: b.logs[*p as usize].high_watermark(),
                })
                .collect(),
            known_count: None,
            compacted: false,
            output_exists,
            reset: self.reset || self.lie == Some(Lie::ResetUnasked),
        }))
    }

    fn lie_about(&self, committed: &mut std::collections::BTreeMap<u32, Committed>) {
        for c in committed.values_mut() {
            let Ok(Some(mut stored)) = Stored::from_text(c.offset, &c.metadata) else { continue };
            match self.lie {
                Some(Lie::WatermarkFromPublished) => stored.watermark = stored.published,
                Some(Lie::ReplayRoutes) => stored.position = stored.low,
                Some(Lie::StepsForgotten) => stored.steps.clear(),
                _ => continue,
            }
            c.metadata = stored.to_text();
        }
    }

    /// Partitions that start without a past beside published windows.
    fn met_partitions(&mut self, b: &Broker) {
        let Some(machine) = self.driver.machine() else { return };
        let Some(e) = machine.published().get() else { return };
        for partition in machine.partitions().filter(|p| !b.offsets.contains_key(p)) {
            self.excuses.push(Excuse { partition, e, from: 0, at: i64::MIN });
        }
    }

    fn produce(&mut self, flight: &mut Flight, b: &mut Broker) -> Option<Answer> {
        let Some(out) = flight.out.get(flight.done) else { return Some(Answer::Done) };
        if !self.exactly_once {
            b.output.push(out.clone());
            flight.done += 1;
            return None;
        }
        match b.produce(self.unit, self.epoch, out.clone()) {
            Ok(()) => {
                flight.done += 1;
                None
            }
            Err(Refused::Concurrent) => None,
            Err(_) => Some(Answer::Refused(Lost::Fenced)),
        }
    }

    fn commit_offsets(&mut self, offsets: &Offsets, generation: i32, b: &mut Broker, r: &mut Rng) -> Answer {
        let told = if self.lie == Some(Lie::NoGeneration) { None } else { Some(generation) };
        let result = if self.exactly_once {
            b.txn_offsets(self.unit, self.epoch, self.member, told, offsets)
        } else {
            b.commit(self.member, generation, offsets)
        };
        match result {
            Ok(()) if !self.exactly_once && r.chance(1, 8) => Answer::Unknown,
            Ok(()) => Answer::Done,
            Err(Refused::Concurrent) => Answer::Again,
            Err(Refused::IllegalGeneration) => Answer::StaleGeneration,
            Err(Refused::UnknownMember) => Answer::Refused(Lost::NotAMember),
            Err(_) => Answer::Refused(Lost::Fenced),
        }
    }

    /// One time in ten the request is lost, one time in ten its answer.
    fn end_transaction(&mut self, b: &mut Broker, r: &mut Rng) -> Answer {
        let fate = r.below(10);
        if fate == 0 {
            return Answer::Unknown;
        }
        let result = b.end(self.unit, self.epoch);
        match result {
            _ if fate == 1 => Answer::Unknown,
            Ok(()) => Answer::Done,
            Err(Refused::Concurrent) => Answer::Again,
            Err(Refused::InvalidState) => Answer::Refused(Lost::NotCommitted),
            Err(_) => Answer::Refused(Lost::Fenced),
        }
    }

    /// One fetch answer for one partition; now and then the metadata is looked at for new ones.
    fn fetch(&mut self, b: &Broker, r: &mut Rng) {
        if !self.driver.wants_input() {
            return;
        }
        let follows = self.settings.ending == datum_job::protocol::Ending::Never;
        let Some(machine) = self.driver.machine_mut() else { return };
        if self.settings.job.mode == Mode::Exclusive && follows && r.chance(1, 20) {
            for p in machine.partition_count()..b.logs.len() as u32 {
                machine.add_partition(p, b.logs[p as usize].start).expect("an exclusive job follows growth");
                if machine.published() != Watermark::NONE {
                    let e = machine.published().millis();
                    self.excuses.push(Excuse { partition: p, e, from: 0, at: i64::MIN });
                }
            }
        }
        let partitions: Vec<u32> = machine.partitions().collect();
        let p = partitions[r.below(partitions.len())];
        let log = &b.logs[p as usize];
        let position = machine.position(p).expect("a partition of the machine");
        let high_watermark =
            if self.lie == Some(Lie::StableOffsetProves) { log.last_stable() } else { log.high_watermark() };
        let seen = Observation { log_start: log.start, high_watermark, last_stable: log.last_stable() };
        if let Err(lost) = machine.observe(p, seen, b.now) {
            self.driver.input_failed(lost);
            return;
        }
        let to = log.last_stable().min(position + 1 + r.below(6) as i64);
        for offset in position..to {
            let entry = log.entries[offset as usize];
            if entry.state != State::Committed {
                machine.advance_to(p, offset + 1).expect("a partition of the machine");
                continue;
            }
            let content = match entry.rec {
                rec if rec.bad => Content::Undecodable,
                rec if rec.filtered => Content::Filtered,
                rec => Content::Record(rec.key),
            };
            let at = RecordPosition::new(p, offset, entry.rec.ts);
            machine.apply(at, content, b.now, || ()).expect("records come in order");
        }
        machine.observe(p, seen, b.now).expect("the log start was checked");
        machine.close(b.now);
    }
}
