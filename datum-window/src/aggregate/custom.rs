//! An aggregate of four closures.

use std::borrow::Cow;

use super::Aggregate;

/// A user's own aggregate: how to start, add, merge and finish.
///
/// ```
/// use datum_window::aggregate::{Aggregate, Custom};
///
/// // The record with the highest score. "2" is its version: raise it when the meaning changes.
/// let best = Custom::new(
///     "best 2",
///     || (0_u32, String::new()),
///     |best: &mut (u32, String), r: &(u32, &str)| {
///         if r.0 > best.0 {
///             *best = (r.0, r.1.to_owned());
///         }
///     },
///     |best, other| {
///         if other.0 > best.0 {
///             *best = other.clone();
///         }
///     },
///     |best| best.1.clone(),
/// );
/// let mut acc = best.init();
/// best.add(&mut acc, &(3, "a"));
/// best.add(&mut acc, &(9, "b"));
/// assert_eq!(best.finish(&acc), "b");
/// ```
#[derive(Clone)]
pub struct Custom<I, A, M, F> {
    signature: Cow<'static, str>,
    init: I,
    add: A,
    merge: M,
    finish: F,
}

impl<I, A, M, F> Custom<I, A, M, F> {
    /// An aggregate that starts with `init()`, adds a record with `add`, another accumulator with `merge`, and
    /// publishes `finish`. `signature` names it and its version: see [`Aggregate::signature`].
    pub fn new<In: ?Sized, Acc, Out>(
        signature: impl Into<Cow<'static, str>>,
        init: I,
        add: A,
        merge: M,
        finish: F,
    ) -> Self
    where
        I: Fn() -> Acc,
        A: Fn(&mut Acc, &In),
        M: Fn(&mut Acc, &Acc),
        F: Fn(&Acc) -> Out,
    {
        Self { signature: signature.into(), init, add, merge, finish }
    }
}

impl<In, Acc, Out, I, A, M, F> Aggregate<In> for Custom<I, A, M, F>
where
    In: ?Sized,
    Acc: Clone + Send + 'static,
    Out: Send + 'static,
    I: Fn() -> Acc + Send + 'static,
    A: Fn(&mut Acc, &In) + Send + 'static,
    M: Fn(&mut Acc, &Acc) + Send + 'static,
    F: Fn(&Acc) -> Out + Send + 'static,
{
    type Acc = Acc;
    type Out = Out;

    fn init(&self) -> Acc {
        (self.init)()
    }

    #[inline]
    fn add(&self, acc: &mut Acc, input: &In) {
        (self.add)(acc, input);
    }

    fn merge(&self, acc: &mut Acc, other: &Acc) {
        (self.merge)(acc, other);
    }

    fn finish(&self, acc: &Acc) -> Out {
        (self.finish)(acc)
    }

    fn signature(&self) -> Cow<'static, str> {
        self.signature.clone()
    }
}
