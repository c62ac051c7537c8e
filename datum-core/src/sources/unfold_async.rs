//! `Source::unfold_async`: elements computed from a state, asynchronously.

use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::error::{BoxError, StreamError};
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Leaf, Progress, Push, Stage, StageCx, guard};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

impl Source<Unset> {
    /// Computes the next state and element from the state with a future, until it gives `Ok(None)`; an `Err` fails
    /// the stream, and so does a panic.
    ///
    /// The future is begun on demand. It is dropped when the stream is cancelled meanwhile, so it must be cancel safe.
    ///
    /// - **Emits** when the future has given an element.
    /// - **Completes** when the future has given `Ok(None)`.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let pages = Source::unfold_async(1u32, |page| async move {
    ///     Ok::<_, std::io::Error>((page <= 3).then_some((page + 1, format!("page {page}"))))
    /// });
    /// assert_eq!(pages.run_with(Sink::collect())?.await?, ["page 1", "page 2", "page 3"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unfold_async<S, T, E, Fut, F>(state: S, f: F) -> Source<UnfoldAsync<S, F>>
    where
        S: Send + 'static,
        T: Send + 'static,
        E: Into<BoxError> + 'static,
        Fut: Future<Output = Result<Option<(S, T)>, E>> + Send + 'static,
        F: FnMut(S) -> Fut + Send + 'static,
    {
        Source::from_blueprint(UnfoldAsync { state, f })
    }
}

/// The blueprint of [`Source::unfold_async`].
#[derive(Clone, Debug)]
pub struct UnfoldAsync<S, F> {
    state: S,
    f: F,
}

/// The stage of [`Source::unfold_async`].
#[derive(Debug)]
pub struct UnfoldAsyncStage<S, F, Fut> {
    f: F,
    state: State<S>,
    /// Reused from element to element; empty while none is under way.
    future: Pin<Box<Option<Fut>>>,
}

#[derive(Debug)]
enum State<S> {
    Ready(S),
    UnderWay,
    Over,
}

impl<S, T, E, Fut, F> Blueprint for UnfoldAsync<S, F>
where
    S: Send + 'static,
    T: Send + 'static,
    E: Into<BoxError> + 'static,
    Fut: Future<Output = Result<Option<(S, T)>, E>> + Send + 'static,
    F: FnMut(S) -> Fut + Send + 'static,
{
    type Out = T;
    type Mat = ();
    type Stage = Leaf<UnfoldAsyncStage<S, F, Fut>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        let stage = UnfoldAsyncStage { f: self.f, state: State::Ready(self.state), future: Box::pin(None) };
        Ok((Leaf::new(stage, materializer), ()))
    }
}

impl<S, F, Fut> UnfoldAsyncStage<S, F, Fut> {
    /// Drops the future that is under way; a panic in its destructor stops here.
    fn drop_future(&mut self) -> Result<(), StreamError> {
        guard("unfold_async", || self.future.set(None))
    }

    fn begin(&mut self, state: S) -> Result<(), StreamError>
    where
        F: FnMut(S) -> Fut,
    {
        let future = guard("unfold_async", || (self.f)(state))?;
        self.future.set(Some(future));
        Ok(())
    }

    fn poll_next<T, E>(&mut self, cx: &mut StageCx<'_, '_>) -> Result<Poll<Option<(S, T)>>, StreamError>
    where
        E: Into<BoxError>,
        Fut: Future<Output = Result<Option<(S, T)>, E>>,
    {
        let Some(future) = self.future.as_mut().as_pin_mut() else {
            return Ok(Poll::Ready(None));
        };
        let Poll::Ready(next) = guard("unfold_async", || future.poll(cx.task()))? else {
            return Ok(Poll::Pending);
        };
        self.drop_future()?;
        next.map(Poll::Ready).map_err(|error| StreamError::failed("unfold_async", error))
    }
}

impl<S, T, E, Fut, F> Stage for UnfoldAsyncStage<S, F, Fut>
where
    S: Send + 'static,
    T: Send + 'static,
    E: Into<BoxError> + 'static,
    Fut: Future<Output = Result<Option<(S, T)>, E>> + Send + 'static,
    F: FnMut(S) -> Fut + Send + 'static,
{
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            if !cx.spend() {
                return Ok(Progress::Pending);
            }
            match std::mem::replace(&mut self.state, State::UnderWay) {
                State::Ready(state) => self.begin(state)?,
                State::UnderWay => {}
                State::Over => {
                    self.state = State::Over;
                    return Ok(Progress::Complete);
                }
            }
            match self.poll_next(cx)? {
                Poll::Pending => return Ok(Progress::Pending),
                Poll::Ready(None) => {
                    self.state = State::Over;
                    return Ok(Progress::Complete);
                }
                Poll::Ready(Some((state, element))) => {
                    self.state = State::Ready(state);
                    if push(element).is_break() {
                        return Ok(Progress::Stopped);
                    }
                }
            }
        }
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        // A future that is under way goes on at the next demand: its element could not be kept.
        Ok(Progress::Pending)
    }

    fn cancel(&mut self, _: CancelCause, _: &mut StageCx<'_, '_>) {
        // Nobody is left to tell about a panic in the destructor.
        let _ = self.drop_future();
    }

    fn poll_closed(&mut self, _: &mut StageCx<'_, '_>) -> Poll<()> {
        Poll::Ready(())
    }
}
