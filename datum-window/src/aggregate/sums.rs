//! Counts, sums and means.

use std::borrow::Cow;

use super::Aggregate;
use super::number::{Measure, Number, Total};

/// How many records.
#[derive(Clone, Copy, Debug)]
pub struct Count;

impl<In: ?Sized> Aggregate<In> for Count {
    type Acc = u64;
    type Out = u64;

    fn init(&self) -> u64 {
        0
    }

    #[inline]
    fn add(&self, acc: &mut u64, _: &In) {
        *acc += 1;
    }

    fn merge(&self, acc: &mut u64, other: &u64) {
        *acc += other;
    }

    fn finish(&self, acc: &u64) -> u64 {
        *acc
    }

    fn signature(&self) -> Cow<'static, str> {
        "count".into()
    }
}

/// How many records a predicate holds for.
#[derive(Clone, Copy, Debug)]
pub struct CountIf<F>(pub F);

impl<In: ?Sized, F: Fn(&In) -> bool + Send + 'static> Aggregate<In> for CountIf<F> {
    type Acc = u64;
    type Out = u64;

    fn init(&self) -> u64 {
        0
    }

    #[inline]
    fn add(&self, acc: &mut u64, input: &In) {
        *acc += u64::from((self.0)(input));
    }

    fn merge(&self, acc: &mut u64, other: &u64) {
        *acc += other;
    }

    fn finish(&self, acc: &u64) -> u64 {
        *acc
    }

    fn signature(&self) -> Cow<'static, str> {
        "count_if".into()
    }
}

/// The sum of a measurement: exact for whole numbers, compensated for floats.
#[derive(Clone, Copy, Debug)]
pub struct Sum<F>(pub F);

impl<In: ?Sized, M: Measure, F: Fn(&In) -> M + Send + 'static> Aggregate<In> for Sum<F> {
    type Acc = <M::Number as Number>::Total;
    type Out = <<M::Number as Number>::Total as Total<M::Number>>::Out;

    fn init(&self) -> Self::Acc {
        Self::Acc::default()
    }

    #[inline]
    fn add(&self, acc: &mut Self::Acc, input: &In) {
        if let Some(x) = (self.0)(input).measure() {
            acc.add(x);
        }
    }

    fn merge(&self, acc: &mut Self::Acc, other: &Self::Acc) {
        acc.merge(other);
    }

    fn finish(&self, acc: &Self::Acc) -> Self::Out {
        acc.get()
    }

    fn signature(&self) -> Cow<'static, str> {
        format!("sum {}", M::Number::NAME).into()
    }
}

/// The arithmetic mean of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Mean<F>(pub F);

/// A sum with how many measurements are in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeanAcc<T> {
    total: T,
    count: u64,
}

impl<In: ?Sized, M: Measure, F: Fn(&In) -> M + Send + 'static> Aggregate<In> for Mean<F> {
    type Acc = MeanAcc<<M::Number as Number>::Total>;
    type Out = Option<f64>;

    fn init(&self) -> Self::Acc {
        MeanAcc { total: Default::default(), count: 0 }
    }

    #[inline]
    fn add(&self, acc: &mut Self::Acc, input: &In) {
        if let Some(x) = (self.0)(input).measure() {
            acc.total.add(x);
            acc.count += 1;
        }
    }

    fn merge(&self, acc: &mut Self::Acc, other: &Self::Acc) {
        acc.total.merge(&other.total);
        acc.count += other.count;
    }

    #[allow(clippy::cast_precision_loss)]
    fn finish(&self, acc: &Self::Acc) -> Option<f64> {
        (acc.count > 0).then(|| acc.total.get_f64() / acc.count as f64)
    }

    fn signature(&self) -> Cow<'static, str> {
        format!("mean {}", M::Number::NAME).into()
    }
}
