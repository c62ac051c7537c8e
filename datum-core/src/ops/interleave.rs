//! `interleave`: so many elements of one stream, then so many of another.

use super::fan_in::{complete_both, fail_both};
use crate::all_closed;
use crate::blueprint::{Blueprint, Built, KeepLeft, Operator, Source, StreamOps};
use crate::error::{ErrorKind, StreamError};
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use std::task::Poll;

/// Adds [`interleave`](InterleaveOps::interleave) and [`interleave_eager`](InterleaveOps::interleave_eager).
pub trait InterleaveOps: StreamOps {
    /// Emits `segment` elements of this stream, then as many of `other`, and so on. When one has completed the other
    /// goes on alone. The one whose turn it is not is tended, not asked for elements.
    ///
    /// - **Emits** when the input whose turn it is has an element.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when both inputs have completed. Fails at once when one fails.
    /// - **Cancels** both when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when `segment` is 0.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let mixed = Source::from_iter([1, 2, 3, 4])
    ///     .interleave(Source::from_iter([10, 20, 30]), 2)
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(mixed, [1, 2, 10, 20, 3, 4, 30]);
    /// # Ok(())
    /// # }
    /// ```
    fn interleave<B: Blueprint<Out = Self::Item>>(
        self,
        other: Source<B>,
        segment: u64,
    ) -> Self::Then<Interleave<B>, KeepLeft> {
        self.then(Interleave { other: other.into_blueprint(), segment, eager: false })
    }

    /// As [`interleave`](InterleaveOps::interleave), and completes as soon as one input has completed, also while it
    /// is the other's turn.
    ///
    /// - **Cancels** the other input when one completes.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let mixed = Source::from_iter([1, 2])
    ///     .interleave_eager(Source::from_iter(10..), 1)
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(mixed, [1, 10, 2]);
    /// # Ok(())
    /// # }
    /// ```
    fn interleave_eager<B: Blueprint<Out = Self::Item>>(
        self,
        other: Source<B>,
        segment: u64,
    ) -> Self::Then<Interleave<B>, KeepLeft> {
        self.then(Interleave { other: other.into_blueprint(), segment, eager: true })
    }
}

impl<S: StreamOps> InterleaveOps for S {}

/// The operator of [`interleave`](InterleaveOps::interleave). Its materialised value is that of the other source.
#[derive(Clone, Debug)]
pub struct Interleave<B> {
    other: B,
    segment: u64,
    eager: bool,
}

impl<In: Send + 'static, B: Blueprint<Out = In>> Operator<In> for Interleave<B> {
    type Out = In;
    type Mat = B::Mat;
    type Stage<U: Stage<Out = In>> = InterleaveStage<U, B::Stage>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Stage<U>, B::Mat> {
        let Interleave { other, segment, eager } = self;
        if segment == 0 {
            let reason = "a segment of 0 elements lets nothing pass; give at least 1";
            return Err(ErrorKind::InvalidArgument { stage: "interleave", reason }.into());
        }
        let (other, mat) = other.build(materializer)?;
        let (a, b) = (Up::new(up), Up::new(other));
        Ok((InterleaveStage { a, b, segment, left: segment, second: false, eager }, mat))
    }
}

/// The stage of [`interleave`](InterleaveOps::interleave).
#[derive(Debug)]
pub struct InterleaveStage<A, B> {
    a: Up<A>,
    b: Up<B>,
    segment: u64,
    /// How many elements are left of the turn.
    left: u64,
    /// Whose turn it is.
    second: bool,
    eager: bool,
}

/// Drives an input for what is left of its turn.
fn turn<U: Stage>(
    up: &mut Up<U>,
    left: &mut u64,
    broke: &mut bool,
    push: &mut impl FnMut(U::Out) -> Push,
    cx: &mut StageCx<'_, '_>,
) -> Driven {
    up.drive(cx, |x| {
        *left -= 1;
        *broke = push(x).is_break();
        if *broke || *left == 0 { Push::Break(()) } else { Push::Continue(()) }
    })
}

/// Tends an input that is not driven.
fn look<U: Stage>(up: &mut Up<U>, cx: &mut StageCx<'_, '_>) -> Result<(), StreamError> {
    up.settle(cx);
    if up.live() {
        up.tend(cx)?;
    }
    Ok(())
}

impl<A: Stage, B: Stage<Out = A::Out>> InterleaveStage<A, B> {
    fn over(&self) -> bool {
        let (a, b) = (self.a.live(), self.b.live());
        if self.eager { !a || !b } else { !a && !b }
    }

    fn resting(&mut self, otherwise: Progress, cx: &mut StageCx<'_, '_>) -> Driven {
        if self.over() { complete_both(&mut self.a, &mut self.b, cx) } else { Ok(otherwise) }
    }

    /// Passes the turn on when it is over or its input has ended; it stays where the other has ended.
    fn pass_turn(&mut self) {
        let (current, other) =
            if self.second { (self.b.live(), self.a.live()) } else { (self.a.live(), self.b.live()) };
        if self.left == 0 || !current {
            self.left = self.segment;
            if other {
                self.second = !self.second;
            }
        }
    }
}

impl<A: Stage, B: Stage<Out = A::Out>> Stage for InterleaveStage<A, B> {
    type Out = A::Out;

    fn drive<P: FnMut(A::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            self.a.settle(cx);
            self.b.settle(cx);
            if self.over() {
                return complete_both(&mut self.a, &mut self.b, cx);
            }
            self.pass_turn();
            let mut broke = false;
            let answer = if self.second {
                turn(&mut self.b, &mut self.left, &mut broke, &mut push, cx)
            } else {
                turn(&mut self.a, &mut self.left, &mut broke, &mut push, cx)
            };
            match answer {
                Err(error) => return fail_both(&mut self.a, &mut self.b, error, cx),
                Ok(_) if broke => return self.resting(Progress::Stopped, cx),
                Ok(Progress::Pending) => {
                    let other =
                        if self.second { look(&mut self.a, cx) } else { look(&mut self.b, cx) };
                    if let Err(error) = other {
                        return fail_both(&mut self.a, &mut self.b, error, cx);
                    }
                    return self.resting(Progress::Pending, cx);
                }
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if let Err(error) = look(&mut self.a, cx) {
            return fail_both(&mut self.a, &mut self.b, error, cx);
        }
        if let Err(error) = look(&mut self.b, cx) {
            return fail_both(&mut self.a, &mut self.b, error, cx);
        }
        self.resting(Progress::Pending, cx)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.a.cancel(cause.clone(), cx);
        self.b.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        all_closed!(cx, self.a, self.b)
    }
}
