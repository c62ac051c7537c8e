//! Futures that are not ready at once.

use datum_core::clock::{Clock, Timer};
use datum_core::stage::StageCx;
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

/// Ready at the poll after `n` others, each of which wakes itself.
pub fn pause(n: u64) -> impl Future<Output = ()> + Send + use<> {
    let mut left = n;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Ready when `clock` shows `after` more than when this was called.
pub fn sleep(clock: &Clock, after: Duration) -> impl Future<Output = ()> + Send + use<> {
    let (clock, at, mut timer) = (clock.clone(), clock.now() + after, Timer::default());
    poll_fn(move |cx| timer.poll_until(at, &mut StageCx::new(cx, &clock, 1)))
}
