//! One owner's way from its assignment to its end.
//!
//! # Calling contract
//! - [`assigned`](Driver::assigned) when the group makes this member the owner, with the generation; again in each later
//!   generation that keeps it so. [`revoked`](Driver::revoked) when it does not.
//! - [`poll`](Driver::poll) says what to do next: send a request, wait, join the group again, or end. At most one request
//!   is out at a time; its outcome goes to [`answer`](Driver::answer) with the request's ticket. An answer to a request
//!   that an assignment or a loss has made void is ignored.
//! - Reading goes on beside this: while [`wants_input`](Driver::wants_input), feed
//!   [`machine_mut`](Driver::machine_mut) by its own contract.
//!
//! # What it keeps
//! - After an assignment, and only then: InitProducerId, OffsetFetch (stable offsets required), then reading. So a
//!   predecessor's open transaction is aborted before its offsets are looked at.
//! - Offsets are committed with member and generation. When the generation has moved on it waits for the heartbeat to say
//!   who owns now; still owner in the very next one, it keeps its state and commits with that.
//! - A fenced or lost owner drops everything and asks to join again; it never makes a new producer without a new
//!   assignment.
//! - An end of a transaction whose outcome is unknown is asked for again; if that fails, the state is dropped and what is
//!   committed decides.
//! - Before it ends with a refusal, a heartbeat confirms that the assignment still holds.
//!
//! # Deadlines
//! The caller gives every request one; an expired one is [`Answer::Unknown`].

use datum_window::Millis;

use crate::machine::{Cut, End, Machine, MachineError, Payload, Reason};
use crate::restore::{self, Refusal, StartFacts};
use crate::settings::JobSettings;

/// What a crash may do to the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Output and offsets in one transaction.
    ExactlyOnce,
    /// Output acknowledged by all replicas, then the offsets: a crash between the two publishes whole panes again.
    AtLeastOnce,
}

/// When a job ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Never: it follows the topic.
    Never,
    /// At the high watermarks seen at the start; open windows stay open for the next run.
    AtEnd,
    /// As `AtEnd`, and open windows are published, except those that end after the clock.
    AtEndFlushed,
}

/// The settings of a driver.
#[derive(Clone, Debug)]
pub struct DriverSettings {
    /// The job.
    pub job: JobSettings,
    /// What a crash may do to the output.
    pub delivery: Delivery,
    /// When it ends by itself.
    pub ending: Ending,
    /// The first wait before a request is sent again after `CONCURRENT_TRANSACTIONS` or `UNSTABLE_OFFSET_COMMIT` (5 ms).
    /// It doubles up to four times that.
    pub retry: Millis,
    /// How long an end of unknown outcome is asked for again (5 s) before the state is dropped.
    pub end_retry: Millis,
}

impl DriverSettings {
    /// Exactly once, without an end.
    #[must_use]
    pub const fn new(job: JobSettings) -> Self {
        Self { job, delivery: Delivery::ExactlyOnce, ending: Ending::Never, retry: 5, end_retry: 5_000 }
    }
}

/// Names one request; an answer carries it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// What to ask the cluster for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// InitProducerId for the transactional id; answers [`Answer::Done`].
    InitProducer,
    /// OffsetFetch with stable offsets required, then the log bounds and whether output of this group exists; answers
    /// [`Answer::Facts`].
    Facts,
    /// A heartbeat: does the assignment of this generation still hold?
    Confirm {
        /// The generation.
        generation: i32,
    },
    /// Produce the output of [`Driver::cut`]: in the transaction, or with acknowledgement by all.
    Produce,
    /// Commit the offsets of [`Driver::cut`]: TxnOffsetCommit in the transaction, OffsetCommit without one.
    CommitOffsets {
        /// The generation to commit with.
        generation: i32,
    },
    /// EndTxn, committing.
    EndTransaction,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// The facts asked for.
    Facts(Box<StartFacts>),
    /// Not now: CONCURRENT_TRANSACTIONS, UNSTABLE_OFFSET_COMMIT, a coordinator that loads or moves.
    Again,
    /// ILLEGAL_GENERATION or REBALANCE_IN_PROGRESS: still a member, of a generation that has passed.
    StaleGeneration,
    /// Refused for good: see [`Lost`].
    Refused(Lost),
    /// No answer, or none in time: it may have happened.
    Unknown,
}

/// Why an owner has to join again. Its state is dropped; what is committed decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// Another producer has the transactional id, or the broker ended the transaction by its timeout.
    #[error("the producer is fenced: another owner has started, or the transaction timed out")]
    Fenced,
    /// The group no longer knows this member.
    #[error("the group no longer knows this member")]
    NotAMember,
    /// The assignment had changed before a refusal could be confirmed.
    #[error("the assignment has changed")]
    AssignmentChanged,
    /// Output or offsets of unknown fate.
    #[error("the fate of a {0:?} request is unknown")]
    Unknown(Request),
    /// The transaction had ended otherwise.
    #[error("the transaction was not committed")]
    NotCommitted,
    /// The input has moved away; the restore decides.
    #[error(transparent)]
    Input(#[from] MachineError),
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was stopped, or has come to its end; all is committed.
    Finished,
    /// It does not start.
    Refused(Refusal),
    /// All is committed, but these partitions have somebody's open transaction below their end.
    Blocked(Vec<u32>),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this.
    Send(Ticket, Request),
    /// Nothing until an answer, an assignment, input, or this time.
    Wait(Option<Millis>),
    /// Leave and join the group again.
    Rejoin(Lost),
    /// It is over.
    Ended(Ended),
}

enum Phase<P: Payload> {
    Standby,
    Producer,
    Facts,
    Refusing(Refusal),
    Running(Box<Machine<P>>),
    Lost(Lost),
    Ended(Ended),
}

enum Lane<C, R> {
    Idle,
    Produce(Cut<C, R>),
    Offsets(Cut<C, R>),
    End { cut: Cut<C, R>, unknown_since: Option<Millis> },
}

/// Drives one owner: all partitions of an exclusive job, or one of a co-partitioned one.
pub struct Driver<P: Payload, F> {
    settings: DriverSettings,
    make_payload: F,
    phase: Phase<P>,
    lane: Lane<P::Closed, P::Side>,
    generation: i32,
    /// The generation in which a commit was refused as stale; a newer one frees it.
    stale: Option<i32>,
    out: Option<(Ticket, Request)>,
    tickets: u64,
    retry_at: Option<Millis>,
    retries: u32,
    stopping: bool,
}

impl<P: Payload, F: FnMut() -> P> Driver<P, F> {
    /// A driver that waits for its first assignment. `make_payload` makes an empty payload at each start.
    pub const fn new(settings: DriverSettings, make_payload: F) -> Self {
        Self {
            settings,
            make_payload,
            phase: Phase::Standby,
            lane: Lane::Idle,
            generation: -1,
            stale: None,
            out: None,
            tickets: 0,
            retry_at: None,
            retries: 0,
            stopping: false,
        }
    }

    /// This member is the owner in `generation`. State is kept if it was so in the generation just before.
    pub fn assigned(&mut self, generation: i32) {
        let next = generation == self.generation.wrapping_add(1);
        self.stale = self.stale.filter(|stale| *stale >= generation);
        let keeps = next && !matches!(self.phase, Phase::Standby | Phase::Lost(_));
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        self.generation = generation;
        if !keeps {
            self.reset(match self.settings.delivery {
                Delivery::ExactlyOnce => Phase::Producer,
                Delivery::AtLeastOnce => Phase::Facts,
            });
        }
    }

    /// This member is no longer the owner: state is dropped.
    pub fn revoked(&mut self) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.generation = -1;
            self.reset(Phase::Standby);
        }
    }

    /// Asks for a graceful end: what is done is committed, then [`Ended::Finished`].
    pub fn stop(&mut self) {
        self.stopping = true;
        if let Phase::Running(machine) = &mut self.phase {
            machine.stop();
        }
    }

    /// The input has told that this owner cannot go on.
    pub fn input_failed(&mut self, error: MachineError) {
        self.lose(Lost::Input(error));
    }

    fn reset(&mut self, phase: Phase<P>) {
        self.phase = phase;
        self.lane = Lane::Idle;
        self.out = None;
        self.retry_at = None;
        self.retries = 0;
    }

    fn lose(&mut self, lost: Lost) {
        self.generation = -1;
        self.reset(Phase::Lost(lost));
    }

    /// What to do at `now`.
    pub fn poll(&mut self, now: Millis) -> Next {
        if self.out.is_some() {
            return Next::Wait(None);
        }
        if let Some(at) = self.retry_at {
            if now < at {
                return Next::Wait(Some(at));
            }
            self.retry_at = None;
        }
        match &self.phase {
            Phase::Standby if self.stopping => self.end(Ended::Finished),
            Phase::Standby => Next::Wait(None),
            Phase::Producer | Phase::Facts if self.stopping => self.end(Ended::Finished),
            Phase::Producer => self.send(Request::InitProducer),
            Phase::Facts => self.send(Request::Facts),
            Phase::Refusing(_) => self.send(Request::Confirm { generation: self.generation }),
            Phase::Running(_) => self.run(now),
            Phase::Lost(lost) => Next::Rejoin(*lost),
            Phase::Ended(ended) => Next::Ended(ended.clone()),
        }
    }

    fn send(&mut self, request: Request) -> Next {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.out = Some((ticket, request));
        Next::Send(ticket, request)
    }

    fn end(&mut self, ended: Ended) -> Next {
        self.reset(Phase::Ended(ended.clone()));
        Next::Ended(ended)
    }

    fn run(&mut self, now: Millis) -> Next {
        if matches!(self.lane, Lane::Idle) {
            let Phase::Running(machine) = &mut self.phase else { return Next::Wait(None) };
            if self.settings.ending != Ending::Never && !self.stopping {
                let blocked = !machine.blocked(now).is_empty();
                if machine.at_end() || blocked {
                    machine.close(now);
                    if self.settings.ending == Ending::AtEndFlushed && !blocked {
                        machine.flush(now);
                    }
                    machine.stop();
                    self.stopping = true;
                }
            }
            let Some(reason) = machine.due(now) else { return Next::Wait(machine.deadline()) };
            let cut = machine.cut(reason, now);
            self.lane = if cut.has_output() { Lane::Produce(cut) } else { Lane::Offsets(cut) };
        }
        match &self.lane {
            Lane::Idle => Next::Wait(None),
            Lane::Produce(_) => self.send(Request::Produce),
            Lane::Offsets(_) if self.stale == Some(self.generation) => Next::Wait(None),
            Lane::Offsets(_) => self.send(Request::CommitOffsets { generation: self.generation }),
            Lane::End { .. } => self.send(Request::EndTransaction),
        }
    }

    /// Whether the answer to the request with `ticket` is still waited for: an assignment or a loss makes it void.
    #[must_use]
    pub fn awaits(&self, ticket: Ticket) -> bool {
        self.out.is_some_and(|(out, _)| out == ticket)
    }

    /// The outcome of the request with `ticket`.
    pub fn answer(&mut self, ticket: Ticket, answer: Answer, now: Millis) {
        let Some((_, request)) = self.out.filter(|(t, _)| *t == ticket) else { return };
        self.out = None;
        match answer {
            Answer::Again => self.again(now),
            Answer::Refused(lost) => self.lose(lost),
            Answer::Done => self.done(request, now),
            Answer::Facts(facts) => self.facts(&facts, now),
            Answer::StaleGeneration => match request {
                // Only the next assignment can tell whether this is still the owner.
                Request::CommitOffsets { generation } => self.stale = Some(generation),
                Request::Confirm { .. } => self.lose(Lost::AssignmentChanged),
                _ => self.lose(Lost::NotAMember),
            },
            Answer::Unknown => self.unknown(request, now),
        }
    }

    fn again(&mut self, now: Millis) {
        self.retry_at = Some(now.saturating_add(self.settings.retry << self.retries.min(2)));
        self.retries = self.retries.saturating_add(1);
    }

    fn unknown(&mut self, request: Request, now: Millis) {
        match request {
            Request::InitProducer | Request::Facts | Request::Confirm { .. } => self.again(now),
            Request::EndTransaction => {
                let Lane::End { unknown_since, .. } = &mut self.lane else { return };
                let since = *unknown_since.get_or_insert(now);
                if now.saturating_sub(since) >= self.settings.end_retry {
                    self.lose(Lost::Unknown(request));
                } else {
                    self.again(now);
                }
            }
            // Offsets outside a transaction can be committed twice; everything else ends with the state.
            Request::CommitOffsets { .. } if self.settings.delivery == Delivery::AtLeastOnce => {
                self.again(now);
            }
            Request::Produce | Request::CommitOffsets { .. } => self.lose(Lost::Unknown(request)),
        }
    }

    fn done(&mut self, request: Request, now: Millis) {
        self.retries = 0;
        match request {
            Request::InitProducer => self.phase = Phase::Facts,
            Request::Facts => self.again(now),
            Request::Confirm { .. } => {
                if let Phase::Refusing(refusal) = &self.phase {
                    let ended = Ended::Refused(refusal.clone());
                    self.reset(Phase::Ended(ended));
                }
            }
            Request::Produce | Request::CommitOffsets { .. } | Request::EndTransaction => self.advance(now),
        }
    }

    fn advance(&mut self, now: Millis) {
        match std::mem::replace(&mut self.lane, Lane::Idle) {
            Lane::Produce(cut) => self.lane = Lane::Offsets(cut),
            Lane::Offsets(cut) => match self.settings.delivery {
                Delivery::ExactlyOnce => self.lane = Lane::End { cut, unknown_since: None },
                Delivery::AtLeastOnce => self.committed(cut.reason, now),
            },
            Lane::End { cut, .. } => self.committed(cut.reason, now),
            Lane::Idle => {}
        }
    }

    fn committed(&mut self, reason: Reason, now: Millis) {
        if reason != Reason::Stop {
            return;
        }
        let Phase::Running(machine) = &self.phase else { return };
        let blocked = machine.blocked(now);
        let ended = if blocked.is_empty() { Ended::Finished } else { Ended::Blocked(blocked) };
        self.reset(Phase::Ended(ended));
    }

    fn facts(&mut self, facts: &StartFacts, now: Millis) {
        let job = &self.settings.job;
        match restore::decide(job.mode, job.hash, facts) {
            Err(refusal) => self.phase = Phase::Refusing(refusal),
            Ok(start) => {
                let payload = (self.make_payload)();
                let mut machine =
                    Machine::start(job.clone(), facts.topic, facts.partition_count, &start, payload, now);
                if self.settings.ending != Ending::Never {
                    let end = |p: &restore::PartitionFacts| End {
                        partition: p.partition,
                        log_start: p.log_start,
                        high_watermark: p.high_watermark,
                    };
                    machine.stop_at_end(&facts.partitions.iter().map(end).collect::<Vec<_>>());
                }
                if self.stopping {
                    machine.stop();
                }
                self.phase = Phase::Running(Box::new(machine));
            }
        }
        self.retries = 0;
    }

    /// Whether records may be read now.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        let starting = self.cut().is_some_and(|cut| cut.reason == Reason::Start);
        !starting && self.machine().is_some_and(Machine::wants_input)
    }

    /// The cut that is being committed.
    #[must_use]
    pub const fn cut(&self) -> Option<&Cut<P::Closed, P::Side>> {
        match &self.lane {
            Lane::Idle => None,
            Lane::Produce(cut) | Lane::Offsets(cut) | Lane::End { cut, .. } => Some(cut),
        }
    }

    /// The machine, once the job has started.
    #[must_use]
    pub fn machine(&self) -> Option<&Machine<P>> {
        match &self.phase {
            Phase::Running(machine) => Some(machine),
            _ => None,
        }
    }

    /// The machine, to feed it.
    pub fn machine_mut(&mut self) -> Option<&mut Machine<P>> {
        match &mut self.phase {
            Phase::Running(machine) => Some(machine),
            _ => None,
        }
    }

    /// The generation in which this member is the owner.
    #[must_use]
    pub const fn generation(&self) -> Option<i32> {
        if self.generation < 0 { None } else { Some(self.generation) }
    }
}
