//! `Source::lazy`: a source that is made at the first demand.

use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::error::{ErrorKind, StreamError};
use crate::materializer::Materializer;
use crate::sinks::{Completion, Promise};
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up, guard};
use std::task::Poll;

impl Source<Unset> {
    /// Makes a source at the first demand and becomes it. The materialised value is the future of the inner one; it
    /// fails with [`NeverMaterialized`](ErrorKind::NeverMaterialized) when the stream ends before any demand.
    ///
    /// A panic in `make` and a source that cannot be built fail the stream and the materialised value.
    ///
    /// - **Emits** what the made source emits.
    /// - **Completes** when the made source completes; without demand, at a graceful shutdown.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let lazy = Source::lazy(|| Source::from_iter(1..=3));
    /// assert_eq!(lazy.run_with(Sink::collect())?.await?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lazy<B, F>(make: F) -> Source<Lazy<F>>
    where
        B: Blueprint<Mat: Send>,
        F: FnOnce() -> Source<B> + Send + 'static,
    {
        Source::from_blueprint(Lazy(make))
    }
}

/// The blueprint of [`Source::lazy`].
#[derive(Clone, Debug)]
pub struct Lazy<F>(F);

/// The stage of [`Source::lazy`].
pub struct LazyStage<B: Blueprint, F> {
    state: State<B, F>,
    /// Of the run itself, so that the made source drains as if it had been there from the start.
    materializer: Materializer,
    promise: Promise<B::Mat>,
}

enum State<B: Blueprint, F> {
    Unmade(F),
    Made(Up<B::Stage>),
    Over,
}

impl<B: Blueprint<Mat: Send>, F: FnOnce() -> Source<B> + Send + 'static> Blueprint for Lazy<F> {
    type Out = B::Out;
    type Mat = Completion<B::Mat>;
    type Stage = LazyStage<B, F>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, Self::Mat> {
        let (promise, completion) = Completion::new();
        let stage = LazyStage { state: State::Unmade(self.0), materializer: materializer.clone(), promise };
        Ok((stage, completion))
    }
}

impl<B: Blueprint<Mat: Send>, F: FnOnce() -> Source<B> + Send + 'static> LazyStage<B, F> {
    fn make(&mut self) -> Result<(), StreamError> {
        if !matches!(self.state, State::Unmade(_)) {
            return Ok(());
        }
        let State::Unmade(make) = std::mem::replace(&mut self.state, State::Over) else {
            return Ok(());
        };
        let made = guard("lazy", make)
            .and_then(|source| self.materializer.scope(|m| source.into_blueprint().build(m)));
        match made {
            Ok((stage, mat)) => {
                self.state = State::Made(Up::new(stage));
                self.promise.resolve(Ok(mat));
                Ok(())
            }
            Err(error) => {
                self.promise.resolve(Err(error.clone()));
                Err(error)
            }
        }
    }

    fn never_made(&mut self) {
        // A panic in the destructor of what `make` captured stops here.
        let _ = guard("lazy", || self.state = State::Over);
        self.promise.resolve(Err(ErrorKind::NeverMaterialized { stage: "lazy" }.into()));
    }

    fn drained_unmade(&mut self, cx: &mut StageCx<'_, '_>) -> bool {
        let drained =
            cx.is_draining() && self.materializer.builds_run() && matches!(self.state, State::Unmade(_));
        if drained {
            self.never_made();
        }
        drained
    }
}

impl<B: Blueprint<Mat: Send>, F: FnOnce() -> Source<B> + Send + 'static> Stage for LazyStage<B, F> {
    type Out = B::Out;

    fn drive<P: FnMut(B::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, push: P) -> Driven {
        if self.drained_unmade(cx) {
            return Ok(Progress::Complete);
        }
        self.make()?;
        match &mut self.state {
            State::Made(up) => up.drive(cx, push),
            State::Unmade(_) | State::Over => Ok(Progress::Complete),
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if self.drained_unmade(cx) {
            return Ok(Progress::Complete);
        }
        match &mut self.state {
            State::Unmade(_) => Ok(Progress::Pending),
            State::Made(up) => up.tend(cx),
            State::Over => Ok(Progress::Complete),
        }
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        match &mut self.state {
            State::Unmade(_) => self.never_made(),
            State::Made(up) => up.cancel(cause, cx),
            State::Over => {}
        }
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        match &mut self.state {
            State::Made(up) => up.poll_closed(cx),
            State::Unmade(_) | State::Over => Poll::Ready(()),
        }
    }
}

impl<B: Blueprint, F> std::fmt::Debug for LazyStage<B, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.state {
            State::Unmade(_) => "LazyStage(unmade)",
            State::Made(_) => "LazyStage(made)",
            State::Over => "LazyStage(over)",
        })
    }
}
