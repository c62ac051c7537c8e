//! `concat_lazy`: one stream, then another that is made only then.

use crate::all_closed;
use crate::blueprint::{Blueprint, BoxStage, Built, KeepLeft, Operator, Source, StreamOps};
use crate::error::ErrorKind;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up, guard};
use std::fmt;
use std::task::Poll;

/// Adds [`concat_lazy`](ConcatLazyOps::concat_lazy).
pub trait ConcatLazyOps: StreamOps {
    /// Emits all elements of this stream, then those of the source that `next` makes when this one has completed,
    /// closed, and there is demand for more.
    ///
    /// `next` may return a source that ends in a `concat_lazy` of its own, and so on without end (pages, each of which
    /// names the following one): a boxed tail takes the place of the stage it follows, so that neither memory nor the
    /// call stack grows with the number of tails.
    ///
    /// A panic in `next` fails the stream. A graceful shutdown of the run ends the stream with the part that is
    /// running: `next` is not called any more.
    ///
    /// - **Emits** when the part that is running does.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when the second part completes. A failure of it is seen when its turn has come.
    /// - **Cancels** the part that is running when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// fn pages(n: u64) -> BoxSource<u64> {
    ///     Source::from_iter([10 * n, 10 * n + 1]).concat_lazy(move || pages(n + 1)).boxed()
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(pages(0).take(5).run_with(Sink::collect())?.await?, [0, 1, 10, 11, 20]);
    /// # Ok(())
    /// # }
    /// ```
    fn concat_lazy<B, F>(self, next: F) -> Self::Then<ConcatLazy<F>, KeepLeft>
    where
        B: Blueprint<Out = Self::Item>,
        F: FnOnce() -> Source<B> + Send + 'static,
    {
        self.then(ConcatLazy(next))
    }
}

impl<S: StreamOps> ConcatLazyOps for S {}

/// The operator of [`concat_lazy`](ConcatLazyOps::concat_lazy).
#[derive(Clone, Debug)]
pub struct ConcatLazy<F>(F);

impl<In, B, F> Operator<In> for ConcatLazy<F>
where
    In: Send + 'static,
    B: Blueprint<Out = In>,
    F: FnOnce() -> Source<B> + Send + 'static,
{
    type Out = In;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = ConcatLazyStage<U, B::Stage, F>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<Self::Stage<U>, ()> {
        let (up, next) = (Up::new(up), Some(self.0));
        Ok((ConcatLazyStage { up, next, second: None, materializer: materializer.clone() }, ()))
    }
}

/// The stage of [`concat_lazy`](ConcatLazyOps::concat_lazy).
pub struct ConcatLazyStage<U, S, F> {
    up: Up<U>,
    next: Option<F>,
    second: Option<Up<S>>,
    materializer: Materializer,
}

impl<U, S, F> fmt::Debug for ConcatLazyStage<U, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcatLazyStage").field("second", &self.second.is_some()).finish_non_exhaustive()
    }
}

impl<U, S, F> ConcatLazyStage<U, S, F> {
    /// The run is being shut down, and what would follow belongs to it.
    fn is_drained(&self, cx: &StageCx<'_, '_>) -> bool {
        cx.is_draining() && self.materializer.builds_run()
    }

    fn between(&self, otherwise: Progress, cx: &StageCx<'_, '_>) -> Driven {
        Ok(if self.is_drained(cx) { Progress::Complete } else { otherwise })
    }
}

impl<U, B, F> ConcatLazyStage<U, B::Stage, F>
where
    U: Stage,
    B: Blueprint<Out = U::Out>,
    F: FnOnce() -> Source<B> + Send + 'static,
{
    /// Builds the second part. `Complete`: there is none, the run is being shut down.
    fn build(&mut self) -> Driven {
        let Some(next) = self.next.take() else {
            return Ok(Progress::Complete);
        };
        let source = guard("concat_lazy", next)?;
        let built = self.materializer.scope(|fresh| source.into_blueprint().build(fresh));
        match built {
            Ok((stage, _)) => {
                self.second = Some(Up::new(stage));
                Ok(Progress::Pending)
            }
            // The shutdown has begun after this poll did.
            Err(error) if self.materializer.builds_run() && matches!(error.kind(), ErrorKind::Stopped) => {
                Ok(Progress::Complete)
            }
            Err(error) => Err(error),
        }
    }
}

impl<U, B, F> Stage for ConcatLazyStage<U, B::Stage, F>
where
    U: Stage,
    B: Blueprint<Out = U::Out>,
    F: FnOnce() -> Source<B> + Send + 'static,
{
    type Out = U::Out;

    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if self.second.is_none() {
            if self.up.live() {
                let mut broke = false;
                let answer = self.up.drive(cx, |x| {
                    let flow = push(x);
                    broke = flow.is_break();
                    flow
                })?;
                match answer {
                    Progress::Complete if broke => return self.between(Progress::Stopped, cx),
                    Progress::Complete => {}
                    answer => return Ok(answer),
                }
            }
            if self.is_drained(cx) {
                return Ok(Progress::Complete);
            }
            // The first part closes before the next is built; each part costs a turn, as it may be empty.
            if self.up.poll_closed(cx).is_pending() || !cx.spend() {
                return Ok(Progress::Pending);
            }
            if self.build()? == Progress::Complete {
                return Ok(Progress::Complete);
            }
            if <B::Stage as Stage>::BOXED {
                // Not driven from here: the box around this stage, if there is one, puts the tail in its place first.
                cx.wake();
                return Ok(Progress::Pending);
            }
        }
        match &mut self.second {
            Some(second) if second.live() => second.drive(cx, push),
            _ => Ok(Progress::Complete),
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        match &mut self.second {
            Some(second) if second.live() => second.tend(cx),
            Some(_) => Ok(Progress::Complete),
            None => {
                self.up.settle(cx);
                if self.up.live() {
                    self.up.tend(cx)?;
                }
                if self.up.live() { Ok(Progress::Pending) } else { self.between(Progress::Pending, cx) }
            }
        }
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        if let Some(second) = &mut self.second {
            second.cancel(cause.clone(), cx);
        }
        self.up.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        match &mut self.second {
            Some(second) => all_closed!(cx, self.up, second),
            None => self.up.poll_closed(cx),
        }
    }

    fn take_tail(&mut self) -> Option<BoxStage<U::Out>> {
        self.second.as_mut()?.take_tail()
    }
}
