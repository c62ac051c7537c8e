//! The population standard deviation, stable and mergeable.

use std::borrow::Cow;

use super::Aggregate;
use super::number::{Measure, Number};

/// Count, mean and sum of squared distances from the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a measurement (Welford's update).
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.count += 1.0;
        let from_old = x - self.mean;
        self.mean += from_old / self.count;
        self.squares += from_old * (x - self.mean);
    }

    /// Adds the measurements of another (Chan, Golub and LeVeque).
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            *self = *other;
            return;
        }
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        self.mean += apart * (other.count / count);
        self.squares += other.squares + apart * apart * (self.count * other.count / count);
        self.count = count;
    }

    /// The population variance, if there is a measurement.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        // Rounding cannot make the sum of squares negative, only `max` would hide a NaN.
        (self.count > 0.0).then(|| self.squares / self.count)
    }
}

/// The population standard deviation of a measurement: of one measurement it is 0, of none null.
#[derive(Clone, Copy, Debug)]
pub struct StddevPop<F>(pub F);

impl<In: ?Sized, M: Measure, F: Fn(&In) -> M + Send + 'static> Aggregate<In> for StddevPop<F> {
    type Acc = Moments;
    type Out = Option<f64>;

    fn init(&self) -> Moments {
        Moments::default()
    }

    #[inline]
    fn add(&self, acc: &mut Moments, input: &In) {
        if let Some(x) = (self.0)(input).measure() {
            acc.add(x.to_f64());
        }
    }

    fn merge(&self, acc: &mut Moments, other: &Moments) {
        acc.merge(other);
    }

    fn finish(&self, acc: &Moments) -> Option<f64> {
        acc.variance().map(f64::sqrt)
    }

    fn signature(&self) -> Cow<'static, str> {
        "stddev_pop".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_from_zero_the_deviation_survives() {
        // 1e9 + {4, 7, 13, 16}: the textbook sum of squares loses every digit of the variance, 22.5.
        let mut m = Moments::default();
        for x in [4.0, 7.0, 13.0, 16.0] {
            m.add(1e9 + x);
        }
        assert_eq!(m.variance(), Some(22.5));
    }

    #[test]
    fn halves_merge_to_the_whole() {
        let xs: Vec<f64> = (0..1_000).map(|i| f64::from(i * i % 977) + 1e7).collect();
        let mut whole = Moments::default();
        let (mut left, mut right) = (Moments::default(), Moments::default());
        for (i, x) in xs.iter().enumerate() {
            whole.add(*x);
            if i % 3 == 0 { left.add(*x) } else { right.add(*x) }
        }
        left.merge(&right);
        left.merge(&Moments::default());
        let (a, b) = (whole.variance().unwrap(), left.variance().unwrap());
        assert!((a - b).abs() <= 1e-12 * a, "{a} {b}");
    }

    #[test]
    fn one_measurement_deviates_by_nothing() {
        let mut m = Moments::default();
        assert_eq!(m.variance(), None);
        m.add(17.25);
        assert_eq!(m.variance(), Some(0.0));
        m.add(f64::INFINITY);
        assert!(m.variance().is_some_and(f64::is_nan));
    }
}
