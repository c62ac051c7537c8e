//! Tumbling windows: equal, adjacent, aligned.
//!
//! A window is `[start, end)` with `end = start + size` and `start = offset + n * size` for some whole `n`: alignment
//! is by floor, so timestamps before 1970 fall into windows of the full size too. A window closes when the watermark
//! reaches `end + grace`.
//!
//! Arithmetic saturates at the ends of the `i64` range: the first and the last window there are cut short, stay
//! distinct from their neighbours and contain every timestamp that is theirs; a close time past `i64::MAX` is
//! `i64::MAX`.

use std::time::Duration;

use crate::Millis;

/// One window, `[start, end)` in milliseconds. Ordered by start, which for tumbling windows is also by end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// First millisecond inside.
    pub start: Millis,
    /// First millisecond after it.
    pub end: Millis,
}

impl Window {
    /// Last millisecond inside: the timestamp a published pane carries.
    #[must_use]
    pub const fn last(self) -> Millis {
        self.end.saturating_sub(1)
    }
}

/// The description of tumbling windows; [`Tumbling::checked`] makes it usable or says what is wrong.
///
/// ```
/// use std::time::Duration;
/// use datum_window::{Tumbling, Window};
///
/// let windows = Tumbling::of(Duration::from_secs(30)).grace(Duration::from_secs(1)).checked()?;
/// assert_eq!(windows.window_of(61_000), Window { start: 60_000, end: 90_000 });
/// assert_eq!(windows.window_of(-1), Window { start: -30_000, end: 0 });
/// assert_eq!(windows.closes_at(Window { start: 60_000, end: 90_000 }), 91_000);
/// # Ok::<(), datum_window::TumblingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tumbling {
    size: Span,
    offset: Millis,
    grace: Span,
}

/// A length that was given either as milliseconds or as a duration that may not be a whole number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Millis(Millis),
    Exact(Duration),
}

impl Span {
    fn whole(self, what: Part) -> Result<Millis, TumblingError> {
        match self {
            Self::Millis(millis) => Ok(millis),
            Self::Exact(d) if d.subsec_nanos() % 1_000_000 != 0 => {
                Err(TumblingError::NotWhole { what, given: d })
            }
            Self::Exact(d) => {
                Millis::try_from(d.as_millis()).map_err(|_| TumblingError::TooLong { what, given: d })
            }
        }
    }
}

impl Tumbling {
    /// Windows of `size`, aligned to 1970-01-01T00:00:00Z, without grace.
    #[must_use]
    pub const fn of(size: Duration) -> Self {
        Self { size: Span::Exact(size), offset: 0, grace: Span::Millis(0) }
    }

    /// Windows of `size` milliseconds.
    #[must_use]
    pub const fn of_millis(size: Millis) -> Self {
        Self { size: Span::Millis(size), offset: 0, grace: Span::Millis(0) }
    }

    /// Shifts the alignment: windows start at `offset + n * size`. Default 0. Any value is accepted; only its
    /// remainder by the size matters (a day in a zone two hours ahead of UTC has the offset -7,200,000).
    #[must_use]
    pub const fn offset_millis(mut self, offset: Millis) -> Self {
        self.offset = offset;
        self
    }

    /// How far the watermark must pass a window's end before it closes. Default 0: more grace admits more
    /// disorder and publishes that much later.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = Span::Exact(grace);
        self
    }

    /// The grace in milliseconds; see [`Tumbling::grace`].
    #[must_use]
    pub const fn grace_millis(mut self, grace: Millis) -> Self {
        self.grace = Span::Millis(grace);
        self
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`TumblingError`] when the size is not positive, the grace is negative, or one of them is not a whole
    /// number of milliseconds or does not fit in 63 bits of them.
    pub fn checked(self) -> Result<TumblingWindows, TumblingError> {
        let size = self.size.whole(Part::Size)?;
        let grace = self.grace.whole(Part::Grace)?;
        if size <= 0 {
            return Err(TumblingError::SizeNotPositive { given: size });
        }
        if grace < 0 {
            return Err(TumblingError::GraceNegative { given: grace });
        }
        Ok(TumblingWindows { size, offset: self.offset.rem_euclid(size), grace })
    }
}

/// Checked tumbling windows: which window a timestamp is in, and when that closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TumblingWindows {
    size: Millis,
    offset: Millis,
    grace: Millis,
}

impl TumblingWindows {
    /// The window that `timestamp` is in. Costs a division: keep the last window and ask
    /// [`contains`](Self::contains) first where it matters.
    #[must_use]
    pub fn window_of(&self, timestamp: Millis) -> Window {
        let (size, at) = (i128::from(self.size), i128::from(timestamp));
        let start = at - (at - i128::from(self.offset)).rem_euclid(size);
        Window { start: clamp(start), end: clamp(start + size) }
    }

    /// Whether `window`, one of these, holds `timestamp`.
    #[inline]
    #[must_use]
    pub fn contains(&self, window: Window, timestamp: Millis) -> bool {
        timestamp >= window.start && (timestamp < window.end || window.end == Millis::MAX)
    }

    /// The watermark at which `window` closes: its end plus grace.
    #[inline]
    #[must_use]
    pub const fn closes_at(&self, window: Window) -> Millis {
        window.end.saturating_add(self.grace)
    }

    /// Length of a window in milliseconds.
    #[must_use]
    pub const fn size(&self) -> Millis {
        self.size
    }

    /// The alignment in milliseconds, at least 0 and less than the size.
    #[must_use]
    pub const fn offset(&self) -> Millis {
        self.offset
    }

    /// The grace in milliseconds.
    #[must_use]
    pub const fn grace(&self) -> Millis {
        self.grace
    }

    /// A text that is the same for equal windows and differs for others: part of what stored state is checked by.
    #[must_use]
    pub fn signature(&self) -> String {
        format!("tumbling {} {} {}", self.size, self.offset, self.grace)
    }
}

fn clamp(time: i128) -> Millis {
    Millis::try_from(time).unwrap_or(if time < 0 { Millis::MIN } else { Millis::MAX })
}

/// Which setting an error speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The length of a window.
    Size,
    /// The wait after its end.
    Grace,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Size => "size",
            Self::Grace => "grace",
        })
    }
}

/// Why a description of tumbling windows cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TumblingError {
    /// A window must have a length.
    #[error("the window size is {given} ms; give a size of at least 1 ms")]
    SizeNotPositive {
        /// The size in milliseconds.
        given: Millis,
    },
    /// A window cannot close before its end.
    #[error("the grace is {given} ms; give 0 ms or more")]
    GraceNegative {
        /// The grace in milliseconds.
        given: Millis,
    },
    /// Event time is counted in milliseconds.
    #[error("the window {what} is {given:?}, which is not a whole number of milliseconds; round it")]
    NotWhole {
        /// Which setting.
        what: Part,
        /// As given.
        given: Duration,
    },
    /// Longer than event time can express.
    #[error("the window {what} is {given:?}, longer than 292 million years; give a shorter one")]
    TooLong {
        /// Which setting.
        what: Part,
        /// As given.
        given: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_by_floor_on_both_sides_of_zero() {
        let w = Tumbling::of_millis(1_000).checked().unwrap();
        for (ts, start) in
            [(-1, -1_000), (0, 0), (999, 0), (1_000, 1_000), (-1_000, -1_000), (-1_001, -2_000)]
        {
            assert_eq!(w.window_of(ts), Window { start, end: start + 1_000 }, "timestamp {ts}");
        }
    }

    #[test]
    fn offsets_count_by_their_remainder() {
        for offset in [300, -700, 1_300, 5_300] {
            let w = Tumbling::of_millis(1_000).offset_millis(offset).checked().unwrap();
            assert_eq!(w.window_of(299), Window { start: -700, end: 300 }, "offset {offset}");
            assert_eq!(w.window_of(300), Window { start: 300, end: 1_300 }, "offset {offset}");
        }
    }

    #[test]
    fn every_timestamp_is_in_its_window_even_at_the_ends_of_the_range() {
        for size in [1, 7, 30_000, Millis::MAX] {
            for offset in [0, 3, Millis::MIN, Millis::MAX] {
                let w = Tumbling::of_millis(size).offset_millis(offset).grace_millis(9).checked().unwrap();
                for ts in [Millis::MIN, Millis::MIN + 1, -1, 0, 1, Millis::MAX - 1, Millis::MAX] {
                    let window = w.window_of(ts);
                    assert!(w.contains(window, ts), "{w:?} {window:?} {ts}");
                    assert!(window.start < window.end || ts == Millis::MAX, "{w:?} {window:?} {ts}");
                    assert!(w.closes_at(window) >= window.end);
                }
            }
        }
    }

    #[test]
    fn refuses_what_cannot_be_a_window() {
        assert_eq!(Tumbling::of_millis(0).checked(), Err(TumblingError::SizeNotPositive { given: 0 }));
        assert_eq!(Tumbling::of_millis(-5).checked(), Err(TumblingError::SizeNotPositive { given: -5 }));
        assert_eq!(
            Tumbling::of_millis(5).grace_millis(-1).checked(),
            Err(TumblingError::GraceNegative { given: -1 })
        );
        let odd = Duration::from_micros(1_500);
        assert_eq!(
            Tumbling::of(odd).checked(),
            Err(TumblingError::NotWhole { what: Part::Size, given: odd })
        );
        assert_eq!(
            Tumbling::of_millis(5).grace(Duration::MAX).checked().map_err(|e| matches!(
                e,
                TumblingError::NotWhole { what: Part::Grace, .. }
                    | TumblingError::TooLong { what: Part::Grace, .. }
            )),
            Err(true)
        );
    }
}
