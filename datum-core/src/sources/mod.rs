//! Sources, one concept per file. The constructors are functions of `Source<Unset>`: `Source::from_iter(..)`.
//!
//! A source's stage is a leaf: it spends the budget per element where it can be always ready, and ends at a graceful
//! shutdown (wrapped in a [`Leaf`](crate::stage::Leaf), or by itself when it holds accepted elements).

mod empty;
mod failed;
mod from_iter;
mod from_stream;
mod future;
mod lazy;
mod never;
mod queue;
mod repeat;
mod single;
mod tick;
mod unfold;
mod unfold_async;

pub use empty::Empty;
pub use failed::Failed;
pub use from_iter::{FromIter, IterStage};
pub use from_stream::{FromStream, FromStreamStage};
pub use future::{FutureSource, FutureStage};
pub use lazy::{Lazy, LazyStage};
pub use never::Never;
pub use queue::{Offer, OfferError, Queue, QueueHandle, QueueStage, TryOfferError};
pub use repeat::{Repeat, RepeatStage};
pub use single::{Single, SingleStage};
pub use tick::{Tick, TickStage};
pub use unfold::{Unfold, UnfoldStage};
pub use unfold_async::{UnfoldAsync, UnfoldAsyncStage};

/// The `cancel` and `poll_closed` of a leaf that has nothing to release.
macro_rules! nothing_to_close {
    () => {
        fn cancel(&mut self, _: $crate::stage::CancelCause, _: &mut $crate::stage::StageCx<'_, '_>) {}

        fn poll_closed(&mut self, _: &mut $crate::stage::StageCx<'_, '_>) -> ::std::task::Poll<()> {
            ::std::task::Poll::Ready(())
        }
    };
}
use nothing_to_close;
