//! Exponential backoff with jitter.
//!
//! A [`BackoffPolicy`] is a value (settings hold one); a [`Backoff`] is one series of attempts under it. Delays double from
//! `initial` to `max`, and each is scaled by a random factor within `1 ± jitter`, so that clients that lost the same
//! broker do not come back in step. The source is Kafka's KIP-580, whose defaults (100 ms to 1 s, 20 %) are ours.
//!
//! No clock is read and no sleep is made here: the caller asks for the next delay and waits as it likes.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// How delays grow. Cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffPolicy {
    /// The first delay, before jitter.
    pub initial: Duration,
    /// No delay is longer than this, before jitter.
    pub max: Duration,
    /// Half the width of the random factor, from 0 (none) to 1. Values outside are clamped.
    pub jitter: f64,
}

impl BackoffPolicy {
    /// Retries of a request: 100 ms to 1 s with 20 % jitter.
    pub const REQUEST: Self =
        Self { initial: Duration::from_millis(100), max: Duration::from_secs(1), jitter: 0.2 };

    /// Reconnection: 50 ms to 1 s with 20 % jitter. Shorter than Kafka's 10 s maximum, since a stream that stands still for
    /// ten seconds after a restart costs more than an attempt per second.
    pub const RECONNECT: Self =
        Self { initial: Duration::from_millis(50), max: Duration::from_secs(1), jitter: 0.2 };
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self::REQUEST
    }
}

/// One series of attempts.
///
/// ```
/// use std::time::Duration;
/// use datum_net::{Backoff, BackoffPolicy, Rng};
/// let mut rng = Rng::seeded(7);
/// let mut backoff = Backoff::new(BackoffPolicy { jitter: 0.0, ..BackoffPolicy::REQUEST });
/// assert_eq!(backoff.next_delay(&mut rng), Duration::from_millis(100));
/// assert_eq!(backoff.next_delay(&mut rng), Duration::from_millis(200));
/// backoff.reset();
/// assert_eq!(backoff.next_delay(&mut rng), Duration::from_millis(100));
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    attempts: u32,
}

impl Backoff {
    /// A series that has not failed yet.
    pub fn new(policy: BackoffPolicy) -> Self {
        Self { policy, attempts: 0 }
    }

    /// How many delays were handed out since the start or the last [`reset`](Self::reset).
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The delay to wait before the next attempt.
    pub fn next_delay(&mut self, rng: &mut Rng) -> Duration {
        let doubled = self.policy.initial.saturating_mul(1u32.checked_shl(self.attempts).unwrap_or(u32::MAX));
        self.attempts = self.attempts.saturating_add(1);
        let jitter = self.policy.jitter.clamp(0.0, 1.0);
        let factor = 1.0 + jitter * (2.0 * rng.unit() - 1.0);
        doubled.min(self.policy.max).mul_f64(factor)
    }

    /// Called after a success: the next failure starts from `initial` again.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// A small random source for jitter and for choosing among equals (SplitMix64, <https://prng.di.unimi.it/splitmix64.c>).
/// Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The same seed gives the same sequence. Tests print theirs.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed from the process's own randomness; two calls give unrelated sequences.
    pub fn from_entropy() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// Any 64 bits, equally likely.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0.0..1.0`.
    #[allow(clippy::cast_precision_loss, reason = "53 bits are exact in an f64")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`, or 0 if `bound` is 0. The bias for bounds far below 2^32 does not matter here.
    #[allow(clippy::cast_possible_truncation, reason = "the result is below a usize bound")]
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.bits() % bound as u64) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_maximum_and_never_overflows() {
        let mut rng = Rng::seeded(1);
        let mut backoff = Backoff::new(BackoffPolicy { jitter: 0.0, ..BackoffPolicy::REQUEST });
        let first: Vec<u128> = (0..6).map(|_| backoff.next_delay(&mut rng).as_millis()).collect();
        assert_eq!(first, [100, 200, 400, 800, 1000, 1000]);
        for _ in 0..100 {
            assert_eq!(backoff.next_delay(&mut rng), Duration::from_secs(1));
        }
    }

    #[test]
    fn jitter_stays_within_its_width_and_differs() {
        let seed = Rng::from_entropy().bits();
        println!("seed {seed}");
        let mut rng = Rng::seeded(seed);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let delay = Backoff::new(BackoffPolicy::REQUEST).next_delay(&mut rng);
            assert!((Duration::from_millis(80)..=Duration::from_millis(120)).contains(&delay), "{delay:?}");
            seen.insert(delay);
        }
        assert!(seen.len() > 900, "delays repeat: {}", seen.len());
    }
}
