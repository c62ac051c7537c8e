//! Each sink: what it materialises, when it cancels, and that its completion comes after everything is closed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

#[test]
fn head_and_last_with_and_without_elements() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer_with_budget(2);
    let line = |n: u32| Source::from_iter(0..n).checked("line").jitter(3);
    let head = line(5).run_with_on(Sink::head(), &m).unwrap();
    assert_eq!(rt.outcome(head).unwrap(), 0);
    let last = line(5).run_with_on(Sink::last(), &m).unwrap();
    assert_eq!(rt.outcome(last).unwrap(), 4);
    let none = line(0).run_with_on(Sink::head_option(), &m).unwrap();
    assert_eq!(rt.outcome(none).unwrap(), None);
    let none = line(0).run_with_on(Sink::last_option(), &m).unwrap();
    assert_eq!(rt.outcome(none).unwrap(), None);
    let head = line(0).run_with_on(Sink::head(), &m).unwrap();
    assert!(matches!(rt.outcome(head).unwrap_err().kind(), ErrorKind::NoElement { stage: "head" }));
    let last = line(0).run_with_on(Sink::last(), &m).unwrap();
    assert!(matches!(rt.outcome(last).unwrap_err().kind(), ErrorKind::NoElement { stage: "last" }));
}

#[test]
fn head_cancels_after_the_first_element() {
    let mut rt = TestRuntime::new(1);
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let line = Source::from_iter(0..).map(move |x: u32| {
        count.fetch_add(1, Ordering::Relaxed);
        x
    });
    let head = line.run_with_on(Sink::head(), &rt.materializer()).unwrap();
    assert_eq!(rt.outcome(head).unwrap(), 0);
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[test]
fn foreach_supervises_its_closure() {
    let mut rt = TestRuntime::new(1);
    let sum = Arc::new(AtomicUsize::new(0));
    let sink = |sum: &Arc<AtomicUsize>| {
        let sum = sum.clone();
        Sink::foreach(move |x: usize| {
            assert!(x != 3, "three");
            sum.fetch_add(x, Ordering::Relaxed);
        })
    };
    let stopped = Source::from_iter(0..10).run_with_on(sink(&sum), &rt.materializer()).unwrap();
    let error = rt.outcome(stopped).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Panicked { stage: "foreach", message } if message == "three"));
    assert_eq!(sum.swap(0, Ordering::Relaxed), 3);
    let resuming = sink(&sum).with_attributes(Attributes::new().supervision(Supervision::resume()));
    let resumed = Source::from_iter(0..10).run_with_on(resuming, &rt.materializer()).unwrap();
    rt.outcome(resumed).unwrap();
    assert_eq!(sum.load(Ordering::Relaxed), 42);
}

#[test]
fn a_pulled_queue_holds_at_most_its_capacity_and_a_failure_overtakes() {
    let mut rt = TestRuntime::new(1);
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let line = Source::from_iter(0..10).map(move |x: u32| {
        count.fetch_add(1, Ordering::Relaxed);
        assert!(x != 5, "five");
        x
    });
    let mut queue = line.run_with_on(Sink::queue(3), &rt.materializer()).unwrap();
    rt.run();
    assert_eq!(made.load(Ordering::Relaxed), 3);
    assert!(matches!(rt.poll_once(queue.pull()), Poll::Ready(Ok(Some(0)))));
    rt.run();
    assert_eq!(made.load(Ordering::Relaxed), 4);
    assert!(matches!(rt.poll_once(queue.pull()), Poll::Ready(Ok(Some(1)))));
    assert!(matches!(rt.poll_once(queue.pull()), Poll::Ready(Ok(Some(2)))));
    rt.run();
    // 3 and 4 wait; the failure at 5 overtakes them.
    assert!(matches!(rt.poll_once(queue.pull()), Poll::Ready(Err(_))));
    assert!(matches!(rt.poll_once(queue.pull()), Poll::Ready(Ok(None))));
}

#[test]
fn dropping_a_pulled_queue_cancels_and_an_abort_shows_in_it() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let (feed, queue) = Source::queue::<u8>(1).to_keep(Sink::queue(1), Keep::both).run_on(&m).unwrap();
    rt.run();
    drop(queue);
    rt.run();
    assert!(feed.is_closed());
    assert_eq!(rt.live_tasks(), 0);
    let mut queue = Source::never::<u8>().run_with_on(Sink::queue(1), &m).unwrap();
    rt.run();
    m.abort();
    rt.run();
    let Poll::Ready(Err(error)) = rt.poll_once(queue.pull()) else { panic!("the abort must show") };
    assert!(matches!(error.kind(), ErrorKind::Aborted));
}

#[test]
fn a_cancelling_sink_reaches_the_source_across_a_boundary() {
    let mut rt = TestRuntime::new(1);
    let line = Source::queue::<u8>(1).checked("in").async_boundary().checked("out");
    let feed = line.to(Sink::cancelled()).run_on(&rt.materializer()).unwrap();
    rt.run();
    assert!(feed.is_closed());
    assert_eq!(rt.live_tasks(), 0);
}

#[test]
fn a_copy_that_panics_is_the_folds_own_failure() {
    struct Brittle(u32);
    impl Clone for Brittle {
        fn clone(&self) -> Self {
            assert!(self.0 < 3, "brittle");
            Brittle(self.0)
        }
    }
    let mut rt = TestRuntime::new(1);
    for supervision in [Supervision::decide(|_| Directive::Stop), Supervision::restart()] {
        let m = rt.materializer().with_attributes(Attributes::new().supervision(supervision));
        let fold = Sink::fold(Brittle(0), |sum: Brittle, x: u32| Brittle(sum.0 + x));
        let done = Source::from_iter(0..5u32).run_with_on(fold, &m).unwrap();
        // 0, 1, 3: the copy of 3 panics. Stop fails; Restart goes back to 0 and then takes the 4.
        match rt.outcome(done) {
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Panicked { stage: "fold", message } if message == "brittle")
                );
            }
            Ok(sum) => assert_eq!(sum.0, 4),
        }
    }
    assert_eq!(rt.live_tasks(), 0);
}

#[test]
fn a_size_hint_that_panics_takes_nothing_down() {
    struct Hint;
    impl Iterator for Hint {
        type Item = u8;
        fn next(&mut self) -> Option<u8> {
            None
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            panic!("hint")
        }
    }
    let mut rt = TestRuntime::new(1);
    let done =
        Source::from_iter(Hint).async_boundary().run_with_on(Sink::collect(), &rt.materializer()).unwrap();
    assert!(rt.outcome(done).unwrap().is_empty());
}
