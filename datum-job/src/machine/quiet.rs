//! When a partition stops holding windows open.
//!
//! Only the broker's answers prove that there is nothing to read: position equal to the **high watermark** (the last
//! stable offset says nothing while somebody's transaction is open), for `idle_timeout`, and with the last answer
//! younger than `idle_fresh`. A process that was stopped has no fresh answer, and so no idle partition.

use datum_window::Millis;

/// What one fetch answer says of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The first offset the log holds.
    pub log_start: i64,
    /// The log's end.
    pub high_watermark: i64,
    /// The end of what is decided: no open transaction below it.
    pub last_stable: i64,
}

/// What the answers so far have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet {
    since: Option<Millis>,
    answered: Option<Millis>,
    last: Option<Observation>,
}

impl Quiet {
    pub(super) fn observe(&mut self, position: i64, seen: Observation, now: Millis) {
        self.last = Some(seen);
        self.answered = Some(now);
        if position >= seen.high_watermark {
            self.since.get_or_insert(now);
        } else {
            self.since = None;
        }
    }

    /// Records have come: whatever was shown is over.
    pub(super) fn disturbed(&mut self) {
        self.since = None;
    }

    /// Whether it has been proved quiet for `timeout`, by an answer that is still `fresh` at `now`. The time counted is
    /// up to the last answer, not up to now.
    pub(super) fn idle(&self, timeout: Millis, fresh: Millis, now: Millis) -> bool {
        match (self.since, self.answered) {
            (Some(since), Some(answered)) => {
                answered.saturating_sub(since) >= timeout && now.saturating_sub(answered) <= fresh
            }
            _ => false,
        }
    }

    pub(super) const fn last(&self) -> Option<Observation> {
        self.last
    }
}
