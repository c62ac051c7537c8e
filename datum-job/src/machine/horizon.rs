//! How far ahead of the clock event time may lie, decided once per record and repeated by every replay.
//!
//! A partition has a horizon, H. A record at or below it is accepted without a look at the clock. A record beyond it is
//! accepted only if it is within `max_ahead` of the clock; that appends a step: from this offset on, H is the clock plus
//! 1.25 `max_ahead`. Otherwise, or when [`MAX_STEPS`] steps are held, the record goes aside. The steps are committed with
//! the offset, and a replay uses them alone.

use datum_window::Millis;

use crate::stored::{MAX_STEPS, Step};

/// The horizon of one partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Horizon {
    steps: Vec<Step>,
    /// The steps' part that holds for offsets in `from..to`, so that most records cost one comparison.
    known: Known,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    from: i64,
    to: i64,
    until: Millis,
}

impl Default for Known {
    /// Holds for no offset.
    fn default() -> Self {
        Self { from: i64::MAX, to: i64::MIN, until: Millis::MIN }
    }
}

impl Horizon {
    pub(super) fn restored(steps: Vec<Step>) -> Self {
        Self { steps, known: Known::default() }
    }

    /// Whether the steps alone accept event time `timestamp` at `offset`.
    #[inline]
    pub(super) fn accepts(&mut self, offset: i64, timestamp: Millis) -> bool {
        if offset < self.known.from || offset >= self.known.to {
            self.look_up(offset);
        }
        timestamp <= self.known.until && self.known.from != i64::MIN
    }

    #[cold]
    fn look_up(&mut self, offset: i64) {
        let next = self.steps.partition_point(|s| s.offset <= offset);
        let held = next.checked_sub(1).map(|i| self.steps[i]);
        self.known = Known {
            from: held.map_or(i64::MIN, |s| s.offset),
            to: self.steps.get(next).map_or(i64::MAX, |s| s.offset),
            until: held.map_or(Millis::MIN, |s| s.until),
        };
    }

    /// Moves the horizon for a record at `offset` by the clock, if it may; `low` is the lowest offset still needed.
    pub(super) fn extend(
        &mut self,
        offset: i64,
        timestamp: Millis,
        now: Millis,
        max_ahead: Millis,
        low: i64,
    ) -> bool {
        if timestamp > now.saturating_add(max_ahead) {
            return false;
        }
        self.steps.drain(..needless(&self.steps, low));
        self.known = Known::default();
        if self.steps.len() >= MAX_STEPS {
            return false;
        }
        let until = now.saturating_add(max_ahead).saturating_add(max_ahead / 4);
        self.steps.push(Step { offset, until });
        true
    }

    /// The steps as stored with the offset `low`.
    pub(super) fn stored(&self, low: i64) -> Vec<Step> {
        self.steps[needless(&self.steps, low)..]
            .iter()
            .map(|s| Step { offset: s.offset.max(low), until: s.until })
            .collect()
    }
}

/// How many leading steps no replay from `low` will use.
fn needless(steps: &[Step], low: i64) -> usize {
    steps.iter().filter(|s| s.offset <= low).count().saturating_sub(1)
}
