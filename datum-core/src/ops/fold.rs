//! `fold` and `reduce`: one value of all elements, in the middle of a stream.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::error::{ErrorKind, StreamError};
use crate::stage::{Driven, Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`fold`](FoldOps::fold).
pub trait FoldOps: StreamOps {
    /// Folds all elements into one value, beginning with `zero`, and emits it when upstream has completed.
    ///
    /// A panic in `f` is supervised: `Resume` drops the element and keeps the value so far; `Restart` goes back to
    /// `zero`. The value so far moves into `f`, so a decider costs one clone of it per element.
    ///
    /// - **Emits** once, when upstream has completed; `zero` when there was no element.
    /// - **Backpressures** never while upstream lives and there is demand.
    /// - **Completes** after the value.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let sum = Source::from_iter(1..=4).fold(0, |sum, x| sum + x).run_with(Sink::collect())?.await?;
    /// assert_eq!(sum, [10]);
    /// # Ok(())
    /// # }
    /// ```
    fn fold<A, F>(self, zero: A, f: F) -> Self::Then<Fold<A, F>, KeepLeft>
    where
        A: Clone + Send + 'static,
        F: FnMut(A, Self::Item) -> A + Send + 'static,
    {
        self.then(Fold { zero, f })
    }
}

impl<S: StreamOps> FoldOps for S {}

/// Adds [`reduce`](ReduceOps::reduce).
pub trait ReduceOps: StreamOps {
    /// Folds all elements into one of their kind, beginning with the first, and emits it when upstream has completed.
    ///
    /// A panic in `f` is supervised: `Resume` drops the element and keeps the value so far; `Restart` drops both, so
    /// that the next element is the first again. A decider costs one clone of the value per element.
    ///
    /// - **Emits** once, when upstream has completed.
    /// - **Backpressures** never while upstream lives and there is demand.
    /// - **Completes** after the value.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The stream fails with [`NoElement`](ErrorKind::NoElement) when upstream completes without an element.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let most = Source::from_iter([3, 9, 4]).reduce(|a, b| a.max(b)).run_with(Sink::collect())?.await?;
    /// assert_eq!(most, [9]);
    /// # Ok(())
    /// # }
    /// ```
    fn reduce<F>(self, f: F) -> Self::Then<Reduce<F>, KeepLeft>
    where
        Self::Item: Clone,
        F: FnMut(Self::Item, Self::Item) -> Self::Item + Send + 'static,
    {
        self.then(Reduce(f))
    }
}

impl<S: StreamOps> ReduceOps for S {}

/// The operator of [`fold`](FoldOps::fold).
#[derive(Clone, Debug)]
pub struct Fold<A, F> {
    zero: A,
    f: F,
}

/// The operator of [`reduce`](ReduceOps::reduce).
#[derive(Clone, Debug)]
pub struct Reduce<F>(F);

/// How one value is made of many.
pub trait FoldLogic<In>: Send + 'static {
    /// The value.
    type Value: Clone + Send + 'static;
    /// The operator's name.
    const STAGE: &'static str;

    /// The value before the first element, if there is one.
    fn zero(&self) -> Option<Self::Value>;
    /// The value with one element more.
    fn add(&mut self, so_far: Option<Self::Value>, x: In) -> Self::Value;
}

impl<In, A, F> FoldLogic<In> for Fold<A, F>
where
    A: Clone + Send + 'static,
    F: FnMut(A, In) -> A + Send + 'static,
{
    type Value = A;
    const STAGE: &'static str = "fold";

    fn zero(&self) -> Option<A> {
        Some(self.zero.clone())
    }

    #[inline]
    fn add(&mut self, so_far: Option<A>, x: In) -> A {
        (self.f)(so_far.unwrap_or_else(|| self.zero.clone()), x)
    }
}

impl<In: Clone + Send + 'static, F: FnMut(In, In) -> In + Send + 'static> FoldLogic<In> for Reduce<F> {
    type Value = In;
    const STAGE: &'static str = "reduce";

    fn zero(&self) -> Option<In> {
        None
    }

    #[inline]
    fn add(&mut self, so_far: Option<In>, x: In) -> In {
        match so_far {
            Some(so_far) => (self.0)(so_far, x),
            None => x,
        }
    }
}

linear_operator!([In: Send + 'static, A: Clone + Send + 'static, F: FnMut(A, In) -> A + Send + 'static] Fold<A, F>,
    In => A, FoldStage<Fold<A, F>, A>,
    |op, up, m| FoldStage { up: Up::new(up), so_far: Some(op.zero.clone()), logic: op, supervision: m.supervision() });

linear_operator!([In: Clone + Send + 'static, F: FnMut(In, In) -> In + Send + 'static] Reduce<F>,
    In => In, FoldStage<Reduce<F>, In>,
    |op, up, m| FoldStage { up: Up::new(up), so_far: None, logic: op, supervision: m.supervision() });

/// The stage of [`fold`](FoldOps::fold) and [`reduce`](ReduceOps::reduce).
#[derive(Debug)]
pub struct FoldStage<U, L, A> {
    up: Up<U>,
    so_far: Option<A>,
    logic: L,
    supervision: Supervision,
}

impl<U: Stage, L: FoldLogic<U::Out>> FoldStage<U, L, L::Value> {
    /// The value of an upstream that has completed.
    fn value(&mut self) -> Result<L::Value, StreamError> {
        match self.so_far.take() {
            Some(value) => Ok(value),
            None => guard(L::STAGE, || self.logic.zero())?
                .ok_or_else(|| ErrorKind::NoElement { stage: L::STAGE }.into()),
        }
    }
}

impl<U: Stage, L: FoldLogic<U::Out>> Stage for FoldStage<U, L, L::Value> {
    type Out = L::Value;

    fn drive<P: FnMut(L::Value) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            let FoldStage { up, so_far: slot, logic, supervision } = self;
            let (mut judge, keeps) = (Judge::new(supervision), supervision.decides());
            // Local while it drives: in a field it would go through memory for every element.
            let mut so_far = slot.take();
            let answer = up.drive(cx, |x| {
                let backup = match guard(L::STAGE, || if keeps { so_far.clone() } else { None }) {
                    Ok(backup) => backup,
                    Err(error) => return judge.element_failed(error),
                };
                let before = so_far.take();
                match guard(L::STAGE, || logic.add(before, x)) {
                    Ok(after) => {
                        so_far = Some(after);
                        Push::Continue(())
                    }
                    Err(error) => {
                        so_far = backup;
                        let (slot, logic) = (&mut so_far, &*logic);
                        judge.state_failed(error, || *slot = guard(L::STAGE, || logic.zero()).unwrap_or(None))
                    }
                }
            });
            *slot = so_far;
            if judge.conclude(answer, up, cx)? != Progress::Complete {
                return Ok(Progress::Pending);
            }
        }
        // The only one: what downstream answers changes nothing.
        let _ = push(self.value()?);
        Ok(Progress::Complete)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            self.up.tend(cx)?;
        }
        if !self.up.live() {
            self.so_far = Some(self.value()?);
        }
        Ok(Progress::Pending)
    }

    forward!(cancel poll_closed);
}
