//! How far the event time of one partition has come.
//!
//! A watermark is the largest timestamp seen on its partition, without any allowance for disorder: the allowance is
//! the window's grace. It never falls. It is compared against a record's window *before* the record moves it, so no
//! record can make itself late.

use crate::Millis;

/// The largest event time seen on one partition; [`Watermark::NONE`] before its first record.
///
/// ```
/// use datum_window::Watermark;
///
/// let mut w = Watermark::NONE;
/// assert!(!w.reached(i64::MIN + 1));
/// w.advance(5_000);
/// w.advance(3_000); // out of order: the watermark stays
/// assert_eq!(w, Watermark::at(5_000));
/// assert!(w.reached(5_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark(Millis);

impl Watermark {
    /// Before every event time: nothing has been seen.
    pub const NONE: Self = Self(Millis::MIN);

    /// A watermark that stands at `millis`. `i64::MIN` is [`Watermark::NONE`].
    #[must_use]
    pub const fn at(millis: Millis) -> Self {
        Self(millis)
    }

    /// The event time it stands at, or `None` when nothing has been seen.
    #[must_use]
    pub const fn get(self) -> Option<Millis> {
        if self.0 == Millis::MIN { None } else { Some(self.0) }
    }

    /// The event time it stands at, `i64::MIN` when nothing has been seen.
    #[must_use]
    pub const fn millis(self) -> Millis {
        self.0
    }

    /// Moves to `timestamp` if that is later.
    #[inline]
    pub const fn advance(&mut self, timestamp: Millis) {
        if timestamp > self.0 {
            self.0 = timestamp;
        }
    }

    /// Whether it has come to `time` or past it. [`Watermark::NONE`] has reached nothing.
    #[inline]
    #[must_use]
    pub const fn reached(self, time: Millis) -> bool {
        self.0 >= time && self.0 != Millis::MIN
    }
}

impl Default for Watermark {
    fn default() -> Self {
        Self::NONE
    }
}

impl std::fmt::Display for Watermark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            None => f.write_str("none"),
            Some(millis) => write!(f, "{millis}"),
        }
    }
}
