//! Models of the wake set's races. Run with
//! `RUSTFLAGS="--cfg datum_loom" cargo test -p datum-sync --release --test loom_wake_set`.
#![cfg(datum_loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_sync::wake_set::WakeSet;
use loom::future::block_on;
use loom::thread;
use std::future::poll_fn;
use std::task::Poll;

/// Waits until both children were woken; a lost wake leaves it parked, which the model reports as a deadlock.
fn sees_both(suspend_after_each: bool) {
    loom::model(move || {
        let mut set = WakeSet::with_len(2);
        let (a, b) = (set.waker(0).clone(), set.waker(1).clone());
        let waker = thread::spawn(move || {
            a.wake();
            b.wake();
        });
        let mut seen = [false; 2];
        block_on(poll_fn(|cx| {
            set.begin(cx.waker());
            while let Some(child) = set.next() {
                seen[child] = true;
                if suspend_after_each {
                    if set.suspend() {
                        cx.waker().wake_by_ref();
                    }
                    break;
                }
            }
            if seen == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
        }));
        waker.join().unwrap();
    });
}

#[test]
fn a_wake_during_a_look_is_not_lost() {
    sees_both(false);
}

#[test]
fn a_suspended_look_comes_back() {
    sees_both(true);
}

#[test]
fn a_child_woken_again_while_it_is_polled_is_queued_again() {
    loom::model(|| {
        let mut set = WakeSet::with_len(1);
        let waker = set.waker(0).clone();
        waker.wake_by_ref();
        let again = thread::spawn(move || waker.wake());
        let mut turns = 0;
        block_on(poll_fn(|cx| {
            set.begin(cx.waker());
            while set.next().is_some() {
                turns += 1;
            }
            Poll::Ready(())
        }));
        again.join().unwrap();
        block_on(poll_fn(|cx| {
            set.begin(cx.waker());
            while set.next().is_some() {
                turns += 1;
            }
            Poll::Ready(())
        }));
        // Both wakes came before the first look, or the second is seen by a look of its own.
        assert!((1..=2).contains(&turns));
    });
}
