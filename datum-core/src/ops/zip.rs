//! `zip` and `zip_with`: the elements of two streams in pairs.

use super::fan_in::{complete_both, fail_both, prefetch};
use crate::all_closed;
use crate::blueprint::{Blueprint, Built, KeepLeft, Operator, Source, StreamOps};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};
use std::fmt;
use std::task::Poll;

/// Adds [`zip`](ZipOps::zip) and [`zip_with`](ZipOps::zip_with).
pub trait ZipOps: StreamOps {
    /// Emits pairs: the first elements of both streams, the second ones, and so on.
    ///
    /// While there is no demand one element of each input is asked for, so that a loop of streams can begin.
    ///
    /// - **Emits** when both inputs have an element.
    /// - **Backpressures** when downstream does.
    /// - **Completes** as soon as no further pair can exist: an input has completed and nothing of it is held. Fails at
    ///   once when either fails.
    /// - **Cancels** both when downstream cancels, and the other when one completes.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let pairs = Source::from_iter(1..).zip(Source::from_iter(["a", "b"])).run_with(Sink::collect())?.await?;
    /// assert_eq!(pairs, [(1, "a"), (2, "b")]);
    /// # Ok(())
    /// # }
    /// ```
    fn zip<B: Blueprint>(self, other: Source<B>) -> Self::Then<Zip<B, Pair>, KeepLeft> {
        self.then(Zip { other: other.into_blueprint(), combine: Pair })
    }

    /// As [`zip`](ZipOps::zip), with `f` making one element of each pair.
    ///
    /// A panic in `f` is supervised: `Resume` and `Restart` drop the pair.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let sums = Source::from_iter(1..)
    ///     .zip_with(Source::from_iter([10, 20]), |a, b| a + b)
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(sums, [11, 22]);
    /// # Ok(())
    /// # }
    /// ```
    fn zip_with<B, T, F>(self, other: Source<B>, f: F) -> Self::Then<Zip<B, With<F>>, KeepLeft>
    where
        B: Blueprint,
        T: Send + 'static,
        F: FnMut(Self::Item, B::Out) -> T + Send + 'static,
    {
        self.then(Zip { other: other.into_blueprint(), combine: With(f) })
    }
}

impl<S: StreamOps> ZipOps for S {}

/// What becomes of two elements.
pub trait Combine<A, B>: Send + 'static {
    /// It.
    type Out: Send + 'static;

    /// Makes it.
    fn combine(&mut self, a: A, b: B) -> Self::Out;
}

/// A pair of them.
#[derive(Clone, Copy, Debug)]
pub struct Pair;

/// What a closure makes of them.
#[derive(Clone, Debug)]
pub struct With<F>(F);

impl<A: Send + 'static, B: Send + 'static> Combine<A, B> for Pair {
    type Out = (A, B);

    #[inline]
    fn combine(&mut self, a: A, b: B) -> (A, B) {
        (a, b)
    }
}

impl<A, B, T: Send + 'static, F: FnMut(A, B) -> T + Send + 'static> Combine<A, B> for With<F> {
    type Out = T;

    #[inline]
    fn combine(&mut self, a: A, b: B) -> T {
        (self.0)(a, b)
    }
}

/// The operator of [`zip`](ZipOps::zip). Its materialised value is that of the other source.
#[derive(Clone, Debug)]
pub struct Zip<B, C> {
    other: B,
    combine: C,
}

impl<In: Send + 'static, B: Blueprint, C: Combine<In, B::Out>> Operator<In> for Zip<B, C> {
    type Out = C::Out;
    type Mat = B::Mat;
    type Stage<U: Stage<Out = In>> = ZipStage<U, B::Stage, C>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Stage<U>, B::Mat> {
        let (other, mat) = self.other.build(materializer)?;
        let (a, b, supervision) = (Up::new(up), Up::new(other), materializer.supervision());
        Ok((ZipStage { a, b, held_a: None, held_b: None, combine: self.combine, supervision }, mat))
    }
}

/// The stage of [`zip`](ZipOps::zip).
pub struct ZipStage<A: Stage, B: Stage, C> {
    a: Up<A>,
    b: Up<B>,
    held_a: Option<A::Out>,
    held_b: Option<B::Out>,
    combine: C,
    supervision: Supervision,
}

impl<A: Stage, B: Stage, C> fmt::Debug for ZipStage<A, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ZipStage")
    }
}

/// Asks for the element of one input, unless it is held.
#[inline]
fn fetch<U: Stage>(up: &mut Up<U>, held: &mut Option<U::Out>, cx: &mut StageCx<'_, '_>) -> Driven {
    if held.is_some() || !up.live() {
        up.settle(cx);
        return Ok(Progress::Stopped);
    }
    up.drive(cx, |x| {
        *held = Some(x);
        Push::Break(())
    })
}

impl<A: Stage, B: Stage, C: Combine<A::Out, B::Out>> ZipStage<A, B, C> {
    fn drop_held(&mut self) {
        (self.held_a, self.held_b) = (None, None);
    }

    #[cold]
    fn fail(&mut self, error: StreamError, cx: &mut StageCx<'_, '_>) -> Driven {
        self.drop_held();
        fail_both(&mut self.a, &mut self.b, error, cx)
    }

    #[cold]
    fn complete(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.drop_held();
        complete_both(&mut self.a, &mut self.b, cx)
    }

    /// No further pair can exist.
    fn over(&self) -> bool {
        (self.held_a.is_none() && !self.a.live()) || (self.held_b.is_none() && !self.b.live())
    }
}

impl<A: Stage, B: Stage, C: Combine<A::Out, B::Out>> Stage for ZipStage<A, B, C> {
    type Out = C::Out;

    fn drive<P: FnMut(C::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            if let Err(error) = fetch(&mut self.a, &mut self.held_a, cx) {
                return self.fail(error, cx);
            }
            if let Err(error) = fetch(&mut self.b, &mut self.held_b, cx) {
                return self.fail(error, cx);
            }
            if self.held_a.is_none() || self.held_b.is_none() {
                // One has answered Pending or ended; the other may have stopped at its element: tend it. Tending may
                // find the missing one after all, and `Pending` now would lose it until the next wake.
                let answer = self.tend(cx)?;
                if answer == Progress::Complete || self.held_a.is_none() || self.held_b.is_none() {
                    return Ok(answer);
                }
            }
            let (Some(a), Some(b)) = (self.held_a.take(), self.held_b.take()) else {
                continue;
            };
            let combine = &mut self.combine;
            let flow = match guard("zip_with", || combine.combine(a, b)) {
                Ok(x) => push(x),
                Err(error) => {
                    let mut judge = Judge::new(&self.supervision);
                    let _ = judge.element_failed(error);
                    if let Some(error) = judge.stopped_by() {
                        return self.fail(error, cx);
                    }
                    Push::Continue(())
                }
            };
            if self.over() {
                return self.complete(cx);
            }
            if flow.is_break() {
                return Ok(Progress::Stopped);
            }
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if let Err(error) = prefetch(&mut self.a, &mut self.held_a, cx) {
            return self.fail(error, cx);
        }
        if let Err(error) = prefetch(&mut self.b, &mut self.held_b, cx) {
            return self.fail(error, cx);
        }
        if self.over() { self.complete(cx) } else { Ok(Progress::Pending) }
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.drop_held();
        self.a.cancel(cause.clone(), cx);
        self.b.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        all_closed!(cx, self.a, self.b)
    }
}
