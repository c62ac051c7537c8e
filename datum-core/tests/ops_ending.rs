//! Operators that end a stream or watch its end.

use datum_core::prelude::*;
use datum_core::stage::CancelCause;
use datum_testkit::{CheckedOps, TestRuntime, pause, sink_probe, source_probe};

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
