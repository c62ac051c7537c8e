//! Where one partition stands: its position, what it waits for, and what an answer's error means for it.
//!
//! A machine without sockets or clocks: the fetcher's task asks it what to do and tells it what came.

use datum_net::{Backoff, Rng};
use tokio::time::Instant;

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
    /// The leader epoch of the last batch fetched, -1 if none was.
    pub(super) last_epoch: i32,
    /// How many bytes to ask for; more than the setting while a single batch does not fit.
    pub(super) max_bytes: usize,
    pub(super) not_before: Option<Instant>,
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
            last_epoch: -1,
            max_bytes,
            not_before: None,
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
        self.not_before = None;
        self.out_of_range = 0;
        self.phase = match start {
            StartAt::Offset(offset) => {
                self.position = offset;
                Phase::Fetch
            }
            start => Phase::Resolve(Resolve::Start(start)),
        };
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
        self.position = to;
        self.last_epoch = -1;
        self.succeeded();
        Reaction::Go
    }

    /// The leader's log ends below the position: records were lost in an unclean election.
    pub(super) fn truncated(&mut self, end: i64, policy: OffsetReset) -> Reaction {
        let partition = self.handle.partition().clone();
        if policy == OffsetReset::None {
            return Reaction::Fail(
                KafkaErrorKind::LogTruncated { partition, position: self.position, end }.into(),
            );
        }
        tracing::warn!(%partition, position = self.position, end, "the log was truncated; the position goes back");
        self.position = end.min(self.position);
        self.last_epoch = -1;
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
