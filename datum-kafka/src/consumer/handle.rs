//! A partition in the hands of one consumer, for as long as one assignment lasts.
//!
//! Every batch that a consumer emits carries the [`PartitionHandle`] it came under. A partition that is taken away and comes back gets a
//! *new* handle with a higher assignment epoch, so whatever is still under way from before (a fetch in flight, a batch in a
//! buffer, an acknowledgement that comes late) finds that its own handle is no longer active and has no effect.
//!
//! State changes and emissions exclude each other: once [`drain`](PartitionHandle::drain), [`revoke`](PartitionHandle::revoke) or
//! [`lose`](PartitionHandle::lose) has returned, nothing more is emitted under the handle, and
//! [`emitted_to`](PartitionHandle::emitted_to) says exactly up to where it was.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::meter::PartitionMeter;
use crate::TopicPartition;

/// What may happen under a handle. States follow one another in this order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartitionState {
    /// Owned: batches are emitted, offsets committed.
    Active,
    /// Being taken away in an orderly manner: nothing more is emitted, what was may still be committed.
    Draining,
    /// Given up: nothing is emitted or committed.
    Revoked,
    /// Taken away without warning (the session expired, the member was fenced): nothing is emitted or committed.
    Lost,
}

/// What a leader's latest answer to a fetch said about a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchAnswer {
    /// The next offset to be fetched after this answer: everything below was in it or before it.
    pub position: i64,
    /// The end of what all in-sync replicas have; a position equal to it has read everything there is.
    pub high_watermark: i64,
    /// The end of what belongs to no open transaction. At most the high watermark; says nothing about the end of the data while a
    /// transaction is open.
    pub last_stable_offset: i64,
    /// The first offset the log holds, or -1 from brokers that do not say.
    pub log_start: i64,
    /// When the answer arrived. A stream that is paused gets none, so old answers prove nothing about now.
    pub at: Instant,
}

/// A partition under one assignment. Clones share it; equality is identity.
#[derive(Clone)]
pub struct PartitionHandle(Arc<Inner>);

struct Inner {
    partition: TopicPartition,
    epoch: u64,
    meter: PartitionMeter,
    shared: Mutex<Shared>,
}

struct Shared {
    state: PartitionState,
    /// Goes up with each jump of the position; what was fetched before a jump is never emitted after it.
    generation: u64,
    paused: bool,
    emitted_to: Option<i64>,
    /// The generation of the last emission.
    emitted_in: u64,
    answer: Option<FetchAnswer>,
}

/// Assignment epochs are unique within the process, so that handles of different consumers never look alike.
static NEXT_EPOCH: AtomicU64 = AtomicU64::new(1);

impl PartitionHandle {
    /// A new handle, active, with an assignment epoch higher than any before.
    pub fn new(partition: TopicPartition) -> Self {
        let epoch = NEXT_EPOCH.fetch_add(1, Ordering::Relaxed);
        let shared = Shared {
            state: PartitionState::Active,
            generation: 0,
            paused: false,
            emitted_to: None,
            emitted_in: 0,
            answer: None,
        };
        let meter = PartitionMeter::new(&partition);
        Self(Arc::new(Inner { partition, epoch, meter, shared: Mutex::new(shared) }))
    }

    /// Which partition.
    pub fn partition(&self) -> &TopicPartition {
        &self.0.partition
    }

    /// Which assignment; higher is later.
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// The state at this moment.
    pub fn state(&self) -> PartitionState {
        self.shared().state
    }

    /// Whether batches may still be emitted.
    pub fn is_active(&self) -> bool {
        self.state() == PartitionState::Active
    }

    /// Stops emission; what was emitted may still be acknowledged and committed. Returns the offset after the last emitted record, if
    /// there was one.
    pub fn drain(&self) -> Option<i64> {
        self.advance(PartitionState::Draining)
    }

    /// Ends the assignment in an orderly manner.
    pub fn revoke(&self) -> Option<i64> {
        self.advance(PartitionState::Revoked)
    }

    /// Ends the assignment without warning, also during a drain.
    pub fn lose(&self) -> Option<i64> {
        self.advance(PartitionState::Lost)
    }

    /// The offset after the last emitted record or stepped-over batch.
    pub fn emitted_to(&self) -> Option<i64> {
        self.shared().emitted_to
    }

    /// The latest answer of the partition's leader.
    pub fn answer(&self) -> Option<FetchAnswer> {
        self.shared().answer
    }

    /// Runs `commit` while the state cannot change, if offsets of this handle may still be committed. `None` if not, and nothing was run.
    ///
    /// The check and the hand-over to whatever sends commits have to be one step; else an acknowledgement that arrives
    /// while the partition is being revoked is committed after it.
    pub fn if_committable<T>(&self, commit: impl FnOnce() -> T) -> Option<T> {
        let shared = self.shared();
        (shared.state <= PartitionState::Draining).then(commit)
    }

    /// Whether emission is paused.
    pub fn is_paused(&self) -> bool {
        self.shared().paused
    }

    /// Notes that everything up to `next` is being emitted. Whether it may be: the partition is still ours, and the position has not
    /// jumped since `generation`.
    pub(super) fn emit(&self, generation: u64, next: i64) -> bool {
        let mut shared = self.shared();
        if shared.state != PartitionState::Active || shared.generation != generation {
            return false;
        }
        shared.emitted_to = Some(next);
        shared.emitted_in = generation;
        if let Some(answer) = shared.answer {
            self.0.meter.lag.set(lag(&answer, next));
        }
        true
    }

    /// Whether what was fetched in this generation may still be emitted.
    pub(super) fn wants(&self, generation: u64) -> bool {
        let shared = self.shared();
        shared.state == PartitionState::Active && shared.generation == generation
    }

    /// The position jumps; returns the new generation.
    pub(super) fn jump(&self) -> u64 {
        let mut shared = self.shared();
        shared.generation += 1;
        shared.generation
    }

    /// The position jumps, unless it has jumped since `generation`; returns the new generation.
    pub(super) fn jump_from(&self, generation: u64) -> Option<u64> {
        let mut shared = self.shared();
        (shared.generation == generation).then(|| {
            shared.generation += 1;
            shared.generation
        })
    }

    /// The offset after what was emitted in this generation, if anything was.
    pub(super) fn emitted_in(&self, generation: u64) -> Option<i64> {
        let shared = self.shared();
        shared.emitted_to.filter(|_| shared.emitted_in == generation)
    }

    pub(super) fn meter(&self) -> &PartitionMeter {
        &self.0.meter
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.shared().paused = paused;
    }

    /// Notes a leader's answer, in a generation whose fetching began at `origin`.
    pub(super) fn note_answer(&self, generation: u64, origin: i64, answer: FetchAnswer) {
        let consumed = self.emitted_in(generation).unwrap_or(origin);
        self.0.meter.lag.set(lag(&answer, consumed));
        self.shared().answer = Some(answer);
    }

    fn advance(&self, to: PartitionState) -> Option<i64> {
        let mut shared = self.shared();
        // Revoked stays revoked: what was given up in order cannot be lost afterwards.
        if shared.state < to && shared.state <= PartitionState::Draining {
            shared.state = to;
            // It is the next owner's now.
            self.0.meter.lag.set(0.0);
        }
        shared.emitted_to
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for PartitionHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PartitionHandle {}

impl fmt::Debug for PartitionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} {:?}", self.0.partition, self.0.epoch, self.state())
    }
}

/// Records between what was consumed and the end that the leader has told of.
#[expect(clippy::cast_precision_loss, reason = "a lag beyond 2^53 records is none the less large")]
fn lag(answer: &FetchAnswer, consumed: i64) -> f64 {
    answer.high_watermark.saturating_sub(consumed).max(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> PartitionHandle {
        PartitionHandle::new(TopicPartition::new("t", 0))
    }

    #[test]
    fn nothing_is_emitted_once_a_drain_has_begun() {
        let handle = handle();
        assert!(handle.emit(0, 10));
        assert_eq!(handle.drain(), Some(10));
        assert!(!handle.emit(0, 20));
        assert_eq!(handle.emitted_to(), Some(10));
        assert_eq!(handle.if_committable(|| 7), Some(7));
        handle.revoke();
        assert_eq!(handle.if_committable(|| 7), None);
    }

    #[test]
    fn what_was_fetched_before_a_jump_is_not_emitted_after_it() {
        let handle = handle();
        let generation = handle.jump();
        assert!(!handle.emit(generation - 1, 10));
        assert!(handle.emit(generation, 3));
    }

    #[test]
    fn a_loss_during_a_drain_is_a_loss_and_a_revocation_is_final() {
        let lost = handle();
        lost.drain();
        lost.lose();
        lost.revoke();
        assert_eq!(lost.state(), PartitionState::Lost);
        let revoked = handle();
        revoked.revoke();
        revoked.lose();
        assert_eq!(revoked.state(), PartitionState::Revoked);
    }

    #[test]
    fn the_same_partition_assigned_again_is_another_handle() {
        let (first, second) = (handle(), handle());
        assert_ne!(first, second);
        assert!(second.epoch() > first.epoch());
    }
}
