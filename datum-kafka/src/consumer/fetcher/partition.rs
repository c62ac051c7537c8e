//! Where one partition stands: its position, what it waits for, and what an answer's error means for it.
//!
//! # Truncated logs
//! A position is good only under a leader that has what was read before it. So whenever a leader epoch is new, the leader is asked where the
//! epoch of the last record read (or committed) ended in its log (KIP-320); below the position means that records read were lost in an unclean
//! election. Brokers that know Fetch from version 12 say the same in passing.
//!
//! A machine without sockets or clocks: the fetcher's task asks it what to do and tells it what came.

use std::time::Duration;

use datum_net::{Backoff, Rng};
use tokio::time::Instant;

use crate::cluster::Topic;
use crate::consumer::PartitionHandle;
use crate::error::{ErrorCode, KafkaError, KafkaErrorKind};
use crate::settings::{ClientSettings, OffsetReset, StartAt};
use crate::wire::topic::TopicRef;

/// What a partition waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its position has to be looked up.
    Resolve(Resolve),
    /// The look-up is under way.
    Resolving(Resolve),
    /// It is fetched.
    Fetch,
    /// Something unreadable came: the consumer decides.
    Held,
    /// It has failed; only a seek brings it back.
    Failed,
}

/// Why a position has to be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolve {
    Start(StartAt),
    OutOfRange,
    /// The leader is new: does its log hold what was read before the position?
    Agreement {
        /// The epoch of the last record before the position.
        epoch: i32,
        /// The leader's epoch.
        under: i32,
    },
}

/// What an error in an answer asks for.
#[derive(Debug)]
pub(super) enum Reaction {
    /// Go on at once with what the phase says.
    Go,
    /// Try again after the backoff.
    Retry,
    /// Learn the leaders anew and try again after the backoff.
    Refresh,
    /// The partition fails.
    Fail(KafkaError),
}

#[derive(Debug)]
pub(super) struct Partition {
    pub(super) handle: PartitionHandle,
    pub(super) topic: TopicRef,
    pub(super) generation: u64,
    pub(super) phase: Phase,
    /// The next offset to fetch.
    pub(super) position: i64,
    /// Where fetching began, this generation.
    pub(super) origin: i64,
    /// The leader epoch of the last batch fetched, or that was committed with the position; -1 if not known.
    pub(super) last_epoch: i32,
    /// How many bytes to ask for; more than the setting while a single batch does not fit.
    pub(super) max_bytes: usize,
    pub(super) not_before: Option<Instant>,
    /// The highest leader epoch under which the position is known to be good.
    agreed: i32,
    /// Since when metadata has lacked the partition while it had the topic.
    missing_since: Option<Instant>,
    backoff: Backoff,
    out_of_range: u32,
    corrupt: bool,
}

/// How often a position beyond the end is looked at again before it counts: a new leader may still be behind what an old one had shown.
const OUT_OF_RANGE_TRIES: u32 = 3;

impl Partition {
    pub(super) fn new(
        handle: PartitionHandle,
        topic: TopicRef,
        start: StartAt,
        max_bytes: usize,
        settings: &ClientSettings,
    ) -> Self {
        let mut partition = Self {
            handle,
            topic,
            generation: 0,
            phase: Phase::Failed,
            position: -1,
            origin: -1,
            last_epoch: -1,
            max_bytes,
            not_before: None,
            agreed: -1,
            missing_since: None,
            backoff: Backoff::new(settings.retry_backoff),
            out_of_range: 0,
            corrupt: false,
        };
        partition.start(0, start);
        partition
    }

    /// The position jumps.
    pub(super) fn start(&mut self, generation: u64, start: StartAt) {
        self.generation = generation;
        self.last_epoch = -1;
        self.agreed = -1;
        self.not_before = None;
        self.missing_since = None;
        self.out_of_range = 0;
        match start {
            StartAt::Offset(offset) => self.begin(offset),
            start => self.phase = Phase::Resolve(Resolve::Start(start)),
        }
    }

    /// Fetches from here.
    pub(super) fn begin(&mut self, offset: i64) {
        self.position = offset;
        self.origin = offset;
        self.phase = Phase::Fetch;
    }

    /// Under a leader of this epoch: whether it has to be asked about the position before it is fetched from. Then that is the next phase.
    pub(super) fn must_agree(&mut self, leader_epoch: i32) -> bool {
        if self.phase != Phase::Fetch || leader_epoch <= self.agreed {
            return false;
        }
        if self.last_epoch < 0 {
            self.agreed = leader_epoch;
            return false;
        }
        self.phase = Phase::Resolve(Resolve::Agreement { epoch: self.last_epoch, under: leader_epoch });
        true
    }

    /// The leader has said where the epoch of the last record ends in its log; `None`: it does not know that epoch.
    pub(super) fn agreement(&mut self, under: i32, end: Option<i64>, policy: OffsetReset) -> Reaction {
        self.phase = Phase::Fetch;
        if end.is_some_and(|end| end >= self.position) {
            self.agreed = under;
            self.succeeded();
            return Reaction::Go;
        }
        self.truncated(end, policy)
    }

    /// Metadata is there: the error, if it has had the topic without this partition for longer than the grace.
    pub(super) fn missing(&mut self, topic: &Topic, now: Instant, grace: Duration) -> Option<KafkaError> {
        let who = self.handle.partition();
        let there = usize::try_from(who.partition).is_ok_and(|index| index < topic.partitions.len());
        if there || topic.partitions.is_empty() {
            self.missing_since = None;
            return None;
        }
        let since = *self.missing_since.get_or_insert(now);
        (now.duration_since(since) >= grace).then(|| {
            let (partition, count) = (who.clone(), topic.partitions.len());
            KafkaErrorKind::UnknownPartition { partition, count, waited: grace }.into()
        })
    }

    /// Whether it may be fetched now.
    pub(super) fn ready(&self, now: Instant) -> bool {
        self.phase == Phase::Fetch && self.due(now) && !self.handle.is_paused() && self.handle.is_active()
    }

    /// Whether its backoff is over.
    pub(super) fn due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| at <= now)
    }

    /// Waits a while before the next attempt.
    pub(super) fn back_off(&mut self, now: Instant, rng: &mut Rng) {
        self.not_before = Some(now + self.backoff.next_delay(rng));
    }

    /// An answer without an error came.
    pub(super) fn succeeded(&mut self) {
        self.backoff.reset();
        self.not_before = None;
        self.out_of_range = 0;
        self.corrupt = false;
    }

    /// An answer with an error came.
    pub(super) fn react(&mut self, code: ErrorCode) -> Reaction {
        let refused = |this: &Self| {
            KafkaError::broker(code, crate::wire::fetch::NAME, this.handle.partition().clone().into())
        };
        match code {
            ErrorCode::OffsetOutOfRange => {
                self.phase = Phase::Resolve(Resolve::OutOfRange);
                Reaction::Go
            }
            ErrorCode::CorruptMessage if self.corrupt => Reaction::Fail(refused(self)),
            ErrorCode::CorruptMessage => {
                self.corrupt = true;
                Reaction::Retry
            }
            // The broker is behind us, not we behind it.
            ErrorCode::UnknownLeaderEpoch => Reaction::Retry,
            ErrorCode::OffsetNotAvailable | ErrorCode::LeaderNotAvailable => Reaction::Refresh,
            code if code.needs_fresh_metadata() => Reaction::Refresh,
            code if code.is_retriable() => Reaction::Retry,
            _ => Reaction::Fail(refused(self)),
        }
    }

    /// The ends of the log are known after the position was out of range: where to go on.
    pub(super) fn out_of_range(&mut self, log_start: i64, end: i64, policy: OffsetReset) -> Reaction {
        self.out_of_range += 1;
        self.phase = Phase::Fetch;
        let within = (log_start..=end).contains(&self.position);
        if within || (self.position > end && self.out_of_range <= OUT_OF_RANGE_TRIES) {
            // A stale leader is the likeliest cause, so ask whoever leads now, a little later.
            return Reaction::Refresh;
        }
        let to = match policy {
            OffsetReset::Earliest => log_start,
            OffsetReset::Latest => end,
            OffsetReset::None => {
                return Reaction::Fail(
                    KafkaErrorKind::OffsetOutOfRange {
                        partition: self.handle.partition().clone(),
                        position: self.position,
                        log_start,
                        end,
                    }
                    .into(),
                );
            }
        };
        tracing::warn!(
            partition = %self.handle.partition(), position = self.position, log_start, end, to,
            "position is outside of the log and was reset"
        );
        self.begin(to);
        self.last_epoch = -1;
        self.succeeded();
        Reaction::Go
    }

    /// The leader's log and what was read part at `end` (`None`: the leader cannot say where), below the position: records were lost in
    /// an unclean election. What was fetched and not emitted is not of this log, so it is not emitted any more.
    pub(super) fn truncated(&mut self, end: Option<i64>, policy: OffsetReset) -> Reaction {
        let partition = self.handle.partition().clone();
        let position = self.position;
        let anew = match policy {
            OffsetReset::None => {
                return Reaction::Fail(KafkaErrorKind::LogTruncated { partition, position, end }.into());
            }
            OffsetReset::Earliest => StartAt::Beginning,
            OffsetReset::Latest => StartAt::End,
        };
        let Some(generation) = self.handle.jump_from(self.generation) else {
            // A seek has come in between and is on its way to us.
            return Reaction::Go;
        };
        let consumed = self.handle.emitted_in(self.generation).unwrap_or(self.origin);
        tracing::warn!(%partition, position, ?end, "the log was truncated; the position goes back");
        self.start(generation, end.map_or(anew, |end| StartAt::Offset(end.min(consumed))));
        Reaction::Retry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopicPartition;

    fn partition(position: i64) -> Partition {
        let handle = PartitionHandle::new(TopicPartition::new("t", 0));
        let settings = ClientSettings::new("x:1");
        Partition::new(handle, TopicRef::new("t", [0; 16]), StartAt::Offset(position), 1, &settings)
    }

    #[test]
    fn a_new_leader_that_is_still_behind_does_not_reset_the_position() {
        let mut p = partition(500);
        for _ in 0..OUT_OF_RANGE_TRIES {
            assert!(matches!(p.react(ErrorCode::OffsetOutOfRange), Reaction::Go));
            assert!(matches!(p.out_of_range(0, 490, OffsetReset::Earliest), Reaction::Refresh));
            assert_eq!((p.position, p.phase), (500, Phase::Fetch));
        }
        p.succeeded();
        assert!(matches!(p.out_of_range(0, 500, OffsetReset::Earliest), Reaction::Refresh));
        assert_eq!(p.position, 500);
    }

    #[test]
    fn the_policy_decides_once_the_position_is_surely_outside() {
        let mut early = partition(5);
        early.out_of_range(100, 200, OffsetReset::Earliest);
        assert_eq!(early.position, 100);
        let mut late = partition(5);
        late.out_of_range(100, 200, OffsetReset::Latest);
        assert_eq!(late.position, 200);
        let Reaction::Fail(error) = partition(5).out_of_range(100, 200, OffsetReset::None) else {
            panic!("no error")
        };
        assert!(matches!(
            error.kind(),
            KafkaErrorKind::OffsetOutOfRange { position: 5, log_start: 100, end: 200, .. }
        ));
        let mut beyond = partition(900);
        for _ in 0..OUT_OF_RANGE_TRIES {
            beyond.out_of_range(100, 200, OffsetReset::Earliest);
            assert_eq!(beyond.position, 900);
        }
        beyond.out_of_range(100, 200, OffsetReset::Earliest);
        assert_eq!(beyond.position, 100);
    }

    #[test]
    fn a_position_is_checked_once_under_each_leader() {
        let mut p = partition(500);
        assert!(!p.must_agree(3), "nothing is known of what came before");
        p.last_epoch = 3;
        assert!(!p.must_agree(3));
        assert!(p.must_agree(4));
        assert_eq!(p.phase, Phase::Resolve(Resolve::Agreement { epoch: 3, under: 4 }));
        assert!(matches!(p.agreement(4, Some(500), OffsetReset::None), Reaction::Go));
        assert!(!p.must_agree(4));
        assert_eq!((p.position, p.phase), (500, Phase::Fetch));
    }

    #[test]
    fn a_truncated_log_is_an_error_or_goes_back_to_where_it_parts_from_what_was_read() {
        let mut strict = partition(500);
        let Reaction::Fail(error) = strict.agreement(4, Some(420), OffsetReset::None) else {
            panic!("no error")
        };
        assert!(matches!(error.kind(), KafkaErrorKind::LogTruncated { position: 500, end: Some(420), .. }));
        let mut back = partition(500);
        back.last_epoch = 3;
        assert!(matches!(back.agreement(4, Some(420), OffsetReset::Latest), Reaction::Retry));
        assert_eq!((back.position, back.generation, back.last_epoch), (420, 1, -1));
        let mut unknown = partition(500);
        unknown.agreement(4, None, OffsetReset::Earliest);
        assert_eq!(unknown.phase, Phase::Resolve(Resolve::Start(StartAt::Beginning)));
    }

    #[test]
    fn what_was_fetched_of_a_truncated_log_and_not_emitted_is_fetched_again() {
        let mut p = partition(100);
        p.position = 500;
        assert!(p.handle.emit(0, 300));
        p.agreement(4, Some(420), OffsetReset::Earliest);
        assert_eq!(p.position, 300);
        let mut seeking = partition(100);
        let sought = seeking.handle.jump();
        assert!(matches!(seeking.agreement(4, Some(50), OffsetReset::Earliest), Reaction::Go));
        assert_eq!((seeking.generation, sought), (0, 1), "the seek decides");
    }

    #[test]
    fn corruption_reported_by_the_broker_is_retried_once() {
        let mut p = partition(0);
        assert!(matches!(p.react(ErrorCode::CorruptMessage), Reaction::Retry));
        assert!(matches!(p.react(ErrorCode::CorruptMessage), Reaction::Fail(_)));
    }

    #[test]
    fn a_missing_permission_fails_at_once() {
        let Reaction::Fail(error) = partition(0).react(ErrorCode::TopicAuthorizationFailed) else {
            panic!("no error")
        };
        assert!(matches!(error.kind(), KafkaErrorKind::Unauthorized { .. }));
    }
}
