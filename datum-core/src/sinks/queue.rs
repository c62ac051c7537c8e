//! `Sink::queue`: elements pulled from outside.

use super::{SinkLogic, SinkRun, ended};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::{ErrorKind, StreamError};
use crate::materializer::Materializer;
use crate::stage::{Progress, Push, Stage, StageCx, Up};
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

impl Sink<Unset> {
    /// Materialises a [`SinkQueue`], from which elements are pulled one by one.
    ///
    /// The stream runs ahead of the pulls by at most `capacity` elements; 0 counts as 1. A failure overtakes the
    /// elements that wait. Dropping the queue cancels the stream.
    ///
    /// - **Backpressures** when `capacity` elements wait.
    /// - **Cancels** when the queue is dropped.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let mut queue = Source::from_iter(1..=2).run_with(Sink::queue(4))?;
    /// assert_eq!(queue.pull().await?, Some(1));
    /// assert_eq!(queue.pull().await?, Some(2));
    /// assert_eq!(queue.pull().await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue<In: Send + 'static>(capacity: usize) -> Sink<QueueSink<In>> {
        Sink::from_blueprint(QueueSink { capacity: capacity.max(1), elements: PhantomData })
    }
}

/// The blueprint of [`Sink::queue`].
#[derive(Clone, Debug)]
pub struct QueueSink<In> {
    capacity: usize,
    elements: PhantomData<fn(In)>,
}

/// The materialised value of [`Sink::queue`]; also a [`Stream`] of `Result`s. Dropping it cancels the stream.
pub struct SinkQueue<T>(Arc<Mutex<State<T>>>);

/// The logic of [`Sink::queue`].
pub struct QueueLogic<T> {
    shared: Arc<Mutex<State<T>>>,
    capacity: usize,
}

struct State<T> {
    held: VecDeque<T>,
    /// Taken by the pull that reports it; after that the queue is at its end.
    failure: Option<StreamError>,
    ended: bool,
    /// The puller has gone.
    gone: bool,
    puller: Option<Waker>,
    stream: Option<Waker>,
}

impl<T> SinkQueue<T> {
    /// The next element; `None` when the stream has completed.
    ///
    /// Cancel safe: an interrupted pull has taken nothing.
    ///
    /// # Errors
    /// The stream's failure, once; after it `None`.
    pub async fn pull(&mut self) -> Result<Option<T>, StreamError> {
        poll_fn(|cx| self.poll_pull(cx)).await
    }

    /// See [`pull`](SinkQueue::pull).
    ///
    /// # Errors
    /// The stream's failure, once.
    pub fn poll_pull(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<T>, StreamError>> {
        let mut state = lock(&self.0);
        if let Some(element) = state.held.pop_front() {
            let stream = state.stream.take();
            drop(state);
            stream.into_iter().for_each(Waker::wake);
            return Poll::Ready(Ok(Some(element)));
        }
        if let Some(error) = state.failure.take() {
            return Poll::Ready(Err(error));
        }
        if state.ended {
            return Poll::Ready(Ok(None));
        }
        state.puller = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Stream for SinkQueue<T> {
    type Item = Result<T, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_pull(cx).map(Result::transpose)
    }
}

impl<T> Drop for SinkQueue<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.gone = true;
        let held = std::mem::take(&mut state.held);
        let stream = state.stream.take();
        drop(state);
        drop(held);
        stream.into_iter().for_each(Waker::wake);
    }
}

impl<In: Send + 'static> SinkBlueprint<In> for QueueSink<In> {
    type Mat = SinkQueue<In>;
    type Run<U: Stage<Out = In>> = SinkRun<U, QueueLogic<In>>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        let shared = Arc::new(Mutex::new(State {
            held: VecDeque::new(),
            failure: None,
            ended: false,
            gone: false,
            puller: None,
            stream: None,
        }));
        let logic = QueueLogic { shared: shared.clone(), capacity: self.capacity };
        Ok((SinkRun::new(up, logic), SinkQueue(shared)))
    }
}

impl<T> QueueLogic<T> {
    /// How many more may be put, or that the puller has gone; registers the stream's waker.
    fn room(&self, cx: &mut StageCx<'_, '_>) -> Option<usize> {
        let mut state = lock(&self.shared);
        if state.gone {
            return None;
        }
        if !state.stream.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.stream = Some(cx.waker().clone());
        }
        Some(self.capacity - state.held.len())
    }

    fn end(&self, failure: Option<StreamError>) {
        let mut state = lock(&self.shared);
        if state.ended {
            return;
        }
        state.ended = true;
        // A failure overtakes what waits.
        let overtaken = if failure.is_some() { std::mem::take(&mut state.held) } else { VecDeque::new() };
        state.failure = failure;
        let puller = state.puller.take();
        drop(state);
        drop(overtaken);
        puller.into_iter().for_each(Waker::wake);
    }
}

impl<T: Send + 'static> SinkLogic<T> for QueueLogic<T> {
    fn poll<U: Stage<Out = T>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        loop {
            let Some(mut room) = self.room(cx) else {
                return Poll::Ready(Ok(()));
            };
            let shared = &self.shared;
            let answer = if room == 0 {
                up.tend(cx)
            } else {
                up.drive(cx, |x| {
                    let mut state = lock(shared);
                    state.held.push_back(x);
                    let puller = state.puller.take();
                    drop(state);
                    puller.into_iter().for_each(Waker::wake);
                    room -= 1;
                    if room == 0 { Push::Break(()) } else { Push::Continue(()) }
                })
            };
            if !matches!(answer, Ok(Progress::Stopped)) {
                return ended(answer);
            }
        }
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        self.end(outcome.err());
    }
}

impl<T> Drop for QueueLogic<T> {
    fn drop(&mut self) {
        // Dropped before the stream ended: an abrupt stop. Otherwise this does nothing.
        self.end(Some(ErrorKind::Aborted.into()));
    }
}

impl<T> std::fmt::Debug for SinkQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkQueue").field("held", &lock(&self.0).held.len()).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for QueueLogic<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueLogic").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
