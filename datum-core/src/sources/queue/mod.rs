//! `Source::queue`: elements offered from outside, with backpressure.
//!
//! - `handle`: what producers hold; `stage`: what the stream drives; `state`: the queue between them.

mod handle;
mod stage;
mod state;

pub use handle::{Offer, OfferError, QueueHandle, TryOfferError};
pub use stage::QueueStage;

use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use state::Shared;
use std::marker::PhantomData;

impl Source<Unset> {
    /// A bounded queue whose handle is the materialised value: [`QueueHandle::offer`] waits for room,
    /// [`QueueHandle::try_offer`] does not.
    ///
    /// `capacity` is the number of elements offered and not yet demanded; 0 counts as 1. An offer that was accepted is
    /// delivered, unless the stream fails or is cancelled first. The stream completes after
    /// [`complete`](QueueHandle::complete), when the last handle is dropped, or at a graceful shutdown; each time what
    /// was accepted is delivered first.
    ///
    /// - **Emits** on demand, what was offered, in order.
    /// - **Backpressures** producers when full.
    /// - **Completes** when told to and empty.
    /// - **Fails** at once when [told to](QueueHandle::fail), dropping what it holds.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let (queue, sum) = Source::queue(8).to_keep(Sink::fold(0, |sum, x: u32| sum + x), Keep::both).run()?;
    /// for x in 1..=10 {
    ///     queue.offer(x).await.expect("the stream runs");
    /// }
    /// queue.complete();
    /// assert_eq!(sum.await?, 55);
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue<T: Send + 'static>(capacity: usize) -> Source<Queue<T>> {
        Source::from_blueprint(Queue { capacity: capacity.max(1), elements: PhantomData })
    }
}

/// The blueprint of [`Source::queue`].
#[derive(Debug)]
pub struct Queue<T> {
    capacity: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Queue { capacity: self.capacity, elements: PhantomData }
    }
}

impl<T: Send + 'static> Blueprint for Queue<T> {
    type Out = T;
    type Mat = QueueHandle<T>;
    type Stage = QueueStage<T>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, Self::Mat> {
        let shared = Shared::new(self.capacity);
        let stage = QueueStage::new(shared.clone(), materializer.builds_run());
        Ok((stage, QueueHandle::first(shared)))
    }
}
