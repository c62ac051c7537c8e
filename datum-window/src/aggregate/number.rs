//! What can be measured: whole numbers, floats, and options of them.

use std::fmt::Debug;

use crate::Value;

/// A number that aggregates accept.
pub trait Number: Copy + PartialOrd + Debug + Send + 'static {
    /// How its sum is kept.
    type Total: Total<Self>;
    /// Its name in signatures.
    const NAME: &'static str;

    /// As a float; whole numbers above 2^53 are rounded.
    fn to_f64(self) -> f64;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
    /// The same number in its one published form: negative zero becomes zero.
    #[must_use]
    fn published(self) -> Self;
}

/// A sum in the making.
pub trait Total<N>: Clone + Default + Debug + Send + 'static {
    /// The finished sum.
    type Out: Into<Value> + Send + 'static;

    /// Adds a number.
    fn add(&mut self, number: N);
    /// Adds another sum.
    fn merge(&mut self, other: &Self);
    /// The sum.
    fn get(&self) -> Self::Out;
    /// The sum as a float.
    fn get_f64(&self) -> f64;
}

/// What a closure reads from a record: a [`Number`] or an `Option` of one.
pub trait Measure {
    /// The kind of number.
    type Number: Number + Into<Value>;
    /// The measurement, if there is one.
    fn measure(self) -> Option<Self::Number>;
}

impl<M: Measure> Measure for Option<M> {
    type Number = M::Number;

    #[inline]
    fn measure(self) -> Option<M::Number> {
        self.and_then(M::measure)
    }
}

/// Whole numbers: cannot overflow before 2^64 records.
impl<N: Into<Self> + Copy> Total<N> for i128 {
    type Out = Self;

    #[inline]
    fn add(&mut self, number: N) {
        *self = self.saturating_add(number.into());
    }

    fn merge(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }

    fn get(&self) -> Self {
        *self
    }

    #[allow(clippy::cast_precision_loss)]
    fn get_f64(&self) -> f64 {
        *self as f64
    }
}

/// A compensated sum of floats: `sum` is the rounded sum, `lost` the sum of what rounding took away.
#[derive(Clone, Copy, Debug, Default)]
pub struct FloatSum {
    sum: f64,
    lost: f64,
}

impl FloatSum {
    /// Two-sum without a branch (Knuth): exact for any order of magnitudes.
    #[inline]
    fn push(&mut self, x: f64) {
        let sum = self.sum + x;
        let took = sum - self.sum;
        self.lost += (self.sum - (sum - took)) + (x - took);
        self.sum = sum;
    }
}

impl<N: Into<f64>> Total<N> for FloatSum {
    type Out = f64;

    #[inline]
    fn add(&mut self, number: N) {
        self.push(number.into());
    }

    fn merge(&mut self, other: &Self) {
        self.push(other.sum);
        self.lost += other.lost;
    }

    fn get(&self) -> f64 {
        // Past an infinity or a NaN the compensation is meaningless.
        if self.sum.is_finite() { self.sum + self.lost + 0.0 } else { self.sum }
    }

    fn get_f64(&self) -> f64 {
        <Self as Total<N>>::get(self)
    }
}

macro_rules! whole {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type Total = i128;
            const NAME: &'static str = stringify!($t);

            #[inline]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline]
            fn is_nan(self) -> bool {
                false
            }

            fn published(self) -> Self {
                self
            }
        }

        impl Measure for $t {
            type Number = Self;

            #[inline]
            fn measure(self) -> Option<Self> {
                Some(self)
            }
        }
    )*};
}
whole!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type Total = FloatSum;
            const NAME: &'static str = stringify!($t);

            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }

            fn published(self) -> Self {
                if self == 0.0 { 0.0 } else { self }
            }
        }

        impl Measure for $t {
            type Number = Self;

            #[inline]
            fn measure(self) -> Option<Self> {
                Some(self)
            }
        }
    )*};
}
float!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(xs: &[f64]) -> f64 {
        let mut s = FloatSum::default();
        for x in xs {
            Total::<f64>::add(&mut s, *x);
        }
        Total::<f64>::get(&s)
    }

    #[test]
    fn a_float_sum_keeps_what_rounding_takes() {
        assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
        let tenths = vec![0.1; 10_000_000];
        assert!((sum(&tenths) - 1_000_000.0).abs() < 1e-9);
    }

    #[test]
    fn infinities_and_nan_pass_through() {
        assert_eq!(sum(&[1.0, f64::INFINITY, 2.0]), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum(&[1.0, f64::NAN]).is_nan());
        assert!(sum(&[-0.0]).is_sign_positive());
    }
}
