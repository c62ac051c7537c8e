//! The engine's first lines: fused, boxed, across a boundary, drained and aborted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime};

#[test]
fn a_line_computes_the_same_fused_boxed_and_across_a_boundary() {
    for seed in 0..200 {
        for budget in [1, 2, 7, 4096] {
            let mut rt = TestRuntime::new(seed);
            let m = rt.materializer_with_budget(budget);
            let line =
                || Source::from_iter(0..100u64).checked("source").map(|x| x * 3).jitter(seed).checked("map");
            let fused = line().filter(|x| x % 2 == 0).run_with_on(Sink::collect(), &m).unwrap();
            let boxed = line().boxed().filter(|x| x % 2 == 0).run_with_on(Sink::collect(), &m).unwrap();
            let cut = line().async_boundary().checked("cut").filter(|x| x % 2 == 0);
            let cut = cut.jitter(seed + 1).run_with_on(Sink::collect(), &m).unwrap();
            let want: Vec<u64> = (0..100).map(|x| x * 3).filter(|x| x % 2 == 0).collect();
            assert_eq!(rt.outcome(fused).unwrap(), want, "seed {seed}");
            assert_eq!(rt.outcome(boxed).unwrap(), want, "seed {seed}");
            assert_eq!(rt.outcome(cut).unwrap(), want, "seed {seed}");
            assert_eq!(rt.live_tasks(), 0);
            assert_eq!(m.running(), 0);
        }
    }
}

#[test]
fn take_stops_its_upstream_after_exactly_the_last_element() {
    let mut rt = TestRuntime::new(1);
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = seen.clone();
    let line = Source::from_iter(0..).map(move |x: u64| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        x
    });
    let done = line.boxed().take(3).checked("take").run_with_on(Sink::collect(), &rt.materializer()).unwrap();
    assert_eq!(rt.outcome(done).unwrap(), [0, 1, 2]);
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[test]
fn a_panic_is_the_error_of_the_stage_that_called() {
    let mut rt = TestRuntime::new(1);
    let done = Source::from_iter(0..10)
        .map(|x: u64| if x == 3 { panic!("three") } else { x })
        .run_with_on(Sink::collect(), &rt.materializer())
        .unwrap();
    let error = rt.outcome(done).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Panicked { stage: "map", message } if message == "three"),
        "{error}"
    );
}

#[test]
fn supervision_resumes_and_restarts() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer().with_attributes(Attributes::new().supervision(Supervision::resume()));
    let line = || Source::from_iter(0..5u64).map(|x| if x == 2 { panic!("two") } else { x });
    let kept = line().run_with_on(Sink::collect(), &m).unwrap();
    assert_eq!(rt.outcome(kept).unwrap(), [0, 1, 3, 4]);
    let fold = || Sink::fold(100u64, |sum, x: u64| if x == 3 { panic!("three") } else { sum + x });
    let resumed = line().run_with_on(fold(), &m).unwrap();
    assert_eq!(rt.outcome(resumed).unwrap(), 105);
    let m = rt.materializer().with_attributes(Attributes::new().supervision(Supervision::restart()));
    let restarted = line().run_with_on(fold(), &m).unwrap();
    assert_eq!(rt.outcome(restarted).unwrap(), 104);
}

#[test]
fn shutdown_drains_and_abort_drops() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer_with_budget(10);
    let mut drained = Source::from_iter(0u64..)
        .async_boundary()
        .run_with_on(Sink::fold(0u64, |n, _: u64| n + 1), &m)
        .unwrap();
    for _ in 0..50 {
        rt.step();
    }
    assert!(drained.try_get().is_none());
    assert!(rt.poll_once(m.shutdown()).is_pending());
    assert!(rt.outcome(drained).unwrap() > 0);
    assert!(rt.poll_once(m.shutdown()).is_ready());
    let late = Source::from_iter(0..1).run_with_on(Sink::collect(), &m).unwrap_err();
    assert!(matches!(late.kind(), ErrorKind::Stopped));

    let m = rt.materializer_with_budget(10);
    let aborted = Source::from_iter(0u64..).run_with_on(Sink::collect(), &m).unwrap();
    rt.step();
    m.abort();
    assert!(matches!(rt.outcome(aborted).unwrap_err().kind(), ErrorKind::Aborted));
    assert_eq!(rt.live_tasks(), 0);
}

#[test]
fn flows_are_stored_cloned_and_attached_many_times() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let flow = Flow::<u64>::new().map(|x| x + 1).take(2);
    let a = Source::from_iter(0..10).via(flow.clone()).run_with_on(Sink::collect(), &m).unwrap();
    let sink = flow.clone().boxed().to(Sink::collect());
    let b = Source::from_iter(10..20).run_with_on(sink.boxed(), &m).unwrap();
    assert_eq!(rt.outcome(a).unwrap(), [1, 2]);
    assert_eq!(rt.outcome(b).unwrap(), [11, 12]);
    let shared = Source::from_iter(0..3u64).via(flow).shared();
    for _ in 0..3 {
        let again = shared.clone().run_with_on(Sink::collect(), &m).unwrap();
        assert_eq!(rt.outcome(again).unwrap(), [1, 2]);
    }
}
