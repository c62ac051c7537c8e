//! Many named aggregates as one.
//!
//! `Aggregates` grows by one type parameter per aggregate, as an iterator chain does: its accumulator is the nested
//! pair of theirs, which the compiler lays out flat and updates in one go.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use super::number::Measure;
use super::{Aggregate, Count, CountIf, Max, Mean, Min, StddevPop, Sum};
use crate::Value;
use crate::row::{Name, Row};

/// A builder of named aggregates that is itself an [`Aggregate`]; its result is a [`Row`] in the order of declaration.
///
/// ```
/// use datum_window::{Aggregate, Aggregates};
///
/// struct Metric { latency_ms: f64, errors: u32 }
/// let rollup = Aggregates::<Metric>::new()
///     .count("count")
///     .mean("latency_avg", |m| m.latency_ms)
///     .max("latency_max", |m| m.latency_ms)
///     .count_if("slow", |m| m.latency_ms > 80.0)
///     .sum("errors", |m| m.errors);
/// let mut acc = rollup.init();
/// rollup.add(&mut acc, &Metric { latency_ms: 90.0, errors: 2 });
/// rollup.add(&mut acc, &Metric { latency_ms: 10.0, errors: 1 });
/// let row = rollup.finish(&acc);
/// assert_eq!(row.get("latency_avg").and_then(|v| v.as_f64()), Some(50.0));
/// assert_eq!(row.get("errors").and_then(|v| v.as_int()), Some(3));
/// ```
pub struct Aggregates<In: ?Sized, S = ()> {
    slots: S,
    names: Arc<[Name]>,
    input: PhantomData<fn(&In)>,
}

impl<In: ?Sized, S: Clone> Clone for Aggregates<In, S> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone(), names: Arc::clone(&self.names), input: PhantomData }
    }
}

/// One aggregate with its name.
#[derive(Clone)]
pub struct Named<A> {
    aggregate: A,
}

/// A nested pair of aggregates; implemented for `()` and `(Slots, Named<Aggregate>)`.
pub trait Slots<In: ?Sized>: Send + 'static {
    /// The nested pair of their accumulators.
    type Acc: Clone + Send + 'static;

    /// Accumulators of no records.
    fn init(&self) -> Self::Acc;
    /// Adds one record to each.
    fn add(&self, acc: &mut Self::Acc, input: &In);
    /// Merges each.
    fn merge(&self, acc: &mut Self::Acc, other: &Self::Acc);
    /// Appends each result.
    fn finish(&self, acc: &Self::Acc, out: &mut Vec<Value>);
    /// Appends each signature.
    fn signatures(&self, out: &mut Vec<Cow<'static, str>>);
}

impl<In: ?Sized> Slots<In> for () {
    type Acc = ();

    fn init(&self) {}

    #[inline]
    fn add(&self, (): &mut (), _: &In) {}

    fn merge(&self, (): &mut (), (): &()) {}

    fn finish(&self, (): &(), _: &mut Vec<Value>) {}

    fn signatures(&self, _: &mut Vec<Cow<'static, str>>) {}
}

impl<In: ?Sized, S: Slots<In>, A: Aggregate<In, Out: Into<Value>>> Slots<In> for (S, Named<A>) {
    type Acc = (S::Acc, A::Acc);

    fn init(&self) -> Self::Acc {
        (self.0.init(), self.1.aggregate.init())
    }

    #[inline]
    fn add(&self, acc: &mut Self::Acc, input: &In) {
        self.0.add(&mut acc.0, input);
        self.1.aggregate.add(&mut acc.1, input);
    }

    fn merge(&self, acc: &mut Self::Acc, other: &Self::Acc) {
        self.0.merge(&mut acc.0, &other.0);
        self.1.aggregate.merge(&mut acc.1, &other.1);
    }

    fn finish(&self, acc: &Self::Acc, out: &mut Vec<Value>) {
        self.0.finish(&acc.0, out);
        out.push(self.1.aggregate.finish(&acc.1).into());
    }

    fn signatures(&self, out: &mut Vec<Cow<'static, str>>) {
        self.0.signatures(out);
        out.push(self.1.aggregate.signature());
    }
}

impl<In: ?Sized> Default for Aggregates<In> {
    fn default() -> Self {
        Self::new()
    }
}

impl<In: ?Sized> Aggregates<In> {
    /// No aggregates yet.
    #[must_use]
    pub fn new() -> Self {
        Self { slots: (), names: Arc::new([]), input: PhantomData }
    }
}

impl<In: ?Sized + 'static, S: Slots<In>> Aggregates<In, S> {
    /// Adds any aggregate under `name`: one of [`aggregate`](crate::aggregate), a [`Custom`](super::Custom), or your
    /// own implementation.
    #[must_use]
    pub fn with<A>(self, name: impl Into<Name>, aggregate: A) -> Aggregates<In, (S, Named<A>)>
    where
        A: Aggregate<In, Out: Into<Value>>,
    {
        let names = self.names.iter().cloned().chain([name.into()]).collect();
        Aggregates { slots: (self.slots, Named { aggregate }), names, input: PhantomData }
    }

    /// How many records.
    #[must_use]
    pub fn count(self, name: impl Into<Name>) -> Aggregates<In, (S, Named<Count>)> {
        self.with(name, Count)
    }

    /// How many records `holds` is true for.
    #[must_use]
    pub fn count_if<F>(self, name: impl Into<Name>, holds: F) -> Aggregates<In, (S, Named<CountIf<F>>)>
    where
        F: Fn(&In) -> bool + Send + 'static,
    {
        self.with(name, CountIf(holds))
    }

    /// The sum: exact for whole numbers, compensated for floats.
    #[must_use]
    pub fn sum<M: Measure, F>(self, name: impl Into<Name>, of: F) -> Aggregates<In, (S, Named<Sum<F>>)>
    where
        F: Fn(&In) -> M + Send + 'static,
    {
        self.with(name, Sum(of))
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn mean<M: Measure, F>(self, name: impl Into<Name>, of: F) -> Aggregates<In, (S, Named<Mean<F>>)>
    where
        F: Fn(&In) -> M + Send + 'static,
    {
        self.with(name, Mean(of))
    }

    /// The smallest.
    #[must_use]
    pub fn min<M: Measure, F>(self, name: impl Into<Name>, of: F) -> Aggregates<In, (S, Named<Min<F>>)>
    where
        F: Fn(&In) -> M + Send + 'static,
    {
        self.with(name, Min(of))
    }

    /// The largest.
    #[must_use]
    pub fn max<M: Measure, F>(self, name: impl Into<Name>, of: F) -> Aggregates<In, (S, Named<Max<F>>)>
    where
        F: Fn(&In) -> M + Send + 'static,
    {
        self.with(name, Max(of))
    }

    /// The population standard deviation.
    #[must_use]
    pub fn stddev_pop<M: Measure, F>(
        self,
        name: impl Into<Name>,
        of: F,
    ) -> Aggregates<In, (S, Named<StddevPop<F>>)>
    where
        F: Fn(&In) -> M + Send + 'static,
    {
        self.with(name, StddevPop(of))
    }

    /// The names in order.
    #[must_use]
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Checks the names.
    ///
    /// # Errors
    /// [`AggregatesError`] when there is no aggregate, or two have one name, or one has the name of a column that
    /// `reserved` lists (the key, the window's bounds).
    pub fn check(&self, reserved: &[&str]) -> Result<(), AggregatesError> {
        check_names(&self.names, reserved)
    }
}

impl<In: ?Sized + 'static, S: Slots<In>> Aggregate<In> for Aggregates<In, S> {
    type Acc = S::Acc;
    type Out = Row;

    fn init(&self) -> S::Acc {
        self.slots.init()
    }

    #[inline]
    fn add(&self, acc: &mut S::Acc, input: &In) {
        self.slots.add(acc, input);
    }

    fn merge(&self, acc: &mut S::Acc, other: &S::Acc) {
        self.slots.merge(acc, other);
    }

    fn finish(&self, acc: &S::Acc) -> Row {
        let mut values = Vec::with_capacity(self.names.len());
        self.slots.finish(acc, &mut values);
        Row::new(Arc::clone(&self.names), values)
    }

    fn signature(&self) -> Cow<'static, str> {
        let mut signatures = Vec::with_capacity(self.names.len());
        self.slots.signatures(&mut signatures);
        let all: Vec<String> = self.names.iter().zip(signatures).map(|(n, s)| format!("{n}={s}")).collect();
        all.join(";").into()
    }
}

/// Checks the names of aggregates, as [`Aggregates::check`] does: for those that only show in a [`Row`].
///
/// # Errors
/// [`AggregatesError`], under the same conditions.
pub fn check_names(names: &[Name], reserved: &[&str]) -> Result<(), AggregatesError> {
    if names.is_empty() {
        return Err(AggregatesError::None);
    }
    for (i, name) in names.iter().enumerate() {
        if reserved.contains(&name.as_ref()) {
            return Err(AggregatesError::Reserved { name: name.clone() });
        }
        if names[..i].contains(name) {
            return Err(AggregatesError::Duplicate { name: name.clone() });
        }
    }
    Ok(())
}

/// Why a set of aggregates cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregatesError {
    /// A pane would hold nothing.
    #[error("no aggregate is declared; add at least one, for example count(\"count\")")]
    None,
    /// Two outputs of one name.
    #[error("two aggregates are called {name:?}; rename one")]
    Duplicate {
        /// The name.
        name: Name,
    },
    /// The name is a pane's own.
    #[error("an aggregate is called {name:?}, which is a column of every pane; rename it")]
    Reserved {
        /// The name.
        name: Name,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let check = |a: &Aggregates<u64, _>| a.check(&["region"]);
        assert_eq!(Aggregates::<u64>::new().check(&[]), Err(AggregatesError::None));
        let twice = Aggregates::<u64>::new().count("n").count("n");
        assert_eq!(twice.check(&[]), Err(AggregatesError::Duplicate { name: "n".into() }));
        assert_eq!(
            check(&Aggregates::<u64>::new().count("region")),
            Err(AggregatesError::Reserved { name: "region".into() })
        );
        assert_eq!(check(&Aggregates::<u64>::new().count("n")), Ok(()));
    }

    #[test]
    fn options_leave_out_what_is_missing() {
        let a = Aggregates::<Option<i64>>::new()
            .count("n")
            .mean("avg", |x| *x)
            .sum("sum", |x| *x)
            .min("min", |x| *x);
        let mut acc = a.init();
        a.add(&mut acc, &None);
        assert_eq!(a.finish(&acc).values(), [Value::Int(1), Value::Null, Value::Int(0), Value::Null]);
        a.add(&mut acc, &Some(-4));
        assert_eq!(
            a.finish(&acc).values(),
            [Value::Int(2), Value::Float(-4.0), Value::Int(-4), Value::Int(-4)]
        );
    }

    #[test]
    fn sums_of_whole_numbers_pass_64_bits() {
        let a = Aggregates::<u64>::new().sum("sum", |x| *x);
        let mut acc = a.init();
        a.add(&mut acc, &u64::MAX);
        a.add(&mut acc, &u64::MAX);
        assert_eq!(a.finish(&acc).values(), [Value::Int(2 * i128::from(u64::MAX))]);
    }

    #[test]
    fn the_signature_speaks_of_names_kinds_and_types() {
        let a = Aggregates::<f64>::new().count("n").sum("s", |x| *x);
        assert_eq!(a.signature(), "n=count;s=sum f64");
    }
}
