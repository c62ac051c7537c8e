//! What producers hold of a queue source.

use super::state::Shared;
use crate::error::{BoxError, StreamError};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The materialised value of [`Source::queue`](crate::Source::queue): clone it for more producers.
///
/// Dropping the last clone completes the stream.
pub struct QueueHandle<T>(Arc<Shared<T>>);

/// The queue takes no more elements: completed, failed, or the stream is over. The element comes back.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is closed: it was completed or failed, or its stream is over")]
pub struct OfferError<T>(pub T);

/// Why an element was not taken at once. It comes back.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TryOfferError<T> {
    /// The queue is full, or earlier offers wait for its room.
    #[error("the queue is full")]
    Full(T),
    /// See [`OfferError`].
    #[error("the queue is closed: it was completed or failed, or its stream is over")]
    Closed(T),
}

impl<T> QueueHandle<T> {
    pub(super) fn first(shared: Arc<Shared<T>>) -> Self {
        QueueHandle(shared)
    }

    /// Offers an element and waits for room. Offers are accepted in the order in which they were first polled.
    ///
    /// Cancel safe in this sense: an offer dropped before it resolved was not accepted, and its element is dropped
    /// with it.
    ///
    /// # Errors
    /// [`OfferError`] gives the element back when the queue is closed.
    pub fn offer(&self, element: T) -> Offer<'_, T> {
        Offer { shared: &self.0, element: Some(element), ticket: None }
    }

    /// Offers an element without waiting.
    ///
    /// # Errors
    /// The element comes back when the queue is full or closed.
    pub fn try_offer(&self, element: T) -> Result<(), TryOfferError<T>> {
        let mut state = self.0.lock();
        if state.is_closed() {
            return Err(TryOfferError::Closed(element));
        }
        if !state.has_room() || !state.waiting.is_empty() {
            return Err(TryOfferError::Full(element));
        }
        state.held.push_back(element);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Completes the stream behind what was accepted. Offers that still wait get their element back. Only the first
    /// ending counts.
    pub fn complete(&self) {
        self.0.end(Ok(()));
    }

    /// Fails the stream at once: what was accepted and not delivered is dropped. Only the first ending counts.
    pub fn fail(&self, error: impl Into<BoxError>) {
        self.0.end(Err(StreamError::failed("queue", error)));
    }

    /// How many elements are accepted and not delivered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().held.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.lock().capacity
    }

    /// Whether offers are refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.lock().is_closed()
    }

    /// Resolves when the stream is over and takes nothing any more. Cancel safe.
    pub async fn closed(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.gone {
                return Poll::Ready(());
            }
            if !state.watchers.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.watchers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

/// The future of [`QueueHandle::offer`].
#[must_use = "an offer does nothing unless awaited"]
pub struct Offer<'a, T> {
    shared: &'a Shared<T>,
    element: Option<T>,
    /// The place in the line, once it had to wait.
    ticket: Option<u64>,
}

impl<T> Unpin for Offer<'_, T> {}

impl<T> Future for Offer<'_, T> {
    type Output = Result<(), OfferError<T>>;

    /// # Panics
    /// When polled again after it resolved.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let element = this.element.take().expect("an offer polled after it resolved");
        let mut state = this.shared.lock();
        if state.is_closed() {
            // Whoever closed it has emptied the line.
            this.ticket = None;
            return Poll::Ready(Err(OfferError(element)));
        }
        let my_turn = match this.ticket {
            None => state.waiting.is_empty(),
            Some(ticket) => state.waiting.front().is_some_and(|(first, _)| *first == ticket),
        };
        if my_turn && state.has_room() {
            if this.ticket.take().is_some() {
                state.waiting.pop_front();
            }
            state.held.push_back(element);
            let reader = state.reader.take();
            let next = state.next_waiting();
            drop(state);
            reader.into_iter().chain(next).for_each(Waker::wake);
            return Poll::Ready(Ok(()));
        }
        this.element = Some(element);
        match this.ticket {
            None => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.waiting.push_back((ticket, cx.waker().clone()));
                this.ticket = Some(ticket);
            }
            Some(ticket) => {
                if let Some((_, waker)) = state.waiting.iter_mut().find(|(t, _)| *t == ticket) {
                    waker.clone_from(cx.waker());
                }
            }
        }
        Poll::Pending
    }
}

impl<T> Drop for Offer<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.shared.lock();
        state.waiting.retain(|(t, _)| *t != ticket);
        // The room it was woken for goes to the next in line.
        let next = state.next_waiting();
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }
}

impl<T> Clone for QueueHandle<T> {
    fn clone(&self) -> Self {
        self.0.lock().handles += 1;
        QueueHandle(self.0.clone())
    }
}

impl<T> Drop for QueueHandle<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.handles -= 1;
        let last = state.handles == 0;
        drop(state);
        if last {
            self.0.end(Ok(()));
        }
    }
}

impl<T> fmt::Debug for QueueHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        f.debug_struct("QueueHandle")
            .field("len", &state.held.len())
            .field("capacity", &state.capacity)
            .field("closed", &state.is_closed())
            .finish()
    }
}

impl<T> fmt::Debug for Offer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer").field("waiting", &self.ticket.is_some()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for OfferError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfferError(..)")
    }
}

impl<T> fmt::Debug for TryOfferError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryOfferError::Full(_) => "Full(..)",
            TryOfferError::Closed(_) => "Closed(..)",
        })
    }
}
