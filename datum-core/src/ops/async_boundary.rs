//! `async_boundary`: where a line becomes two islands.

use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::handover::{Inlet, boundary};
use crate::materializer::Materializer;
use crate::stage::Stage;

/// Adds [`async_boundary`](AsyncBoundaryOps::async_boundary).
pub trait AsyncBoundaryOps: StreamOps {
    /// Runs everything so far in a task of its own, so that both sides can work at once.
    ///
    /// At most [`window`](crate::attributes::Attributes::window) elements (16 by default) are produced and not
    /// consumed; they change hands in chunks, and a partial chunk never waits while its producer would sleep. What was
    /// produced before a failure is delivered before it. Wants at least some tens of nanoseconds of work per element
    /// on each side to pay.
    ///
    /// - **Emits** when an element has come over.
    /// - **Backpressures** when the window is full; the upstream side runs ahead of demand until then.
    /// - **Completes** when upstream completes and everything has come over.
    /// - **Cancels** when downstream cancels; what is in flight is dropped.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), StreamError> {
    /// let sum = Source::from_iter(0..100u64)
    ///     .map(|x| x * x)
    ///     .async_boundary()
    ///     .run_with(Sink::fold(0, |sum, x| sum + x))?
    ///     .await?;
    /// assert_eq!(sum, 328_350);
    /// # Ok(())
    /// # }
    /// ```
    fn async_boundary(self) -> Self::Then<AsyncBoundary, KeepLeft> {
        self.then(AsyncBoundary)
    }
}

impl<S: StreamOps> AsyncBoundaryOps for S {}

/// The operator of [`async_boundary`](AsyncBoundaryOps::async_boundary).
#[derive(Clone, Copy, Debug)]
pub struct AsyncBoundary;

impl<In: Send + 'static> Operator<In> for AsyncBoundary {
    type Out = In;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = Inlet<In>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<Inlet<In>, ()> {
        Ok((boundary(up, materializer.window(), materializer), ()))
    }
}
