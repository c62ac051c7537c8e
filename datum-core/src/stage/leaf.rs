//! The wrapper that ends a run's own sources at a graceful shutdown.

use super::{CancelCause, Driven, Push, Stage, StageCx, Up};
use crate::materializer::Materializer;
use std::task::Poll;

/// A source's stage that ends when its run is drained.
///
/// Sources whose accepted elements must still go out (a queue) look at [`StageCx::is_draining`] themselves instead.
/// A source that an operator builds at run time is not ended: the element it came from is being drained.
#[derive(Debug)]
pub struct Leaf<S> {
    stage: Up<S>,
    of_run: bool,
}

impl<S: Stage> Leaf<S> {
    /// Wraps a source's stage while `materializer` builds it.
    pub fn new(stage: S, materializer: &Materializer) -> Self {
        Leaf { stage: Up::new(stage), of_run: materializer.builds_run() }
    }

    #[inline]
    fn drained(&mut self, cx: &mut StageCx<'_, '_>) -> Option<Driven> {
        (cx.is_draining() && self.of_run).then(|| self.stage.complete(cx))
    }
}

impl<S: Stage> Stage for Leaf<S> {
    type Out = S::Out;

    #[inline]
    fn drive<P: FnMut(S::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, push: P) -> Driven {
        match self.drained(cx) {
            Some(complete) => complete,
            None => self.stage.drive(cx, push),
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        match self.drained(cx) {
            Some(complete) => complete,
            None => self.stage.tend(cx),
        }
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.stage.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        self.stage.poll_closed(cx)
    }
}
