//! `merge`: the elements of two streams as they come.

use super::fan_in::{complete_both, fail_both, prefetch};
use crate::all_closed;
use crate::blueprint::{Blueprint, Built, KeepLeft, Operator, Source, StreamOps};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use std::fmt;
use std::task::Poll;

/// Adds [`merge`](MergeOps::merge) and [`merge_eager`](MergeOps::merge_eager).
pub trait MergeOps: StreamOps {
    /// Emits the elements of this stream and of `other` as they come; those of one input keep their order.
    ///
    /// Neither input is starved: the two take turns whenever both are ready, and one that is always busy without
    /// giving anything (a filter that keeps nothing) leaves half of each turn's budget to the other. While there is no
    /// demand one element of each input is asked for, so that a loop of streams can begin.
    ///
    /// - **Emits** when one of the inputs has an element.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when both inputs have completed. Fails at once when one fails.
    /// - **Cancels** both when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let mut all = Source::from_iter([1, 3]).merge(Source::from_iter([2])).run_with(Sink::collect())?.await?;
    /// all.sort();
    /// assert_eq!(all, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn merge<B: Blueprint<Out = Self::Item>>(self, other: Source<B>) -> Self::Then<Merge<B>, KeepLeft> {
        self.then(Merge { other: other.into_blueprint(), eager: false })
    }

    /// As [`merge`](MergeOps::merge), and completes as soon as one input has completed and what was taken from it was
    /// emitted.
    ///
    /// - **Cancels** the other input when one completes.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let some = Source::from_iter([1, 2]).merge_eager(Source::from_iter(10..)).run_with(Sink::collect())?.await?;
    /// assert!(some.contains(&2));
    /// # Ok(())
    /// # }
    /// ```
    fn merge_eager<B: Blueprint<Out = Self::Item>>(self, other: Source<B>) -> Self::Then<Merge<B>, KeepLeft> {
        self.then(Merge { other: other.into_blueprint(), eager: true })
    }
}

impl<S: StreamOps> MergeOps for S {}

/// The operator of [`merge`](MergeOps::merge). Its materialised value is that of the other source.
#[derive(Clone, Debug)]
pub struct Merge<B> {
    other: B,
    eager: bool,
}

impl<In: Send + 'static, B: Blueprint<Out = In>> Operator<In> for Merge<B> {
    type Out = In;
    type Mat = B::Mat;
    type Stage<U: Stage<Out = In>> = MergeStage<U, B::Stage>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Stage<U>, B::Mat> {
        let (other, mat) = self.other.build(materializer)?;
        Ok((MergeStage::new(up, other, self.eager), mat))
    }
}

/// The stage of [`merge`](MergeOps::merge).
pub struct MergeStage<A: Stage, B: Stage> {
    a: Up<A>,
    b: Up<B>,
    held_a: Option<A::Out>,
    held_b: Option<B::Out>,
    /// Whose turn comes first at the next demand.
    b_first: bool,
    /// The same while there is none: of its own, or every second tending would undo a turn.
    tend_b_first: bool,
    eager: bool,
}

impl<A: Stage, B: Stage> fmt::Debug for MergeStage<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeStage").field("eager", &self.eager).finish_non_exhaustive()
    }
}

/// One turn of one input: what it holds, then all it gives.
fn turn<U: Stage>(
    up: &mut Up<U>,
    held: &mut Option<U::Out>,
    broke: &mut bool,
    push: &mut impl FnMut(U::Out) -> Push,
    cx: &mut StageCx<'_, '_>,
) -> Driven {
    up.settle(cx);
    if let Some(x) = held.take() {
        *broke = push(x).is_break();
    }
    if *broke || !up.live() {
        return Ok(Progress::Complete);
    }
    up.drive(cx, |x| {
        let flow = push(x);
        *broke = flow.is_break();
        flow
    })
}

impl<A: Stage, B: Stage<Out = A::Out>> MergeStage<A, B> {
    /// A merge of two stages; `eager`: ends with the first of them.
    pub fn new(a: A, b: B, eager: bool) -> Self {
        let (a, b) = (Up::new(a), Up::new(b));
        MergeStage { a, b, held_a: None, held_b: None, b_first: false, tend_b_first: false, eager }
    }

    fn fail(&mut self, error: StreamError, cx: &mut StageCx<'_, '_>) -> Driven {
        (self.held_a, self.held_b) = (None, None);
        fail_both(&mut self.a, &mut self.b, error, cx)
    }

    /// Nothing more may be taken from an input: both have ended, or one has and that is enough.
    fn ending(&self) -> bool {
        let (a, b) = (self.a.live(), self.b.live());
        if self.eager { !a || !b } else { !a && !b }
    }

    fn over(&self) -> bool {
        self.ending() && self.held_a.is_none() && self.held_b.is_none()
    }

    /// The answer when everything that could be done was done.
    fn answer(&mut self, otherwise: Progress, cx: &mut StageCx<'_, '_>) -> Driven {
        if !self.over() {
            return Ok(otherwise);
        }
        complete_both(&mut self.a, &mut self.b, cx)
    }

    /// Emits what is held when no input may be driven any more.
    fn last<P: FnMut(A::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        while let Some(x) = self.held_a.take().or_else(|| self.held_b.take()) {
            if push(x).is_break() {
                return self.answer(Progress::Stopped, cx);
            }
        }
        self.answer(Progress::Pending, cx)
    }

    /// The share of the budget that an input may spend: the one that comes first leaves half of it.
    fn share(&self, first: bool, cx: &StageCx<'_, '_>) -> u32 {
        if first && self.a.live() && self.b.live() { cx.budget() / 2 } else { cx.budget() }
    }
}

impl<A: Stage, B: Stage<Out = A::Out>> Stage for MergeStage<A, B> {
    type Out = A::Out;

    fn drive<P: FnMut(A::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        // A turn without budget gives neither input anything: it must not count as one, or two merges in each other
        // can come to alternate in step, so that one input only ever meets the empty turns.
        let (b_first, counts) = (self.b_first, cx.budget() > 0);
        for b in [b_first, !b_first] {
            if self.ending() {
                return self.last(cx, push);
            }
            let (share, mut broke) = (self.share(b == b_first, cx), false);
            let answer = cx.share(share, |cx| {
                if b {
                    turn(&mut self.b, &mut self.held_b, &mut broke, &mut push, cx)
                } else {
                    turn(&mut self.a, &mut self.held_a, &mut broke, &mut push, cx)
                }
            });
            if let Err(error) = answer {
                return self.fail(error, cx);
            }
            if broke {
                self.b_first = !b;
                return self.answer(Progress::Stopped, cx);
            }
        }
        self.b_first = b_first != counts;
        if self.ending() { self.last(cx, push) } else { Ok(Progress::Pending) }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        let (b_first, counts) = (self.tend_b_first, cx.budget() > 0);
        for b in [b_first, !b_first] {
            if self.ending() {
                break;
            }
            let share = self.share(b == b_first, cx);
            let answer = cx.share(share, |cx| {
                if b {
                    prefetch(&mut self.b, &mut self.held_b, cx)
                } else {
                    prefetch(&mut self.a, &mut self.held_a, cx)
                }
            });
            if let Err(error) = answer {
                return self.fail(error, cx);
            }
        }
        self.tend_b_first = b_first != counts;
        self.a.settle(cx);
        self.b.settle(cx);
        self.answer(Progress::Pending, cx)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        (self.held_a, self.held_b) = (None, None);
        self.a.cancel(cause.clone(), cx);
        self.b.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        all_closed!(cx, self.a, self.b)
    }
}
