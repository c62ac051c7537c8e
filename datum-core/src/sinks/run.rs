//! What all sinks share: drive, close the upstream, resolve.

use crate::error::StreamError;
use crate::materializer::Runnable;
use crate::stage::{CancelCause, Driven, Progress, Stage, StageCx, Up};
use std::task::Poll;

/// What differs between sinks.
pub trait SinkLogic<In: Send + 'static>: Send + 'static {
    /// Consumes what can be consumed now. `Ready` ends the sink: an upstream that is still live is cancelled, with the
    /// failure if it is one. Never called again after `Ready`.
    ///
    /// # Errors
    /// The stream's failure, or the sink's own.
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>>;

    /// The upstream has closed: resolve the materialised value.
    fn finish(&mut self, outcome: Result<(), StreamError>);
}

/// A sink over its upstream.
#[derive(Debug)]
pub struct SinkRun<U, L> {
    up: Up<U>,
    logic: L,
    outcome: Option<Result<(), StreamError>>,
}

impl<U: Stage, L: SinkLogic<U::Out>> SinkRun<U, L> {
    /// A sink that has consumed nothing yet.
    pub fn new(up: U, logic: L) -> Self {
        SinkRun { up: Up::new(up), logic, outcome: None }
    }
}

impl<U: Stage, L: SinkLogic<U::Out>> Runnable for SinkRun<U, L> {
    fn poll_run(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        if self.outcome.is_none() {
            let Poll::Ready(outcome) = self.logic.poll(&mut self.up, cx) else {
                return Poll::Pending;
            };
            let cause = outcome.clone().err().map_or(CancelCause::Finished, CancelCause::Failure);
            self.up.cancel(cause, cx);
            self.outcome = Some(outcome);
        }
        if self.up.poll_closed(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(outcome) = self.outcome.take() {
            self.logic.finish(outcome);
        }
        Poll::Ready(())
    }
}

/// The answer of a sink that only drives: ended, or to be polled again.
pub fn ended(answer: Driven) -> Poll<Result<(), StreamError>> {
    match answer {
        Ok(Progress::Complete) => Poll::Ready(Ok(())),
        Err(error) => Poll::Ready(Err(error)),
        Ok(Progress::Pending | Progress::Stopped) => Poll::Pending,
    }
}
