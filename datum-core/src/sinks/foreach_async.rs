//! `Sink::foreach_async`: an asynchronous side effect per element, several at a time.

use super::{Completion, Promise, SinkLogic, SinkRun};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::{BoxError, ErrorKind, StreamError};
use crate::materializer::Materializer;
use crate::ops::slots::{Fallible, Infallible, Settle, Slots};
use crate::stage::{Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::task::Poll;

impl Sink<Unset> {
    /// Runs a future per element, at most `parallelism` at a time, in no particular order; materialises the stream's
    /// completion, which waits for the last future.
    ///
    /// A future is polled when it starts and then only when it was woken, inside the stream's task. A panic in `f` or
    /// in a future is supervised, once: `Resume` and `Restart` go on without it. The other futures are dropped when
    /// the stream fails.
    ///
    /// - **Cancels** when a future or `f` fails.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when `parallelism` is 0.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
    /// let write = move |x: u64| {
    ///     let sender = sender.clone();
    ///     async move { sender.send(x).await.unwrap() }
    /// };
    /// Source::from_iter(0..3).run_with(Sink::foreach_async(2, write))?.await?;
    /// assert_eq!(receiver.recv().await, Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn foreach_async<In, Fut, F>(parallelism: usize, f: F) -> Sink<ForeachAsync<F, Infallible>>
    where
        In: Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
        F: FnMut(In) -> Fut + Send + 'static,
    {
        Sink::from_blueprint(ForeachAsync { stage: "foreach_async", parallelism, f, kind: PhantomData })
    }

    /// As [`foreach_async`](Sink::foreach_async), for futures that may fail. An `Err` is supervised like a panic.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let check = |x: i32| async move { if x < 2 { Ok(()) } else { Err("too large") } };
    /// assert!(Source::from_iter(0..3).run_with(Sink::try_foreach_async(2, check))?.await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_foreach_async<In, E, Fut, F>(parallelism: usize, f: F) -> Sink<ForeachAsync<F, Fallible>>
    where
        In: Send + 'static,
        E: Into<BoxError> + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        F: FnMut(In) -> Fut + Send + 'static,
    {
        Sink::from_blueprint(ForeachAsync { stage: "try_foreach_async", parallelism, f, kind: PhantomData })
    }
}

/// The blueprint of [`Sink::foreach_async`] and [`Sink::try_foreach_async`].
pub struct ForeachAsync<F, K> {
    stage: &'static str,
    parallelism: usize,
    f: F,
    kind: PhantomData<fn() -> K>,
}

impl<F: Clone, K> Clone for ForeachAsync<F, K> {
    fn clone(&self) -> Self {
        ForeachAsync { f: self.f.clone(), ..*self }
    }
}

impl<F, K> fmt::Debug for ForeachAsync<F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.stage).field("parallelism", &self.parallelism).finish_non_exhaustive()
    }
}

/// The logic of [`Sink::foreach_async`] and [`Sink::try_foreach_async`].
pub struct ForeachAsyncLogic<F, Fut, K> {
    stage: &'static str,
    f: F,
    slots: Slots<Fut, ()>,
    supervision: Supervision,
    promise: Promise<()>,
    kind: PhantomData<fn() -> K>,
}

impl<F, Fut, K> fmt::Debug for ForeachAsyncLogic<F, Fut, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.stage).field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl<In, Fut, F, K> SinkBlueprint<In> for ForeachAsync<F, K>
where
    In: Send + 'static,
    Fut: Future + Send + 'static,
    F: FnMut(In) -> Fut + Send + 'static,
    K: Settle<Fut::Output, Value = ()>,
{
    type Mat = Completion<()>;
    type Run<U: Stage<Out = In>> = SinkRun<U, ForeachAsyncLogic<F, Fut, K>>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Run<U>, Self::Mat> {
        let ForeachAsync { stage, parallelism, f, kind } = self;
        if parallelism == 0 {
            let reason = "a parallelism of 0 lets no element pass; give at least 1";
            return Err(ErrorKind::InvalidArgument { stage, reason }.into());
        }
        let (promise, completion) = Completion::new();
        let (slots, supervision) = (Slots::new(stage, parallelism, false), materializer.supervision());
        let logic = ForeachAsyncLogic { stage, f, slots, supervision, promise, kind };
        Ok((SinkRun::new(up, logic), completion))
    }
}

impl<Fut, F, K> ForeachAsyncLogic<F, Fut, K>
where
    Fut: Future + Send + 'static,
    K: Settle<Fut::Output, Value = ()>,
{
    /// Starts what can be started and polls what was woken. `Complete`: no element will follow and no future is left.
    fn work<U: Stage>(&mut self, up: &mut Up<U>, cx: &mut StageCx<'_, '_>) -> Result<Progress, StreamError>
    where
        F: FnMut(U::Out) -> Fut,
    {
        let ForeachAsyncLogic { stage, f, slots, supervision, .. } = self;
        up.settle(cx);
        loop {
            let mut judge = Judge::new(supervision);
            let more = slots.poll::<K>(cx, &mut judge);
            if let Some(error) = judge.stopped_by() {
                return Err(error);
            }
            while slots.pop().is_some() {}
            if !more || !up.live() || slots.is_full() {
                if up.live() {
                    up.tend(cx)?;
                }
                let over = slots.is_empty() && !up.live();
                return Ok(if over { Progress::Complete } else { Progress::Pending });
            }
            let mut judge = Judge::new(supervision);
            let answer = up.drive(cx, |x| {
                match guard(stage, || f(x)).and_then(|future| slots.start::<K>(future, true)) {
                    Ok(_) if slots.is_full() => Push::Break(()),
                    Ok(_) => Push::Continue(()),
                    Err(error) => judge.element_failed(error),
                }
            });
            if let Some(error) = judge.stopped_by() {
                return Err(error);
            }
            if answer? == Progress::Pending {
                return Ok(Progress::Pending);
            }
        }
    }
}

impl<In, Fut, F, K> SinkLogic<In> for ForeachAsyncLogic<F, Fut, K>
where
    In: Send + 'static,
    Fut: Future + Send + 'static,
    F: FnMut(In) -> Fut + Send + 'static,
    K: Settle<Fut::Output, Value = ()>,
{
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        match self.work(up, cx) {
            Ok(Progress::Complete) => Poll::Ready(Ok(())),
            Ok(Progress::Pending | Progress::Stopped) => Poll::Pending,
            Err(error) => {
                self.slots.clear();
                Poll::Ready(Err(error))
            }
        }
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        self.promise.resolve(outcome);
    }
}
