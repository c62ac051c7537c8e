//! `Sink::cancelled`: wants nothing.

use super::{SinkLogic, SinkRun};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{Stage, StageCx, Up};
use std::task::Poll;

impl Sink<Unset> {
    /// Cancels its upstream at once.
    ///
    /// - **Cancels** at once.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let queue = Source::queue::<u8>(1).to(Sink::cancelled()).run()?;
    /// queue.closed().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancelled() -> Sink<Cancelled> {
        Sink::from_blueprint(Cancelled)
    }
}

/// The blueprint of [`Sink::cancelled`].
#[derive(Clone, Copy, Debug)]
pub struct Cancelled;

/// The logic of [`Sink::cancelled`].
#[derive(Debug)]
pub struct CancelledLogic;

impl<In: Send + 'static> SinkBlueprint<In> for Cancelled {
    type Mat = ();
    type Run<U: Stage<Out = In>> = SinkRun<U, CancelledLogic>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, ()> {
        Ok((SinkRun::new(up, CancelledLogic), ()))
    }
}

impl<In: Send + 'static> SinkLogic<In> for CancelledLogic {
    fn poll<U: Stage<Out = In>>(
        &mut self,
        _: &mut Up<U>,
        _: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        Poll::Ready(Ok(()))
    }

    fn finish(&mut self, _: Result<(), StreamError>) {}
}
