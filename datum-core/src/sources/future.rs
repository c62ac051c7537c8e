//! `Source::future`: one element, when it is ready.

use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Leaf, Progress, Push, Stage, StageCx, guard};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

impl Source<Unset> {
    /// The value of a future, and completion in the same step. A panic in it fails the stream.
    ///
    /// The future is polled from the start, not only on demand, and its value kept until then; it is dropped when the
    /// stream is cancelled. For a future made on demand, see [`lazy`](Source::lazy).
    ///
    /// - **Emits** the value, on demand, once it is ready.
    /// - **Completes** with it.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::future(async { 7 }).run_with(Sink::collect())?.await?, [7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn future<F>(future: F) -> Source<FutureSource<F>>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Source::from_blueprint(FutureSource(future))
    }
}

/// The blueprint of [`Source::future`].
#[derive(Clone, Debug)]
pub struct FutureSource<F>(F);

/// The stage of [`Source::future`].
pub struct FutureStage<F: Future>(State<F>);

enum State<F: Future> {
    Waiting(Pin<Box<F>>),
    Ready(F::Output),
    Over,
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Blueprint for FutureSource<F> {
    type Out = F::Output;
    type Mat = ();
    type Stage = Leaf<FutureStage<F>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        Ok((Leaf::new(FutureStage(State::Waiting(Box::pin(self.0))), materializer), ()))
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> FutureStage<F> {
    /// Gets the value, if it is there.
    fn poll(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if let State::Waiting(future) = &mut self.0 {
            match guard("future", || future.as_mut().poll(cx.task()))? {
                Poll::Pending => return Ok(Progress::Pending),
                Poll::Ready(value) => self.0 = State::Ready(value),
            }
        }
        Ok(if matches!(self.0, State::Over) { Progress::Complete } else { Progress::Stopped })
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Stage for FutureStage<F> {
    type Out = F::Output;

    fn drive<P: FnMut(F::Output) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if self.poll(cx)? == Progress::Pending {
            return Ok(Progress::Pending);
        }
        if let State::Ready(value) = std::mem::replace(&mut self.0, State::Over) {
            // Whether more is wanted makes no difference: there is no more.
            let _ = push(value);
        }
        Ok(Progress::Complete)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        // A value that is kept is delivered at the next demand.
        Ok(if self.poll(cx)? == Progress::Complete { Progress::Complete } else { Progress::Pending })
    }

    fn cancel(&mut self, _: CancelCause, _: &mut StageCx<'_, '_>) {
        // Nobody is left to tell about a panic in the destructor.
        let _ = guard("future", || self.0 = State::Over);
    }

    fn poll_closed(&mut self, _: &mut StageCx<'_, '_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl<F: Future> std::fmt::Debug for FutureStage<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            State::Waiting(_) => "FutureStage(waiting)",
            State::Ready(_) => "FutureStage(ready)",
            State::Over => "FutureStage(over)",
        })
    }
}
