//! Smallest and largest.

use std::borrow::Cow;

use super::Aggregate;
use super::number::{Measure, Number};

/// The smallest measurement; NaN only if there is nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Min<F>(pub F);

/// The largest measurement; NaN only if there is nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Max<F>(pub F);

/// Keeps `x` if nothing is held, if what is held is NaN, or if `better(x, held)`; a comparison with NaN is false.
#[inline]
fn keep<N: Number>(held: &mut Option<N>, x: N, better: impl Fn(&N, &N) -> bool) {
    match held {
        Some(h) if !better(&x, h) && !h.is_nan() => {}
        _ => *held = Some(x),
    }
}

macro_rules! extreme {
    ($name:ident, $better:expr, $text:literal) => {
        impl<In: ?Sized, M: Measure, F: Fn(&In) -> M + Send + 'static> Aggregate<In> for $name<F> {
            type Acc = Option<M::Number>;
            type Out = Option<M::Number>;

            fn init(&self) -> Self::Acc {
                None
            }

            #[inline]
            fn add(&self, acc: &mut Self::Acc, input: &In) {
                if let Some(x) = (self.0)(input).measure() {
                    keep(acc, x, $better);
                }
            }

            fn merge(&self, acc: &mut Self::Acc, other: &Self::Acc) {
                if let Some(x) = *other {
                    keep(acc, x, $better);
                }
            }

            fn finish(&self, acc: &Self::Acc) -> Self::Out {
                acc.map(Number::published)
            }

            fn signature(&self) -> Cow<'static, str> {
                format!(concat!($text, " {}"), M::Number::NAME).into()
            }
        }
    };
}
extreme!(Min, PartialOrd::lt, "min");
extreme!(Max, PartialOrd::gt, "max");

#[cfg(test)]
mod tests {
    use super::*;

    fn run(xs: &[f64]) -> (Option<f64>, Option<f64>) {
        let (min, max) = (Min(|x: &f64| *x), Max(|x: &f64| *x));
        let (mut a, mut b) = (Aggregate::<f64>::init(&min), Aggregate::<f64>::init(&max));
        for x in xs {
            min.add(&mut a, x);
            max.add(&mut b, x);
        }
        (min.finish(&a), max.finish(&b))
    }

    #[test]
    fn nan_counts_only_when_alone() {
        assert_eq!(run(&[f64::NAN, 2.0, f64::NAN, -1.0]), (Some(-1.0), Some(2.0)));
        assert!(run(&[f64::NAN]).0.is_some_and(f64::is_nan));
        assert_eq!(run(&[]), (None, None));
    }

    #[test]
    fn either_zero_is_published_as_zero() {
        for zeros in [[0.0, -0.0], [-0.0, 0.0]] {
            let (min, max) = run(&zeros);
            assert!(min.is_some_and(f64::is_sign_positive) && max.is_some_and(f64::is_sign_positive));
        }
        assert_eq!(run(&[f64::NEG_INFINITY, f64::INFINITY]), (Some(f64::NEG_INFINITY), Some(f64::INFINITY)));
    }
}
