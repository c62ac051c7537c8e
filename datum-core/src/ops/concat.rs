//! `concat`: one stream, then another.

use super::fan_in::fail_both;
use crate::all_closed;
use crate::blueprint::{Blueprint, Built, KeepLeft, Operator, Source, StreamOps};
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use std::task::Poll;

/// Adds [`concat`](ConcatOps::concat).
pub trait ConcatOps: StreamOps {
    /// Emits all elements of this stream, then all of `next`.
    ///
    /// `next` is built together with this stream and tended while it waits: what may run ahead of demand in it does (a
    /// buffer fills), and its failure shows at once. It is asked for an element only when its turn has come. To build
    /// it only then, see [`concat_lazy`](super::ConcatLazyOps::concat_lazy).
    ///
    /// - **Emits** when the stream whose turn it is does.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when both have completed. Fails at once when either fails.
    /// - **Cancels** both when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let all = Source::from_iter([1, 2]).concat(Source::from_iter([3])).run_with(Sink::collect())?.await?;
    /// assert_eq!(all, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn concat<B: Blueprint<Out = Self::Item>>(self, next: Source<B>) -> Self::Then<Concat<B>, KeepLeft> {
        self.then(Concat(next.into_blueprint()))
    }
}

impl<S: StreamOps> ConcatOps for S {}

/// The operator of [`concat`](ConcatOps::concat). Its materialised value is that of the second source.
#[derive(Clone, Debug)]
pub struct Concat<B>(B);

impl<In: Send + 'static, B: Blueprint<Out = In>> Operator<In> for Concat<B> {
    type Out = In;
    type Mat = B::Mat;
    type Stage<U: Stage<Out = In>> = ConcatStage<U, B::Stage>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Stage<U>, B::Mat> {
        let (next, mat) = self.0.build(materializer)?;
        Ok((ConcatStage { a: Up::new(up), b: Up::new(next) }, mat))
    }
}

/// The stage of [`concat`](ConcatOps::concat).
#[derive(Debug)]
pub struct ConcatStage<A, B> {
    a: Up<A>,
    b: Up<B>,
}

impl<A: Stage, B: Stage<Out = A::Out>> ConcatStage<A, B> {
    fn tend_next(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.b.settle(cx);
        if self.b.live()
            && let Err(error) = self.b.tend(cx)
        {
            return fail_both(&mut self.a, &mut self.b, error, cx);
        }
        Ok(self.resting(Progress::Pending))
    }

    fn resting(&self, otherwise: Progress) -> Progress {
        if self.a.live() || self.b.live() { otherwise } else { Progress::Complete }
    }
}

impl<A: Stage, B: Stage<Out = A::Out>> Stage for ConcatStage<A, B> {
    type Out = A::Out;

    #[inline]
    fn drive<P: FnMut(A::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if self.a.live() {
            let mut broke = false;
            let answer = self.a.drive(cx, |x| {
                let flow = push(x);
                broke = flow.is_break();
                flow
            });
            match answer {
                Err(error) => return self.b.fail(error, cx),
                Ok(Progress::Pending) => return self.tend_next(cx),
                Ok(_) if broke => return Ok(self.resting(Progress::Stopped)),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
        self.a.settle(cx);
        if self.b.live() { self.b.drive(cx, push) } else { Ok(Progress::Complete) }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.a.settle(cx);
        if self.a.live()
            && let Err(error) = self.a.tend(cx)
        {
            return self.b.fail(error, cx);
        }
        self.tend_next(cx)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.a.cancel(cause.clone(), cx);
        self.b.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        all_closed!(cx, self.a, self.b)
    }
}
