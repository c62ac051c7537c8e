//! Operators that end a stream or watch its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use datum_core::stage::CancelCause;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime, pause, sink_probe, source_probe};

fn some_error() -> StreamError {
    ErrorKind::NoElement { stage: "test" }.into()
}

#[test]
fn a_kill_switch_completes_or_fails_with_and_without_demand() {
    for demand in [false, true] {
        for abort in [false, true] {
            let mut rt = TestRuntime::new(1);
            let (source, line) = source_probe::<u64>();
            let line = line.checked("source").kill_switch(Keep::right).checked("switch");
            let (switch, probe) = line.to_keep(sink_probe(), Keep::both).run_on(&rt.materializer()).unwrap();
            if demand {
                probe.request(2);
            }
            source.push(1);
            rt.run();
            assert!(probe.end().is_none());
            let error = some_error();
            if abort {
                switch.abort(error.clone());
                switch.shutdown();
            } else {
                switch.shutdown();
                switch.abort(error.clone());
            }
            rt.run();
            let end = probe.end().expect("seen at once");
            if abort {
                assert!(end.unwrap_err().same(&error));
                assert!(matches!(source.cancelled(), Some(CancelCause::Failure(e)) if e.same(&error)));
            } else {
                assert!(end.is_ok());
                assert!(matches!(source.cancelled(), Some(CancelCause::StageCompleted)));
            }
            assert_eq!(probe.take().len(), usize::from(demand));
        }
    }
}

#[test]
fn a_shared_switch_ends_all_its_streams_also_later_ones() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let (switch, other) = (KillSwitch::new(), KillSwitch::new());
    let mut ends = Vec::new();
    for _ in 0..50 {
        let (source, line) = source_probe::<u64>();
        let line = line.killed_by(&other).killed_by(&switch);
        ends.push((source, line.run_with_on(sink_probe(), &m).unwrap()));
    }
    rt.run();
    other.abort(some_error());
    assert!(!switch.is_turned());
    switch.shutdown();
    rt.run();
    // Two independent switches on one line: the one further down was asked first.
    assert!(ends.iter().all(|(source, probe)| probe.end().is_some() && source.dropped()));
    let late = Source::from_iter(0..).killed_by(&switch).run_with_on(Sink::collect(), &m).unwrap();
    assert_eq!(rt.outcome(late).unwrap(), Vec::<u64>::new());
}

/// A kill switch, and a failure, behind a stage that is busy with earlier elements.
#[test]
fn a_busy_stage_hides_neither_a_failure_nor_a_kill() {
    for kill in [false, true] {
        let mut rt = TestRuntime::new(1);
        let (source, line) = source_probe::<u64>();
        let line = line.kill_switch(Keep::right).map(|x| x).map_async(1, |x| async move {
            std::future::pending::<()>().await;
            x
        });
        let (switch, mut done) =
            line.checked("busy").to_keep(Sink::collect(), Keep::both).run_on(&rt.materializer()).unwrap();
        source.push(1);
        rt.run();
        let error = some_error();
        if kill {
            switch.abort(error.clone());
        } else {
            source.fail(error.clone());
        }
        rt.run_ready();
        assert!(done.try_get().expect("seen at once").unwrap_err().same(&error));
        assert_eq!(rt.live_tasks(), 0);
    }
}

#[test]
fn a_switch_reaches_a_busy_endless_stream() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer_with_budget(8);
    let line = Source::from_iter(0u64..).map_async(2, |x| async move {
        pause(x % 2).await;
        x
    });
    let (switch, mut done) =
        line.kill_switch(Keep::right).to_keep(Sink::collect(), Keep::both).run_on(&m).unwrap();
    for _ in 0..100 {
        rt.step();
    }
    switch.shutdown();
    rt.run();
    let got = done.try_get().unwrap().unwrap();
    assert_eq!(got, (0..got.len() as u64).collect::<Vec<_>>());
}

#[test]
fn recover_turns_a_failure_into_one_last_element_when_asked() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.checked("source").recover(|_| Some(99)).checked("recover");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    source.push(1);
    probe.request(1);
    rt.run();
    source.fail_some();
    rt.run();
    assert_eq!(probe.take(), [1]);
    assert!(probe.end().is_none(), "waits for demand");
    probe.request(1);
    rt.run();
    assert_eq!(probe.take(), [99]);
    assert!(matches!(probe.end(), Some(Ok(()))));
}

#[test]
fn recover_may_let_a_failure_pass_and_its_own_panic_fails() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let failing = || Source::from_iter(0..3u64).map(|x| if x == 1 { panic!("one") } else { x });
    let passed = failing().recover(|_| None).run_with_on(Sink::collect(), &m).unwrap();
    let error = rt.outcome(passed).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Panicked { stage: "map", .. }));
    let broken = failing().recover(|_| panic!("again")).run_with_on(Sink::collect(), &m).unwrap();
    let error = rt.outcome(broken).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Panicked { stage: "recover", .. }));
    let fine = Source::from_iter(0..3u64).recover(|_| panic!("not called")).run_with_on(Sink::collect(), &m);
    assert_eq!(rt.outcome(fine.unwrap()).unwrap(), [0, 1, 2]);
    for seed in 0..50 {
        let mut rt = TestRuntime::new(seed);
        let m = rt.materializer_with_budget(1 + u32::try_from(seed % 5).unwrap());
        let line = failing().jitter(seed).recover(|_| Some(7)).checked("recover").jitter(seed + 1);
        assert_eq!(rt.outcome(line.run_with_on(Sink::collect(), &m).unwrap()).unwrap(), [0, 7]);
        // A boundary may fail in the very call that gives its last element.
        let line = failing().async_boundary().recover(|_| Some(7)).checked("recover").jitter(seed + 1);
        assert_eq!(rt.outcome(line.run_with_on(Sink::collect(), &m).unwrap()).unwrap(), [0, 7]);
    }
}

#[test]
fn termination_is_watched_in_all_endings() {
    for ending in 0..5 {
        let mut rt = TestRuntime::new(1);
        let m = rt.materializer();
        let (source, line) = source_probe::<u64>();
        let line = line.watch_termination(Keep::right).checked("watch");
        let (mut watched, probe) = line.to_keep(sink_probe(), Keep::both).run_on(&m).unwrap();
        probe.request(1);
        source.push(1);
        rt.run();
        assert!(watched.try_get().is_none());
        let error = some_error();
        match ending {
            0 => source.complete(),
            1 => probe.cancel(CancelCause::Finished),
            2 => source.fail(error.clone()),
            3 => probe.cancel(CancelCause::Failure(error.clone())),
            _ => m.abort(),
        }
        rt.run();
        let end = watched.try_get().expect("resolved");
        match ending {
            0 | 1 => assert!(end.is_ok(), "ending {ending}"),
            2 | 3 => assert!(end.unwrap_err().same(&error), "ending {ending}"),
            _ => assert!(matches!(end.unwrap_err().kind(), ErrorKind::Aborted)),
        }
    }
}

/// From a public report: the failure of one side of a zip is what the watcher of the other side sees, not a clean end.
#[test]
fn a_watcher_beside_a_failing_input_sees_the_failure() {
    for cut in [false, true] {
        let mut rt = TestRuntime::new(1);
        let (source, slow) = source_probe::<u64>();
        let watched = slow.watch_termination(Keep::right);
        let error = some_error();
        let failing = Source::failed::<u64>(error.clone());
        let m = rt.materializer();
        let (mut watched, mut done) = if cut {
            watched.async_boundary().zip(failing).to_keep(Sink::collect(), Keep::both).run_on(&m).unwrap()
        } else {
            watched.zip(failing).to_keep(Sink::collect(), Keep::both).run_on(&m).unwrap()
        };
        rt.run();
        assert!(done.try_get().unwrap().unwrap_err().same(&error));
        assert!(watched.try_get().unwrap().unwrap_err().same(&error), "cut {cut}");
        assert!(source.dropped());
    }
}

#[test]
fn foreach_async_runs_every_element_and_waits_for_the_last() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    for n in [1, 3, 100] {
        for seed in 0..20 {
            let mut rt = TestRuntime::new(seed);
            let m = rt.materializer_with_budget(1 + u32::try_from(seed % 5).unwrap());
            let (sum, running) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let (total, now) = (sum.clone(), running.clone());
            let write = move |x: u64| {
                assert!(now.fetch_add(1, Ordering::Relaxed) < n);
                let (total, now) = (total.clone(), now.clone());
                async move {
                    pause(x % 4).await;
                    total.fetch_add(x, Ordering::Relaxed);
                    now.fetch_sub(1, Ordering::Relaxed);
                }
            };
            let sink = Sink::foreach_async(usize::try_from(n).unwrap(), write);
            let done = Source::from_iter(0..100u64).jitter(seed).run_with_on(sink, &m).unwrap();
            rt.outcome(done).unwrap();
            assert_eq!((sum.load(Ordering::Relaxed), running.load(Ordering::Relaxed)), (4950, 0));
        }
    }
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let write = |x: u64| async move {
        if x == 1 {
            std::future::pending::<()>().await;
        }
        if x == 2 { Err("two") } else { Ok(()) }
    };
    let mut done = line.run_with_on(Sink::try_foreach_async(4, write), &rt.materializer()).unwrap();
    (0..3).for_each(|x| source.push(x));
    rt.run();
    assert!(done.try_get().unwrap().is_err(), "fails at once, ahead of the one that hangs");
    assert!(matches!(source.cancelled(), Some(CancelCause::Failure(_))));
}
