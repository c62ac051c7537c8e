//! `or_else`: another stream in place of an empty one.

use super::fan_in::fail_both;
use crate::all_closed;
use crate::blueprint::{Blueprint, Built, KeepLeft, Operator, Source, StreamOps};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use std::task::Poll;

/// Adds [`or_else`](OrElseOps::or_else).
pub trait OrElseOps: StreamOps {
    /// Emits the elements of this stream; those of `other` when this one completes without any.
    ///
    /// `other` is built together with this stream and tended, not asked for elements, until it is clear which of the
    /// two it is; the first element cancels it.
    ///
    /// - **Emits** when the stream whose turn it is does.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when this stream completes after an element, or `other` does in its place. Fails at once when
    ///   either fails that has not been cancelled.
    /// - **Cancels** both when downstream cancels, and `other` at the first element of this stream.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let none = Source::from_iter(1..4).filter(|x| *x > 5);
    /// assert_eq!(none.or_else(Source::from_iter([0])).run_with(Sink::collect())?.await?, [0]);
    /// # Ok(())
    /// # }
    /// ```
    fn or_else<B: Blueprint<Out = Self::Item>>(self, other: Source<B>) -> Self::Then<OrElse<B>, KeepLeft> {
        self.then(OrElse(other.into_blueprint()))
    }
}

impl<S: StreamOps> OrElseOps for S {}

/// The operator of [`or_else`](OrElseOps::or_else). Its materialised value is that of the other source.
#[derive(Clone, Debug)]
pub struct OrElse<B>(B);

impl<In: Send + 'static, B: Blueprint<Out = In>> Operator<In> for OrElse<B> {
    type Out = In;
    type Mat = B::Mat;
    type Stage<U: Stage<Out = In>> = OrElseStage<U, B::Stage>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Stage<U>, B::Mat> {
        let (other, mat) = self.0.build(materializer)?;
        Ok((OrElseStage { a: Up::new(up), b: Up::new(other), seen: false }, mat))
    }
}

/// The stage of [`or_else`](OrElseOps::or_else).
#[derive(Debug)]
pub struct OrElseStage<A, B> {
    a: Up<A>,
    b: Up<B>,
    /// The first stream has given an element.
    seen: bool,
}

impl<A: Stage, B: Stage<Out = A::Out>> OrElseStage<A, B> {
    fn fail(&mut self, error: StreamError, cx: &mut StageCx<'_, '_>) -> Driven {
        fail_both(&mut self.a, &mut self.b, error, cx)
    }

    fn over(&self) -> bool {
        !self.a.live() && (self.seen || !self.b.live())
    }

    /// Tends the stream that may be needed.
    fn tend_other(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.b.settle(cx);
        if self.b.live()
            && let Err(error) = self.b.tend(cx)
        {
            return self.fail(error, cx);
        }
        Ok(if self.over() { Progress::Complete } else { Progress::Pending })
    }
}

impl<A: Stage, B: Stage<Out = A::Out>> Stage for OrElseStage<A, B> {
    type Out = A::Out;

    fn drive<P: FnMut(A::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if self.a.live() {
            let seen = &mut self.seen;
            let answer = self.a.drive(cx, |x| {
                *seen = true;
                push(x)
            });
            if self.seen {
                self.b.cancel(CancelCause::StageCompleted, cx);
            }
            match answer {
                Err(error) => return self.fail(error, cx),
                Ok(Progress::Pending) => return self.tend_other(cx),
                Ok(Progress::Complete) if !self.seen => {}
                Ok(answer) => return Ok(answer),
            }
        }
        self.a.settle(cx);
        if self.b.live() && !self.seen { self.b.drive(cx, push) } else { Ok(Progress::Complete) }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.a.settle(cx);
        if self.a.live()
            && let Err(error) = self.a.tend(cx)
        {
            return self.fail(error, cx);
        }
        self.tend_other(cx)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.a.cancel(cause.clone(), cx);
        self.b.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        all_closed!(cx, self.a, self.b)
    }
}
