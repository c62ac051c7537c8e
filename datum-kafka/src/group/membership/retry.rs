//! When to try again: doubling pauses with jitter, from a seed instead of a global random source.

use std::time::{Duration, Instant};

/// Pauses that double from `min` to `max`, each 20 % more or less at random (KIP-580).
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    min: Duration,
    max: Duration,
    failures: u32,
    at: Option<Instant>,
    seed: u64,
}

impl Retry {
    pub(crate) fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self { min, max, failures: 0, at: None, seed }
    }

    /// Something worked: no pause, and the next one is the shortest.
    pub(crate) fn good(&mut self) {
        self.failures = 0;
        self.at = None;
    }

    /// The pause is over, though nothing that failed before has worked yet.
    pub(crate) fn go_on(&mut self) {
        self.at = None;
    }

    /// Something failed: pause.
    pub(crate) fn later(&mut self, now: Instant) {
        let doubled = self.min.saturating_mul(1 << self.failures.min(16)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let percent = 80 + u32::try_from((self.seed >> 33) % 41).unwrap_or(0);
        self.at = Some(now + doubled * percent / 100);
    }

    /// The peer said how to go on: at once the first time, with a pause if that happens again without success in between.
    pub(crate) fn soon(&mut self, now: Instant) {
        if self.failures == 0 {
            self.failures = 1;
            self.at = None;
        } else {
            self.later(now);
        }
    }

    /// When the pause ends, if there is one.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Whether the pause is over.
    pub(crate) fn passed(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| now >= at)
    }
}
