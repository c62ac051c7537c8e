//! Who waits for the records of a batch.

use tokio::sync::oneshot;

use super::Failure;

/// What a waiter hears: the record's offset if known, or why not and whether perhaps nevertheless.
pub(super) type Answered = Result<Option<i64>, (Failure, bool)>;

/// The waiters of one batch's records, in their order.
#[derive(Debug, Default)]
pub(super) struct Tickets(Vec<oneshot::Sender<Answered>>);

impl Tickets {
    pub(super) fn issue(&mut self) -> oneshot::Receiver<Answered> {
        let (waiter, answer) = oneshot::channel();
        self.0.push(waiter);
        answer
    }

    /// Cuts off those from the `at`-th on.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        Self(self.0.split_off(at.min(self.0.len())))
    }

    pub(super) fn written(self, first: Option<i64>) {
        for (waiter, delta) in self.0.into_iter().zip(0i64..) {
            // Nobody has to wait.
            let _ = waiter.send(Ok(first.map(|first| first + delta)));
        }
    }

    pub(super) fn failed(self, why: Failure, possibly_written: bool) {
        for waiter in self.0 {
            let _ = waiter.send(Err((why, possibly_written)));
        }
    }
}
