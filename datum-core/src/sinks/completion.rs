//! The materialised value of a sink that ends with a value.

use crate::error::{ErrorKind, StreamError};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The future of a sink's outcome. Resolves after the stream has ended and its resources are closed; fails with
/// [`Aborted`](ErrorKind::Aborted) when the stream was stopped abruptly.
///
/// Dropping it does not stop the stream. Cancel safe: polling again after an interrupted wait is fine.
#[derive(Debug)]
#[must_use = "a stream's failure shows here"]
pub struct Completion<A>(oneshot::Receiver<Result<A, StreamError>>);

/// The other half, with the sink. Dropped unkept, it aborts the [`Completion`].
#[derive(Debug)]
pub struct Promise<A>(Option<oneshot::Sender<Result<A, StreamError>>>);

impl<A> Completion<A> {
    /// A connected pair.
    pub fn new() -> (Promise<A>, Completion<A>) {
        let (sender, receiver) = oneshot::channel();
        (Promise(Some(sender)), Completion(receiver))
    }

    /// The outcome, if it is there already. Gives it once.
    pub fn try_get(&mut self) -> Option<Result<A, StreamError>> {
        match self.0.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => Some(Err(ErrorKind::Aborted.into())),
        }
    }
}

impl<A> Promise<A> {
    /// Resolves the completion; only the first call counts.
    pub fn resolve(&mut self, outcome: Result<A, StreamError>) {
        if let Some(sender) = self.0.take() {
            // Nobody waits any more: the outcome is dropped, as documented.
            let _ = sender.send(outcome);
        }
    }
}

impl<A> Future for Completion<A> {
    type Output = Result<A, StreamError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|received| received.unwrap_or_else(|_| Err(ErrorKind::Aborted.into())))
    }
}
