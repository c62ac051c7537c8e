//! What the machine keeps for one partition.

use datum_window::{Millis, Watermark, Window};

use super::horizon::Horizon;
use super::quiet::Quiet;
use crate::stored::{Step, Stored};

/// One partition: how far it has been read, its own watermark, and what its open windows need.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    pub(super) number: u32,
    pub(super) position: i64,
    pub(super) watermark: Watermark,
    /// Below it nothing leaves: it has left before.
    pub(super) replay_until: i64,
    pub(super) horizon: Horizon,
    pub(super) quiet: Quiet,
    /// Where this partition's part of an open window begins: few, in no order.
    needs: Vec<Need>,
    /// The window of the last accepted record and its close time, while it is open.
    pub(super) current: Option<(Window, Millis)>,
    /// What is committed, or on its way to be.
    sent: Option<Progress>,
    /// Where reading ends.
    pub(super) end: Option<i64>,
    /// It had nothing to read when the ends were set.
    pub(super) empty_at_start: bool,
}

#[derive(Clone, Copy, Debug)]
struct Need {
    window: Window,
    offset: i64,
    before: Watermark,
}

/// L, P, W and the horizon: what a commit stores of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) low: i64,
    pub(super) position: i64,
    pub(super) watermark: Watermark,
    pub(super) steps: Vec<Step>,
}

impl Partition {
    /// Without a past: starts at `position`.
    pub(super) fn new(number: u32, position: i64) -> Self {
        Self {
            number,
            position,
            watermark: Watermark::NONE,
            replay_until: position,
            horizon: Horizon::default(),
            quiet: Quiet::default(),
            needs: Vec::new(),
            current: None,
            sent: None,
            end: None,
            empty_at_start: false,
        }
    }

    /// From what is stored: starts at L with its W, and replays up to P.
    pub(super) fn restored(number: u32, stored: &Stored) -> Self {
        Self {
            watermark: stored.watermark,
            replay_until: stored.position,
            horizon: Horizon::restored(stored.steps.clone()),
            sent: Some(Progress {
                low: stored.low,
                position: stored.position,
                watermark: stored.watermark,
                steps: stored.steps.clone(),
            }),
            ..Self::new(number, stored.low)
        }
    }

    /// Notes that `window` needs this partition from `offset` on, with the watermark as it was `before` it.
    pub(super) fn need(&mut self, window: Window, offset: i64, before: Watermark) {
        if self.needs.iter().all(|n| n.window != window) {
            self.needs.push(Need { window, offset, before });
        }
    }

    /// `window` is published.
    pub(super) fn release(&mut self, window: Window) {
        self.needs.retain(|n| n.window != window);
        self.current = None;
    }

    /// L and W: the lowest offset an open window needs, and the own watermark just before it.
    pub(super) fn low(&self) -> (i64, Watermark) {
        self.needs
            .iter()
            .min_by_key(|n| n.offset)
            .map_or((self.position, self.watermark), |n| (n.offset, n.before))
    }

    /// What a commit made now stores. P never falls behind the restored one: what was routed before stays routed.
    pub(super) fn progress(&self) -> Progress {
        let (low, watermark) = self.low();
        Progress {
            low,
            position: self.position.max(self.replay_until),
            watermark,
            steps: self.horizon.stored(low),
        }
    }

    /// What to commit if it differs from what is committed; taken as sent.
    pub(super) fn take_changed(&mut self) -> Option<Progress> {
        let progress = self.progress();
        if self.sent.as_ref() == Some(&progress) {
            return None;
        }
        self.sent = Some(progress.clone());
        Some(progress)
    }

    pub(super) const fn replaying(&self) -> bool {
        self.position < self.replay_until
    }

    pub(super) fn at_end(&self) -> bool {
        self.end.is_some_and(|end| self.position >= end)
    }
}
