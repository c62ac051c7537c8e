//! Promises that hold across operators: closing, running ahead, idleness, builds that fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::blueprint::{Blueprint, Built};
use datum_core::prelude::*;
use datum_core::stage::CancelCause;
use datum_testkit::{
    CheckedOps, JitterOps, LingerLog, ProbeStage, TestRuntime, lingering, pause, sink_probe, source_probe,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Completion, `take`, a kill, a panic downstream, an abort, a graceful shutdown, a failing neighbour.
#[test]
fn sources_close_exactly_once_in_all_endings() {
    for seed in 0..60 {
        for ending in 0..7 {
            let log = LingerLog::new();
            let mut rt = TestRuntime::new(seed);
            let m = rt.materializer_with_budget(1 + u32::try_from(seed % 9).unwrap());
            let window = Attributes::new().window(1 + usize::try_from(seed % 4).unwrap());
            let line = lingering((0..20u64).collect(), 3, &log).checked("source");
            let line = line.async_boundary().with_attributes(window).checked("boundary").jitter(seed);
            let line = line.buffer(2, OverflowStrategy::Backpressure).map_async(2, |x| async move {
                pause(1).await;
                x
            });
            let line = line
                .map(move |x| if ending == 3 && x == 5 { panic!("map") } else { x })
                .checked("map")
                .concat(lingering((0..3).collect(), 2, &log))
                .merge(Source::from_iter(0..3u64).map(move |x| {
                    assert!(ending != 6 || x < 2, "merge");
                    x
                }))
                .checked("merge");
            let line = line.kill_switch(Keep::right).take(if ending == 1 { 4 } else { 1000 });
            let (switch, mut done) = line.to_keep(Sink::collect(), Keep::both).run_on(&m).unwrap();
            for _ in 0..20 + seed {
                if matches!(ending, 2 | 4 | 5) {
                    rt.step();
                }
            }
            match ending {
                2 => switch.abort(ErrorKind::NoElement { stage: "kill" }),
                4 => m.abort(),
                5 => assert!(rt.poll_once(m.shutdown()).is_pending() || m.running() == 0),
                _ => {}
            }
            rt.run();
            let what = format!("ending {ending}, seed {seed}");
            let end = done.try_get().unwrap_or_else(|| panic!("{what}: not ended"));
            match ending {
                0 | 1 | 5 => assert!(end.is_ok(), "{what}"),
                3 | 6 => assert!(matches!(end.unwrap_err().kind(), ErrorKind::Panicked { .. }), "{what}"),
                _ => {}
            }
            assert_eq!((rt.live_tasks(), m.running()), (0, 0), "{what}");
            assert_eq!((log.opened(), log.dropped()), (2, 2), "{what}");
            assert!(log.closed() == 2 || ending == 4, "{what}: closed {}", log.closed());
        }
    }
}

/// A blueprint that cannot be built.
struct Broken;

impl Blueprint for Broken {
    type Out = u64;
    type Mat = ();
    type Stage = ProbeStage<u64>;

    fn build(self, _: &Materializer) -> Built<ProbeStage<u64>, ()> {
        Err(ErrorKind::NoElement { stage: "broken" }.into())
    }
}

#[test]
fn a_failed_build_starts_nothing_and_leaves_nothing() {
    let log = LingerLog::new();
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let line = lingering(vec![1u64], 1, &log).async_boundary().merge(Source::from_blueprint(Broken));
    assert!(line.run_with_on(Sink::collect(), &m).is_err());
    assert!(!rt.step(), "nothing was spawned");
    assert_eq!((log.opened(), log.dropped(), m.running()), (1, 1, 0));
    // Built at run time it fails the stream instead.
    let line = Source::empty::<u64>().concat_lazy(|| Source::from_blueprint(Broken)).recover(|_| Some(9));
    let done = line.run_with_on(Sink::collect(), &m).unwrap();
    assert_eq!(rt.outcome(done).unwrap(), [9]);
}

#[test]
fn demand_is_never_ahead_through_a_line_of_operators() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let made = Arc::new(AtomicU64::new(0));
    let count = made.clone();
    let line = Source::from_iter(0..1000u64).inspect(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let line = line.filter(|x| x % 2 == 0).boxed().map_concat(|x| [x, x]).scan(0, |_, x| x).checked("scan");
    let line = line.map_async(4, |x| async move { x }).checked("map_async").take(4);
    let done = line.run_with_on(Sink::collect(), &m).unwrap();
    assert_eq!(rt.outcome(done).unwrap(), [0, 0, 0, 2]);
    assert_eq!(made.load(Ordering::Relaxed), 3, "0 and 2, and 1 that was filtered");
}

/// A boundary's window is strict, local chunks included.
#[test]
fn a_boundary_runs_no_further_ahead_than_its_window() {
    for window in [1, 2, 3, 5, 16, 64] {
        for seed in 0..20 {
            let mut rt = TestRuntime::new(seed);
            let (made, eaten, most) =
                (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let (m, e, o) = (made.clone(), eaten.clone(), most.clone());
            let line = Source::from_iter(0..200u64).inspect(move |_| {
                let ahead = m.fetch_add(1, Ordering::Relaxed) + 1 - e.load(Ordering::Relaxed);
                o.fetch_max(ahead, Ordering::Relaxed);
            });
            let line =
                line.async_boundary().with_attributes(Attributes::new().window(window)).checked("boundary");
            let eat = move |_| {
                let eaten = eaten.clone();
                async move {
                    pause(1).await;
                    eaten.fetch_add(1, Ordering::Relaxed);
                }
            };
            let done = line.run_with_on(Sink::foreach_async(1, eat), &rt.materializer()).unwrap();
            rt.outcome(done).unwrap();
            // The consumer has one element in its hands that counts as not yet eaten.
            let most = most.load(Ordering::Relaxed);
            assert!(most <= window as u64 + 1, "window {window}, seed {seed}: {most} ahead");
        }
    }
}

#[test]
fn idle_streams_are_not_polled() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let mut lines = Vec::new();
    for _ in 0..2_000 {
        let (source, line) = source_probe::<u64>();
        let (other, second) = source_probe::<u64>();
        let line = line
            .map(|x| x + 1)
            .map_async(2, |x| async move { x })
            .buffer(4, OverflowStrategy::DropHead)
            .grouped_within(4, std::time::Duration::from_secs(1))
            .map_concat(|group| group)
            .merge(second)
            .kill_switch(Keep::none)
            .conflate(|a, b| a + b);
        lines.push((source, other, line.run_with_on(sink_probe(), &m).unwrap()));
    }
    rt.run();
    let polls = rt.polls();
    assert!(polls <= 4_000, "{polls} polls to fall idle");
    let (_, other, probe) = &lines[1000];
    probe.request(1);
    other.push(1);
    rt.run();
    assert_eq!(probe.take(), [1]);
    assert!(rt.polls() - polls < 8, "{} polls for one element", rt.polls() - polls);
}

#[test]
fn a_cancellation_reaches_every_source_with_its_cause() {
    let failure = StreamError::from(ErrorKind::NoElement { stage: "test" });
    for cause in [CancelCause::Finished, CancelCause::Failure(failure.clone())] {
        for cut in [false, true] {
            let mut rt = TestRuntime::new(1);
            let m = rt.materializer();
            let (a, first) = source_probe::<u64>();
            let (b, second) = source_probe::<u64>();
            let (c, third) = source_probe::<u64>();
            let line = first.map_async(2, |x| async move { x }).merge(second).checked("merge");
            let line = line.buffer(3, OverflowStrategy::Backpressure).zip(third).grouped(3);
            let line = line.sliding(2, 1).recover(|_| None);
            let line = if cut { line.async_boundary().boxed() } else { line.boxed() };
            let probe = line.run_with_on(sink_probe(), &m).unwrap();
            probe.request(1);
            a.push(1);
            rt.run();
            probe.cancel(cause.clone());
            rt.run();
            for (name, source) in [("a", &a), ("b", &b), ("c", &c)] {
                match (&cause, source.cancelled()) {
                    (CancelCause::Finished, Some(CancelCause::Finished)) => {}
                    (CancelCause::Failure(_), Some(CancelCause::Failure(e))) if e.same(&failure) => {}
                    (_, seen) => panic!("{name}, cut {cut}: {seen:?}"),
                }
                assert!(source.dropped());
            }
            assert_eq!(rt.live_tasks(), 0);
        }
    }
}

#[test]
fn what_crosses_threads_and_what_can_be_cloned() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync + Clone>() {}
    sent::<BoxSource<u64>>();
    sent::<BoxFlow<u64, u64>>();
    sent::<BoxSink<u64, ()>>();
    shared::<SharedSource<u64>>();
    shared::<KillSwitch>();
    shared::<Rate>();
    shared::<Supervision>();
    shared::<Attributes>();
    shared::<StreamError>();
    shared::<Materializer>();
    let flow = Flow::<u64>::new().map_async(2, |x| async move { x }).buffer(2, OverflowStrategy::DropHead);
    let flow = flow.throttle(Rate::new(1, std::time::Duration::from_secs(1))).recover(|_| Some(1));
    let _twice = (flow.clone(), flow.merge(Source::from_iter(0..3u64)).zip(Source::from_iter(0..3)).clone());
}
