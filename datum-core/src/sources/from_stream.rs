//! `Source::from_stream`: the elements of a `futures::Stream`.

use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Leaf, Progress, Push, Stage, StageCx, guard};
use futures_core::Stream;
use std::pin::Pin;
use std::task::Poll;

impl Source<Unset> {
    /// The elements of a [`Stream`]: the bridge from the futures ecosystem.
    ///
    /// The stream is polled on demand only, and dropped as soon as it ends or is cancelled. A panic in it fails this
    /// stream. A stream of `Result`s is followed by [`try_map(|r| r)`](crate::ops::TryMapOps::try_map).
    ///
    /// - **Emits** on demand, what the stream gives.
    /// - **Completes** when the stream ends.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let stream = futures_util::stream::iter(1..=3);
    /// assert_eq!(Source::from_stream(stream).run_with(Sink::collect())?.await?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_stream<S>(stream: S) -> Source<FromStream<S>>
    where
        S: Stream<Item: Send + 'static> + Send + 'static,
    {
        Source::from_blueprint(FromStream(stream))
    }
}

/// The blueprint of [`Source::from_stream`].
#[derive(Clone, Debug)]
pub struct FromStream<S>(S);

/// The stage of [`Source::from_stream`].
#[derive(Debug)]
pub struct FromStreamStage<S>(Option<Pin<Box<S>>>);

impl<S: Stream<Item: Send + 'static> + Send + 'static> Blueprint for FromStream<S> {
    type Out = S::Item;
    type Mat = ();
    type Stage = Leaf<FromStreamStage<S>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        Ok((Leaf::new(FromStreamStage(Some(Box::pin(self.0))), materializer), ()))
    }
}

impl<S: Stream> FromStreamStage<S> {
    fn poll_next(&mut self, cx: &mut StageCx<'_, '_>) -> Result<Poll<Option<S::Item>>, StreamError> {
        match &mut self.0 {
            None => Ok(Poll::Ready(None)),
            Some(stream) => guard("from_stream", || stream.as_mut().poll_next(cx.task())),
        }
    }

    /// Drops the stream; a panic in its destructor stops here.
    fn release(&mut self) -> Result<(), StreamError> {
        guard("from_stream", || self.0 = None)
    }
}

impl<S: Stream<Item: Send + 'static> + Send + 'static> Stage for FromStreamStage<S> {
    type Out = S::Item;

    fn drive<P: FnMut(S::Item) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            if !cx.spend() {
                return Ok(Progress::Pending);
            }
            match self.poll_next(cx) {
                Ok(Poll::Pending) => return Ok(Progress::Pending),
                Ok(Poll::Ready(Some(element))) => {
                    if push(element).is_break() {
                        return Ok(Progress::Stopped);
                    }
                }
                Ok(Poll::Ready(None)) => {
                    self.release()?;
                    return Ok(Progress::Complete);
                }
                Err(error) => {
                    // The first failure is the one to tell.
                    let _ = self.release();
                    return Err(error);
                }
            }
        }
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(Progress::Pending)
    }

    fn cancel(&mut self, _: CancelCause, _: &mut StageCx<'_, '_>) {
        // Nobody is left to tell about a panic in the destructor.
        let _ = self.release();
    }

    fn poll_closed(&mut self, _: &mut StageCx<'_, '_>) -> Poll<()> {
        Poll::Ready(())
    }
}
