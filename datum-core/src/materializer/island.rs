//! An island: what runs in one task.

use super::registry::{Entry, Registry};
use crate::clock::Clock;
use crate::stage::StageCx;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What a sink, or the producing side of a boundary, becomes: polled with the island's clock and a fresh budget.
pub trait Runnable: Send + 'static {
    /// Runs until nothing can be done now. `Ready`: it has ended and everything it held is closed.
    fn poll_run(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()>;
}

/// A [`Runnable`] as a task. After an abort it drops what it runs and ends.
pub(super) struct Island<R> {
    run: Option<R>,
    clock: Clock,
    budget: u32,
    entry: Option<Entry>,
}

impl<R: Runnable> Island<R> {
    pub(super) fn new(run: R, clock: Clock, budget: u32, registry: &Arc<Registry>) -> Self {
        Island { run: Some(run), clock, budget, entry: Some(registry.enter()) }
    }
}

impl<R> Unpin for Island<R> {}

impl<R: Runnable> Future for Island<R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Island { run, clock, budget, entry } = &mut *self;
        let (Some(running), Some(place)) = (run.as_mut(), entry.as_ref()) else {
            return Poll::Ready(());
        };
        // Registered before the flags are read: a stop in between wakes this task again.
        place.waker().register(cx.waker());
        if !place.registry().is_stopped() {
            let draining = place.registry().is_draining();
            let mut cx = StageCx::new(cx, clock, *budget).draining(draining);
            if running.poll_run(&mut cx).is_pending() {
                return Poll::Pending;
            }
        }
        // What it ran goes before its place does: a shutdown waits for the destructors too.
        *run = None;
        *entry = None;
        Poll::Ready(())
    }
}

impl<R> Drop for Island<R> {
    fn drop(&mut self) {
        self.run = None;
        self.entry = None;
    }
}
