//! `watch_termination`: a future of how a stream ended here.

use crate::blueprint::{Built, Keeps, Operator, StreamOps};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::sinks::{Completion, Promise};
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use std::task::Poll;

/// Adds [`watch_termination`](WatchTerminationOps::watch_termination).
pub trait WatchTerminationOps: StreamOps {
    /// Lets everything pass; materialises the future of the end at this place, which `keep` chooses or combines with
    /// the value so far.
    ///
    /// The future gives `Ok` when the stream completed or downstream had enough, and the failure when the upstream
    /// failed or was cancelled because something downstream, or beside it, did. It resolves when everything upstream
    /// has closed; after an abrupt stop with [`Aborted`](crate::ErrorKind::Aborted).
    ///
    /// - **Emits** when upstream does.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let (watched, first) = Source::from_iter(1..)
    ///     .watch_termination(Keep::right)
    ///     .take(2)
    ///     .to_keep(Sink::collect(), Keep::both)
    ///     .run()?;
    /// assert_eq!(first.await?, [1, 2]);
    /// watched.await?;
    /// # Ok(())
    /// # }
    /// ```
    fn watch_termination<K: Keeps>(self, keep: K) -> Self::Then<WatchTermination, K> {
        self.then_keep(WatchTermination, keep)
    }
}

impl<S: StreamOps> WatchTerminationOps for S {}

/// The operator of [`watch_termination`](WatchTerminationOps::watch_termination).
#[derive(Clone, Copy, Debug)]
pub struct WatchTermination;

impl<In: Send + 'static> Operator<In> for WatchTermination {
    type Out = In;
    type Mat = Completion<()>;
    type Stage<U: Stage<Out = In>> = WatchTerminationStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Stage<U>, Completion<()>> {
        let (promise, completion) = Completion::new();
        Ok((WatchTerminationStage { up: Up::new(up), end: None, promise }, completion))
    }
}

/// The stage of [`watch_termination`](WatchTerminationOps::watch_termination).
#[derive(Debug)]
pub struct WatchTerminationStage<U> {
    up: Up<U>,
    end: Option<Result<(), StreamError>>,
    promise: Promise<()>,
}

impl<U: Stage> WatchTerminationStage<U> {
    #[inline]
    fn note(&mut self, answer: Driven) -> Driven {
        match &answer {
            Ok(Progress::Pending | Progress::Stopped) => {}
            Ok(Progress::Complete) => self.end = Some(Ok(())),
            Err(error) => self.end = Some(Err(error.clone())),
        }
        answer
    }
}

impl<U: Stage> Stage for WatchTerminationStage<U> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, push: P) -> Driven {
        let answer = self.up.drive(cx, push);
        self.note(answer)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        let answer = self.up.tend(cx);
        self.note(answer)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.end = Some(cause.clone().into_result());
        self.up.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        if self.up.poll_closed(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(end) = self.end.take() {
            self.promise.resolve(end);
        }
        Poll::Ready(())
    }
}
