//! Aggregates: what a pane computes.
//!
//! One [`Aggregate`] turns records into an accumulator that can be merged with another and finished. [`Aggregates`]
//! composes any number of them, each with a name, into one whose accumulator is a plain nested struct: no boxes, no
//! dynamic calls, one pass per record.
//!
//! # Exactness
//! - Counts and sums of whole numbers are exact (128 bits inside).
//! - Sums and means of floats carry a compensation term (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur
//!   Summation endlicher Summen", 1974), so their error does not grow with the number of records.
//! - [`stddev_pop`](Aggregates::stddev_pop) keeps mean and squared distance (Welford, "Note on a method for
//!   calculating corrected sums of squares and products", 1962) and merges them by Chan, Golub and LeVeque (1979): no
//!   difference of large squares anywhere.
//!
//! # NaN and infinities
//! A NaN makes the sum, mean and deviation of its pane NaN, and is skipped by `min` and `max` unless there is nothing
//! else. An infinity makes the sum and mean infinite (opposite ones: NaN) and the deviation NaN. `min` and `max` give
//! 0.0 for either zero.
//!
//! # No measurement
//! A closure may return `Option`: `None` is no measurement, and is left out. `min`, `max`, `mean` and `stddev_pop` of
//! no measurements are null, sums are 0.

mod compose;
mod custom;
mod extremes;
mod moments;
mod number;
mod sums;

pub use compose::{Aggregates, AggregatesError, Named, Slots, check_names};
pub use custom::Custom;
pub use extremes::{Max, Min};
pub use moments::{Moments, StddevPop};
pub use number::{FloatSum, Measure, Number, Total};
pub use sums::{Count, CountIf, Mean, MeanAcc, Sum};

use std::borrow::Cow;

/// What is computed over the records of a pane.
///
/// The laws: `merge(acc, init())` changes nothing; adding records to one accumulator, or to two that are then merged,
/// finishes to the same result (exactly for whole numbers, up to rounding for floats).
pub trait Aggregate<In: ?Sized>: Send + 'static {
    /// What is kept while the window is open.
    type Acc: Clone + Send + 'static;
    /// What is published.
    type Out: Send + 'static;

    /// The accumulator of no records.
    fn init(&self) -> Self::Acc;
    /// Adds one record.
    fn add(&self, acc: &mut Self::Acc, input: &In);
    /// Adds another accumulator's records.
    fn merge(&self, acc: &mut Self::Acc, other: &Self::Acc);
    /// The result.
    fn finish(&self, acc: &Self::Acc) -> Self::Out;
    /// A short text that changes when the meaning of the result does; a job compares it with what its stored state was
    /// made under. A closure's body is not in it: version a [`Custom`] aggregate by hand.
    fn signature(&self) -> Cow<'static, str>;
}
