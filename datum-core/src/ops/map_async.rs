//! `map_async` and its kin: one future per element, several at a time.

use super::slots::{Fallible, Infallible, Settle, Slots};
use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::error::{BoxError, ErrorKind, StreamError};
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

/// Adds [`map_async`](MapAsyncOps::map_async), [`try_map_async`](MapAsyncOps::try_map_async) and their unordered forms.
pub trait MapAsyncOps: StreamOps {
    /// Turns each element into the value of a future, with at most `parallelism` futures running or finished and not
    /// yet emitted. The values keep the order of the elements.
    ///
    /// Up to `parallelism` elements are asked for ahead of demand: that is what the futures are for. A future is
    /// polled when it starts and then only when it was woken, inside the stream's task; spawn what computes for long.
    /// The futures are dropped when the stream fails or is cancelled.
    ///
    /// A panic in `f` or in a future is supervised, once: `Resume` and `Restart` drop the element. When the failure
    /// stops the stream it does so at once, ahead of earlier elements whose futures are not done.
    ///
    /// - **Emits** when the oldest future is done.
    /// - **Backpressures** when `parallelism` futures are running or waiting to be emitted.
    /// - **Completes** when upstream has completed and all values were emitted.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when `parallelism` is 0.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let squares = Source::from_iter(1..=4u64)
    ///     .map_async(2, |x| async move {
    ///         tokio::task::yield_now().await;
    ///         x * x
    ///     })
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(squares, [1, 4, 9, 16]);
    /// # Ok(())
    /// # }
    /// ```
    fn map_async<Fut, F>(self, parallelism: usize, f: F) -> Self::Then<MapAsync<F, Infallible>, KeepLeft>
    where
        Fut: Future<Output: Send + 'static> + Send + 'static,
        F: FnMut(Self::Item) -> Fut + Send + 'static,
    {
        self.then(MapAsync::new("map_async", parallelism, f, true))
    }

    /// As [`map_async`](MapAsyncOps::map_async), for futures that may fail. An `Err` is supervised like a panic.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let parsed = Source::from_iter(["1", "x", "3"])
    ///     .try_map_async(2, |s| async move { s.parse::<u32>() })
    ///     .with_attributes(Attributes::new().supervision(Supervision::resume()))
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(parsed, [1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn try_map_async<T, E, Fut, F>(
        self,
        parallelism: usize,
        f: F,
    ) -> Self::Then<MapAsync<F, Fallible>, KeepLeft>
    where
        T: Send + 'static,
        E: Into<BoxError> + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        F: FnMut(Self::Item) -> Fut + Send + 'static,
    {
        self.then(MapAsync::new("try_map_async", parallelism, f, true))
    }

    /// As [`map_async`](MapAsyncOps::map_async), with the values in the order in which the futures are done: a slow
    /// one holds nobody up.
    ///
    /// - **Emits** when a future is done.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let mut done = Source::from_iter([3u64, 1, 2])
    ///     .map_async_unordered(3, |ms| async move {
    ///         tokio::time::sleep(std::time::Duration::from_millis(20 * ms)).await;
    ///         ms
    ///     })
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// done.sort();
    /// assert_eq!(done, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn map_async_unordered<Fut, F>(
        self,
        parallelism: usize,
        f: F,
    ) -> Self::Then<MapAsync<F, Infallible>, KeepLeft>
    where
        Fut: Future<Output: Send + 'static> + Send + 'static,
        F: FnMut(Self::Item) -> Fut + Send + 'static,
    {
        self.then(MapAsync::new("map_async_unordered", parallelism, f, false))
    }

    /// As [`map_async_unordered`](MapAsyncOps::map_async_unordered), for futures that may fail. An `Err` is supervised
    /// like a panic.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let failed = Source::from_iter(["1", "x"])
    ///     .try_map_async_unordered(2, |s| async move { s.parse::<u32>() })
    ///     .run_with(Sink::collect())
    ///     .unwrap()
    ///     .await
    ///     .unwrap_err();
    /// assert!(failed.downcast_ref::<std::num::ParseIntError>().is_some());
    /// # }
    /// ```
    fn try_map_async_unordered<T, E, Fut, F>(
        self,
        parallelism: usize,
        f: F,
    ) -> Self::Then<MapAsync<F, Fallible>, KeepLeft>
    where
        T: Send + 'static,
        E: Into<BoxError> + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        F: FnMut(Self::Item) -> Fut + Send + 'static,
    {
        self.then(MapAsync::new("try_map_async_unordered", parallelism, f, false))
    }
}

impl<S: StreamOps> MapAsyncOps for S {}

/// The operator of [`map_async`](MapAsyncOps::map_async) and its kin; `K` says what the futures' output means.
pub struct MapAsync<F, K> {
    stage: &'static str,
    parallelism: usize,
    f: F,
    ordered: bool,
    kind: PhantomData<fn() -> K>,
}

impl<F, K> MapAsync<F, K> {
    fn new(stage: &'static str, parallelism: usize, f: F, ordered: bool) -> Self {
        MapAsync { stage, parallelism, f, ordered, kind: PhantomData }
    }
}

impl<F: Clone, K> Clone for MapAsync<F, K> {
    fn clone(&self) -> Self {
        MapAsync::new(self.stage, self.parallelism, self.f.clone(), self.ordered)
    }
}

impl<F, K> fmt::Debug for MapAsync<F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.stage).field("parallelism", &self.parallelism).finish_non_exhaustive()
    }
}

impl<In, Fut, F, K> Operator<In> for MapAsync<F, K>
where
    In: Send + 'static,
    Fut: Future + Send + 'static,
    F: FnMut(In) -> Fut + Send + 'static,
    K: Settle<Fut::Output>,
{
    type Out = K::Value;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = MapAsyncStage<U, F, Fut, K>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<Self::Stage<U>, ()> {
        let MapAsync { stage, parallelism, f, ordered, .. } = self;
        if parallelism == 0 {
            let reason = "a parallelism of 0 lets no element pass; give at least 1";
            return Err(ErrorKind::InvalidArgument { stage, reason }.into());
        }
        let (slots, supervision) = (Slots::new(stage, parallelism, ordered), materializer.supervision());
        Ok((MapAsyncStage { stage, up: Up::new(up), f, slots, supervision }, ()))
    }
}

/// The stage of [`map_async`](MapAsyncOps::map_async) and its kin.
pub struct MapAsyncStage<U, F, Fut: Future, K: Settle<Fut::Output>> {
    stage: &'static str,
    up: Up<U>,
    f: F,
    slots: Slots<Fut, K::Value>,
    supervision: Supervision,
}

impl<U, F, Fut: Future, K: Settle<Fut::Output>> fmt::Debug for MapAsyncStage<U, F, Fut, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.stage).field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl<U, F, Fut, K> MapAsyncStage<U, F, Fut, K>
where
    U: Stage,
    Fut: Future + Send + 'static,
    F: FnMut(U::Out) -> Fut + Send + 'static,
    K: Settle<Fut::Output>,
{
    #[cold]
    fn fail(&mut self, error: StreamError, cx: &mut StageCx<'_, '_>) -> Driven {
        self.slots.clear();
        self.up.fail(error, cx)
    }

    /// The answer when nothing can be pushed now and the upstream has not ended, or has been tended.
    fn resting(&self) -> Driven {
        let over = self.slots.is_empty() && !self.up.live();
        Ok(if over { Progress::Complete } else { Progress::Pending })
    }

    fn broke(&self) -> Driven {
        let over = self.slots.is_empty() && !self.up.live();
        Ok(if over { Progress::Complete } else { Progress::Stopped })
    }

    /// Tends the upstream while no new future can start.
    fn tend_up(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if self.up.live()
            && let Err(error) = self.up.tend(cx)
        {
            self.slots.clear();
            return Err(error);
        }
        self.resting()
    }

    /// Polls what was woken; `Err` when a failure has stopped the stream.
    fn poll_woken(&mut self, cx: &mut StageCx<'_, '_>) -> Result<bool, StreamError> {
        let mut judge = Judge::new(&self.supervision);
        let more = self.slots.poll::<K>(cx, &mut judge);
        judge.stopped_by().map_or(Ok(more), Err)
    }
}

impl<U, F, Fut, K> Stage for MapAsyncStage<U, F, Fut, K>
where
    U: Stage,
    Fut: Future + Send + 'static,
    F: FnMut(U::Out) -> Fut + Send + 'static,
    K: Settle<Fut::Output>,
{
    type Out = K::Value;

    fn drive<P: FnMut(K::Value) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        loop {
            let more = match self.poll_woken(cx) {
                Ok(more) => more,
                Err(error) => return self.fail(error, cx),
            };
            while let Some(value) = self.slots.pop() {
                if push(value).is_break() {
                    return self.broke();
                }
            }
            if !more || !self.up.live() || self.slots.is_full() {
                return self.tend_up(cx);
            }
            let MapAsyncStage { stage, up, f, slots, supervision } = self;
            let (mut judge, mut broke) = (Judge::new(supervision), false);
            let answer = up.drive(cx, |x| {
                match guard(stage, || f(x)).and_then(|future| slots.start::<K>(future, true)) {
                    Ok(Some(value)) => {
                        let flow = push(value);
                        broke = flow.is_break();
                        flow
                    }
                    Ok(None) if slots.is_full() => Push::Break(()),
                    Ok(None) => Push::Continue(()),
                    Err(error) => judge.element_failed(error),
                }
            });
            if let Some(error) = judge.stopped_by() {
                return self.fail(error, cx);
            }
            match answer {
                Err(error) => {
                    self.slots.clear();
                    return Err(error);
                }
                Ok(_) if broke => return self.broke(),
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
    }

    /// Starts futures until `parallelism` is reached, and polls those that were woken.
    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        let more = match self.poll_woken(cx) {
            Ok(more) => more,
            Err(error) => return self.fail(error, cx),
        };
        while more && self.up.live() && !self.slots.is_full() {
            let MapAsyncStage { stage, up, f, slots, supervision } = self;
            let mut judge = Judge::new(supervision);
            let answer = up.drive(cx, |x| {
                match guard(stage, || f(x)).and_then(|future| slots.start::<K>(future, false)) {
                    Ok(_) if slots.is_full() => Push::Break(()),
                    Ok(_) => Push::Continue(()),
                    Err(error) => judge.element_failed(error),
                }
            });
            if let Some(error) = judge.stopped_by() {
                return self.fail(error, cx);
            }
            match answer {
                Err(error) => {
                    self.slots.clear();
                    return Err(error);
                }
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
        self.tend_up(cx)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.slots.clear();
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}
