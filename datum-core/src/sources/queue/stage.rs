//! The stage of a queue source.

use super::state::Shared;
use crate::error::StreamError;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx};
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The stage of [`Source::queue`](crate::Source::queue).
pub struct QueueStage<T> {
    shared: Arc<Shared<T>>,
    /// Ends at a graceful shutdown.
    of_run: bool,
}

enum Next<T> {
    Element(T),
    None(Progress),
}

impl<T> QueueStage<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, of_run: bool) -> Self {
        QueueStage { shared, of_run }
    }

    /// The next element if one is `demanded`, or where the stream stands without one.
    fn look(&self, cx: &mut StageCx<'_, '_>, demanded: bool) -> Result<Next<T>, StreamError> {
        if self.of_run && cx.is_draining() {
            self.shared.end(Ok(()));
        }
        let mut state = self.shared.lock();
        if let Some(Err(error)) = &state.end {
            return Err(error.clone());
        }
        if demanded && let Some(element) = state.held.pop_front() {
            let waiting = state.next_waiting();
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
            return Ok(Next::Element(element));
        }
        if state.held.is_empty() && state.end.is_some() {
            return Ok(Next::None(Progress::Complete));
        }
        if !state.reader.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        Ok(Next::None(Progress::Pending))
    }
}

impl<T: Send + 'static> Stage for QueueStage<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            if !cx.spend() {
                return Ok(Progress::Pending);
            }
            match self.look(cx, true)? {
                Next::None(progress) => return Ok(progress),
                Next::Element(element) => {
                    if push(element).is_break() {
                        return Ok(Progress::Stopped);
                    }
                }
            }
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        match self.look(cx, false)? {
            Next::None(Progress::Complete) => Ok(Progress::Complete),
            Next::None(_) | Next::Element(_) => Ok(Progress::Pending),
        }
    }

    fn cancel(&mut self, _: CancelCause, _: &mut StageCx<'_, '_>) {
        self.shared.gone();
    }

    fn poll_closed(&mut self, _: &mut StageCx<'_, '_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl<T> Drop for QueueStage<T> {
    fn drop(&mut self) {
        self.shared.gone();
    }
}

impl<T> std::fmt::Debug for QueueStage<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueStage").field("held", &self.shared.lock().held.len()).finish_non_exhaustive()
    }
}
