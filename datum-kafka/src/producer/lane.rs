//! One partition's batches on their way: order, sequence numbers, retries. A machine without sockets or clocks.
//!
//! # Calling contract
//! The owner [`push`](Lane::push)es batches in order, asks [`next`](Lane::next) what to send, and hands in each batch's
//! [`Outcome`] exactly once per sending, in any order. Everything that is decided is in the [`Effect`]s that come back. Requests that
//! were given out one after another must reach the leader in that order, over one connection; [`next`](Lane::next) gives nothing for another
//! leader while some are still out at the present one.
//!
//! # Idempotence
//! Each batch has a sequence number, which it keeps over all its retries, so that the broker can tell a repeated batch from a new one
//! and refuse one that overtakes (KIP-98). A batch that must be sent again goes back to its place in the queue, and its followers, which
//! the broker refuses meanwhile, line up behind it. Batches can reach the leader in another order than their numbers' (the connection for the
//! first could not be opened, for the next one it could), and their answers can be handed in in another order than they were given. So
//! "out of order" is a loss only for a batch that had the lowest number of all that were undecided when it was sent; any other one simply
//! goes again.
//!
//! A leader that knows nothing of a producer takes whatever number comes first. So the first batch goes alone until it is
//! acknowledged; else its follower could be taken in its place. The same holds after every sending that came to nothing, whatever the
//! reason, and after a minute of silence: the leader may be another one, or have forgotten the producer. The lowest goes alone until the
//! leader has taken a batch again.
//!
//! When a batch is given up, its followers would wait for it for ever. Was it certainly not written and has nothing after it been numbered,
//! its numbers are used again. Else the lane starts over: once nothing is out, it takes the next epoch and counts from 0 (KIP-360). A batch
//! that may have been written under the old epoch is never sent under the new one: it fails as `possibly_written`.
//!
//! A transactional lane never starts over by itself: its failures make the transaction abort, which brings a new epoch.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::wire::{ErrorCode, batch::Producer, batch::add_sequence};

/// How long after its last written batch a leader is taken to know the producer still. Brokers forget one after a day, or what
/// `producer.id.expiration.ms` says; to find out costs one round trip.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Names a batch within one producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// A producer's id and epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// The id.
    pub id: i64,
    /// The epoch.
    pub epoch: i16,
}

/// How a lane behaves.
#[derive(Clone, Copy, Debug)]
pub struct LaneConfig {
    /// Whether batches are numbered.
    pub idempotent: bool,
    /// Whether the identity is a transaction coordinator's to change.
    pub transactional: bool,
    /// How many batches may be out at once; at most 5 where they are numbered.
    pub max_in_flight: usize,
    /// The pause before a batch is sent again.
    pub retry_pause: Duration,
}

/// What a sending came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written, its first record at this offset.
    Written {
        /// The offset, -1 if the broker did not say.
        offset: i64,
    },
    /// Refused.
    Refused {
        /// The code.
        code: ErrorCode,
    },
    /// No answer: written or not.
    Unanswered,
    /// It never left this process.
    Unsent,
}

/// What has been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A batch is written.
    Acked {
        /// Which.
        batch: BatchId,
        /// Where its first record is, if the broker said.
        offset: Option<i64>,
    },
    /// A batch is given up.
    Failed {
        /// Which.
        batch: BatchId,
        /// Why.
        why: Failure,
        /// Whether it may be in the log nevertheless.
        possibly_written: bool,
    },
    /// The broker takes no batch of that size: call [`Lane::split`].
    Split {
        /// Which.
        batch: BatchId,
    },
    /// The leader may have moved.
    Refresh,
    /// The epochs of this producer id are used up: get a new id and call [`Lane::adopt`].
    NeedIdentity,
}

/// Why a batch was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The broker refused it for good.
    #[error("the broker refused it with {0:?}")]
    Refused(ErrorCode),
    /// The delivery timeout passed.
    #[error("the delivery timeout passed{}", last_refusal(.0))]
    Expired(
        /// What the broker answered to its last sending; none if it never was refused.
        Option<ErrorCode>,
    ),
    /// A batch before it failed in a way that leaves open whether this one was written.
    #[error(
        "a batch before it was lost, and this one cannot be repeated without the risk of writing it twice"
    )]
    Disordered,
    /// The cluster refuses to give the producer an id, with which it would number its batches; nothing of it was sent.
    #[error("the cluster gave the producer no id ({0})")]
    Identity(ErrorCode),
    /// Its transaction was aborted before it was sent.
    #[error("its transaction was aborted")]
    Aborted,
}

fn last_refusal(code: &Option<ErrorCode>) -> String {
    code.map_or_else(String::new, |code| format!("; the broker's last refusal was {code:?}"))
}

/// A batch to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Which.
    pub batch: BatchId,
    /// What goes into its header; none without idempotence.
    pub producer: Option<Producer>,
}

/// One partition's batches.
#[derive(Debug)]
pub struct Lane {
    config: LaneConfig,
    identity: Option<ProducerIdentity>,
    next_sequence: i32,
    /// Waiting, in order; those that were numbered come first.
    queue: VecDeque<Waiting>,
    /// Out, in the order of their sending.
    out: VecDeque<Waiting>,
    leader: Option<i32>,
    pause: Option<Instant>,
    /// The lane starts over as soon as nothing is out.
    restart: bool,
    /// The leader has taken a batch under this identity, and since then no sending has come to nothing.
    proved: bool,
    /// When the leader last took a batch.
    heard: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    batch: BatchId,
    records: i32,
    deadline: Instant,
    sequence: Option<i32>,
    /// Some sending of it was not answered.
    doubtful: bool,
    /// Something with a lower number was undecided when it was last sent.
    behind: bool,
    /// What the broker last refused it with.
    refusal: Option<ErrorCode>,
    split: bool,
}

impl Lane {
    /// A lane without batches. Numbered lanes send nothing until [`adopt`](Self::adopt).
    pub fn new(config: LaneConfig) -> Self {
        Self {
            config,
            identity: None,
            next_sequence: 0,
            queue: VecDeque::new(),
            out: VecDeque::new(),
            leader: None,
            pause: None,
            restart: false,
            proved: false,
            heard: None,
        }
    }

    /// Takes an identity. Where it is another than before, counting starts at 0, and what waits is numbered anew.
    ///
    /// Only while nothing is out.
    pub fn adopt(&mut self, identity: ProducerIdentity) -> Vec<Effect> {
        if self.identity == Some(identity) {
            return Vec::new();
        }
        let same_id = self.identity.is_some_and(|before| before.id == identity.id);
        self.proved &= same_id && !self.restart;
        self.identity = Some(identity);
        self.restart = false;
        self.renumber()
    }

    /// Queues a batch of `records` records that is given up at `deadline`.
    pub fn push(&mut self, batch: BatchId, records: i32, deadline: Instant) {
        let waiting = Waiting {
            batch,
            records,
            deadline,
            sequence: None,
            doubtful: false,
            behind: false,
            refusal: None,
            split: false,
        };
        self.queue.push_back(waiting);
    }

    /// The next batch to send to `leader`, if one may be sent now.
    pub fn next(&mut self, now: Instant, leader: i32) -> Option<Dispatch> {
        let limit = self.config.max_in_flight.min(if self.config.idempotent { 5 } else { usize::MAX });
        let moved = self.leader != Some(leader) && !self.out.is_empty();
        if self.restart || moved || self.out.len() >= limit || self.pause.is_some_and(|pause| now < pause) {
            return None;
        }
        let identity = match (self.config.idempotent, self.identity) {
            (true, None) => return None,
            (numbered, identity) => identity.filter(|_| numbered),
        };
        if self.out.is_empty() && self.heard.is_some_and(|heard| now >= heard + KNOWN_FOR) {
            self.proved = false;
        }
        let unproved = identity.is_some() && !self.proved && !self.out.is_empty();
        if unproved || self.queue.front().is_none_or(|first| first.split) {
            return None;
        }
        let mut waiting = self.queue.pop_front()?;
        // What is numbered and waits stands in order: only what is out can be lower. What is new is higher than all that is out.
        waiting.behind = self.out.iter().any(|out| precedes(out.sequence, waiting.sequence));
        self.pause = None;
        self.leader = Some(leader);
        let producer = identity.map(|identity| {
            let base_sequence = *waiting.sequence.get_or_insert_with(|| {
                let sequence = self.next_sequence;
                self.next_sequence = add_sequence(sequence, waiting.records);
                sequence
            });
            Producer { id: identity.id, epoch: identity.epoch, base_sequence }
        });
        self.out.push_back(waiting);
        Some(Dispatch { batch: waiting.batch, producer })
    }

    /// Hands in what one sending came to.
    pub fn outcome(&mut self, now: Instant, batch: BatchId, outcome: Outcome) -> Vec<Effect> {
        let Some(at) = self.out.iter().position(|out| out.batch == batch) else { return Vec::new() };
        let Some(mut waiting) = self.out.remove(at) else { return Vec::new() };
        let mut effects = Vec::new();
        self.proved = matches!(outcome, Outcome::Written { .. });
        match outcome {
            Outcome::Written { offset } => {
                self.heard = Some(now);
                effects.push(Effect::Acked { batch, offset: Some(offset).filter(|offset| *offset >= 0) });
            }
            Outcome::Unsent => self.again(now, waiting, &mut effects),
            Outcome::Unanswered => {
                waiting.doubtful = true;
                self.again(now, waiting, &mut effects);
            }
            Outcome::Refused { code } => {
                waiting.refusal = Some(code);
                self.refused(now, waiting, code, &mut effects);
            }
        }
        self.settle(&mut effects);
        effects
    }

    /// Replaces a batch by its parts, in order, each with its number of records. An empty list gives it up.
    pub fn split(&mut self, batch: BatchId, parts: &[(BatchId, i32)]) -> Vec<Effect> {
        let Some(at) = self.queue.iter().position(|waiting| waiting.batch == batch) else {
            return Vec::new();
        };
        let Some(whole) = self.queue.remove(at) else { return Vec::new() };
        let mut effects = Vec::new();
        if parts.is_empty() {
            self.give_up(whole, Failure::Refused(ErrorCode::MessageTooLarge), &mut effects);
            self.settle(&mut effects);
        }
        // The parts have as many records as the whole, so its followers keep their numbers.
        let mut sequence = whole.sequence;
        for (i, (part, records)) in parts.iter().enumerate() {
            let part = Waiting { batch: *part, records: *records, sequence, split: false, ..whole };
            self.queue.insert(at + i, part);
            sequence = sequence.map(|first| add_sequence(first, *records));
        }
        effects
    }

    /// Gives up what waits longer than its deadline.
    pub fn expire(&mut self, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.pause = self.pause.filter(|pause| now < *pause);
        while let Some(at) = self.queue.iter().position(|waiting| now >= waiting.deadline) {
            let Some(waiting) = self.queue.remove(at) else { break };
            self.give_up(waiting, Failure::Expired(waiting.refusal), &mut effects);
        }
        self.settle(&mut effects);
        effects
    }

    /// Gives up everything that waits, for `why`; what is out keeps its outcome.
    pub fn drop_waiting(&mut self, why: Failure) -> Vec<Effect> {
        let mut effects = Vec::new();
        for waiting in std::mem::take(&mut self.queue) {
            effects.push(Effect::Failed { batch: waiting.batch, why, possibly_written: waiting.doubtful });
        }
        effects
    }

    /// When [`next`](Self::next) or [`expire`](Self::expire) may have something new without an outcome.
    pub fn deadline(&self) -> Option<Instant> {
        let expiry = self.queue.iter().map(|waiting| waiting.deadline).min();
        self.pause.filter(|_| !self.queue.is_empty()).into_iter().chain(expiry).min()
    }

    /// Whether it cannot send anything before it is given an identity.
    pub fn needs_identity(&self) -> bool {
        self.config.idempotent && (self.identity.is_none() || (self.restart && self.out.is_empty()))
    }

    /// Whether nothing waits and nothing is out.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.out.is_empty()
    }

    /// How many batches are out.
    pub fn in_flight(&self) -> usize {
        self.out.len()
    }

    fn refused(&mut self, now: Instant, waiting: Waiting, code: ErrorCode, effects: &mut Vec<Effect>) {
        let restarts = self.config.idempotent && !self.config.transactional;
        match code {
            ErrorCode::DuplicateSequenceNumber => {
                self.proved = true;
                effects.push(Effect::Acked { batch: waiting.batch, offset: None });
            }
            // Something before it has not arrived yet: it lines up behind it.
            ErrorCode::OutOfOrderSequenceNumber | ErrorCode::UnknownProducerId if waiting.behind => {
                self.again(now, waiting, effects);
            }
            // The broker has lost this producer's state, or the gap before it stays. This sending was not written.
            ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::UnknownProducerId
            | ErrorCode::InvalidProducerEpoch
            | ErrorCode::InvalidProducerIdMapping
                if restarts =>
            {
                self.restart = true;
                self.requeue(waiting);
            }
            ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge if waiting.records > 1 => {
                effects.push(Effect::Split { batch: waiting.batch });
                self.requeue(Waiting { split: true, ..waiting });
            }
            // The leader may have written it although it says so.
            ErrorCode::RequestTimedOut
            | ErrorCode::NotEnoughReplicasAfterAppend
            | ErrorCode::NetworkException => {
                self.again(now, Waiting { doubtful: true, ..waiting }, effects);
            }
            code if code.is_retriable() => {
                if code.needs_fresh_metadata() {
                    effects.push(Effect::Refresh);
                }
                self.again(now, waiting, effects);
            }
            code => self.give_up(waiting, Failure::Refused(code), effects),
        }
    }

    /// Back to its place in the queue, or given up if its time is over.
    fn again(&mut self, now: Instant, waiting: Waiting, effects: &mut Vec<Effect>) {
        if now >= waiting.deadline {
            return self.give_up(waiting, Failure::Expired(waiting.refusal), effects);
        }
        self.pause = Some(now + self.config.retry_pause);
        self.requeue(waiting);
    }

    fn requeue(&mut self, waiting: Waiting) {
        // Batches were pushed in order, so the order of their names is the order of their sequences, which may wrap. Parts of a split
        // batch are queued at once and stand before everything that is not numbered.
        let after = |other: &Waiting| match waiting.sequence {
            Some(_) => precedes(waiting.sequence, other.sequence),
            None => other.batch > waiting.batch,
        };
        let at = self.queue.iter().position(after).unwrap_or(self.queue.len());
        self.queue.insert(at, waiting);
    }

    fn give_up(&mut self, waiting: Waiting, why: Failure, effects: &mut Vec<Effect>) {
        effects.push(Effect::Failed { batch: waiting.batch, why, possibly_written: waiting.doubtful });
        let Some(sequence) =
            waiting.sequence.filter(|_| self.config.idempotent && !self.config.transactional)
        else {
            return;
        };
        if !waiting.doubtful && add_sequence(sequence, waiting.records) == self.next_sequence {
            self.next_sequence = sequence;
        } else {
            self.restart = true;
        }
    }

    /// Starts over, if that was decided and nothing is out any more.
    fn settle(&mut self, effects: &mut Vec<Effect>) {
        if !self.restart || !self.out.is_empty() {
            return;
        }
        match self.identity {
            Some(identity) if identity.epoch < i16::MAX - 1 => {
                let identity = ProducerIdentity { epoch: identity.epoch + 1, ..identity };
                effects.extend(self.adopt(identity));
            }
            _ => effects.push(Effect::NeedIdentity),
        }
    }

    fn renumber(&mut self) -> Vec<Effect> {
        self.next_sequence = 0;
        let mut effects = Vec::new();
        for mut waiting in std::mem::take(&mut self.queue) {
            if waiting.doubtful {
                let why = Failure::Disordered;
                effects.push(Effect::Failed { batch: waiting.batch, why, possibly_written: true });
            } else {
                waiting.sequence = None;
                self.queue.push_back(waiting);
            }
        }
        effects
    }
}

/// Whether a batch with number `one` comes before one with number `other`. Numbers wrap; what has none comes after what has one.
fn precedes(one: Option<i32>, other: Option<i32>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => other.wrapping_sub(one) & i32::MAX < i32::MAX / 2,
        (one, other) => one.is_some() && other.is_none(),
    }
}

#[cfg(test)]
mod tests;
