//! Durations in few letters.

use std::time::Duration;

/// That many seconds: `Tumbling::of(secs(30))`.
#[must_use]
pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// That many milliseconds.
#[must_use]
pub const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}
