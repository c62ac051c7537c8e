//! `map_async` and its kin: order, parallelism, failures, running ahead.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{panicked, same_everywhere};
use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, Rng, TestRuntime, pause, sink_probe, sleep, source_probe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A different pause for each element, the earlier ones often longer.
async fn paused(x: u64) -> u64 {
    pause((x * 7) % 5).await;
    x
}

#[test]
fn values_keep_the_order_of_the_elements() {
    let input: Vec<u64> = (0..40).collect();
    for n in [1, 2, 3, 8, 100] {
        same_everywhere(&input, || Flow::new().map_async(n, paused), Ok(&input));
        same_everywhere(&input, || Flow::new().map_async(n, |x| async move { x }), Ok(&input));
    }
    same_everywhere::<u64, _>(&[], || Flow::new().map_async(2, paused), Ok(&[]));
}

#[test]
fn unordered_values_come_as_they_are_done() {
    let mut rt = TestRuntime::new(1);
    let clock = rt.clock().clone();
    let line = Source::from_iter([30u32, 10, 20]).map_async_unordered(3, move |ms| {
        let nap = sleep(&clock, ms * MS);
        async move {
            nap.await;
            ms
        }
    });
    let done = line.checked("unordered").run_with_on(Sink::collect(), &rt.materializer()).unwrap();
    assert_eq!(rt.outcome(done).unwrap(), [10, 20, 30]);
    let input: Vec<u64> = (0..40).collect();
    for (n, seed) in [(1, 1), (2, 2), (5, 3), (64, 4)] {
        let mut rt = TestRuntime::new(seed);
        let line = Source::from_iter(0..40).jitter(seed).map_async_unordered(n, paused).checked("unordered");
        let mut got = {
            let done = line.jitter(seed + 1).run_with_on(Sink::collect(), &rt.materializer_with_budget(2));
            rt.outcome(done.unwrap()).unwrap()
        };
        got.sort();
        assert_eq!(got, input);
    }
}

#[test]
fn never_more_than_the_parallelism_runs() {
    for (n, ordered) in [(1, true), (2, true), (8, true), (2, false), (8, false)] {
        let (running, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (r, m) = (running.clone(), most.clone());
        let f = move |x: u64| {
            m.fetch_max(r.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            let r = r.clone();
            async move {
                pause(1 + x % 4).await;
                r.fetch_sub(1, Ordering::Relaxed);
                x
            }
        };
        let mut rt = TestRuntime::new(n as u64);
        let source = Source::from_iter(0..10_000u64);
        let m = rt.materializer();
        let done = if ordered {
            source.map_async(n, f).run_with_on(Sink::collect(), &m)
        } else {
            source.map_async_unordered(n, f).run_with_on(Sink::collect(), &m)
        };
        assert_eq!(rt.outcome(done.unwrap()).unwrap().len(), 10_000);
        assert_eq!(most.load(Ordering::Relaxed), n as u64);
        assert_eq!(running.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn as_many_futures_start_as_demand_and_parallelism_allow() {
    let mut rt = TestRuntime::new(1);
    let (started, clock) = (Arc::new(AtomicU64::new(0)), rt.clock().clone());
    let count = started.clone();
    let line = Source::from_iter(0..100u64).map_async(8, move |x| {
        count.fetch_add(1, Ordering::Relaxed);
        let nap = sleep(&clock, MS);
        async move {
            nap.await;
            x
        }
    });
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    probe.request(1);
    rt.run();
    assert_eq!((probe.take(), started.load(Ordering::Relaxed)), (vec![0], 9));
    probe.request(2);
    rt.run();
    assert_eq!((probe.take(), started.load(Ordering::Relaxed)), (vec![1, 2], 11));
}

#[test]
fn a_failure_is_seen_at_once_ahead_of_earlier_futures() {
    for ordered in [true, false] {
        let mut rt = TestRuntime::new(1);
        let f = |x: u64| async move {
            match x {
                1 | 2 => std::future::pending().await,
                3 => Err(std::io::Error::other("three")),
                _ => Ok(x),
            }
        };
        let (source, line) = source_probe::<u64>();
        let line = line.checked("source");
        let m = rt.materializer();
        let mut done = if ordered {
            line.try_map_async(4, f).checked("map_async").run_with_on(Sink::collect(), &m)
        } else {
            line.try_map_async_unordered(4, f).checked("map_async").run_with_on(Sink::collect(), &m)
        }
        .unwrap();
        (1..=3).for_each(|x| source.push(x));
        rt.run();
        let error = done.try_get().unwrap().unwrap_err();
        assert_eq!(error.downcast_ref::<std::io::Error>().unwrap().to_string(), "three");
        assert!(
            matches!(source.cancelled(), Some(datum_core::stage::CancelCause::Failure(e)) if e.same(&error))
        );
    }
    same_everywhere::<u64, _>(
        &[1],
        || Flow::new().map_async(2, |_| async { panic!("future") }),
        Err(panicked),
    );
    let closure = |x: u64| {
        assert!(x < 1, "closure");
        std::future::ready(x)
    };
    same_everywhere::<u64, _>(&[1], || Flow::new().map_async(2, closure), Err(panicked));
}

/// From a public report: whatever the interleaving, a failed future fails the stream.
#[test]
fn no_failed_future_is_ever_lost() {
    for seed in 0..100 {
        let mut rt = TestRuntime::new(seed);
        let mut rng = Rng::new(seed);
        let line = Source::from_iter(["a", "b", "c"]).try_map_async(5, move |x| {
            let wait = pause(rng.below(4));
            async move {
                wait.await;
                if x == "b" { Err("b fails") } else { Ok(x) }
            }
        });
        let done = line.jitter(seed).run_with_on(Sink::fold(0, |n, _| n + 1), &rt.materializer()).unwrap();
        assert!(rt.outcome(done).is_err(), "seed {seed}");
    }
}

#[test]
fn resumed_failures_leave_no_gap_and_no_hang() {
    let resume = || Attributes::new().supervision(Supervision::resume());
    for n in [1, 2, 8] {
        let f = |x: u64| async move {
            pause(x % 3).await;
            if x.is_multiple_of(3) { Err("multiple of three") } else { Ok(x) }
        };
        same_everywhere(
            &[0, 1, 2, 3, 4, 5, 6],
            || Flow::new().try_map_async(n, f).with_attributes(resume()),
            Ok(&[1, 2, 4, 5]),
        );
        same_everywhere(
            &[3, 3, 3, 1, 3, 3, 3],
            || Flow::new().try_map_async_unordered(n, f).with_attributes(resume()),
            Ok(&[1]),
        );
        same_everywhere::<u64, _>(
            &[0, 3, 6],
            || Flow::new().try_map_async(n, f).with_attributes(resume()),
            Ok(&[]),
        );
    }
}

#[test]
fn completes_without_further_demand() {
    for n in [1, 2] {
        let mut rt = TestRuntime::new(1);
        let (source, line) = source_probe::<u64>();
        let line = line.map_async(n, |x| async move { x }).checked("map_async");
        let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
        source.push(1);
        probe.request(1);
        rt.run();
        assert_eq!(probe.take(), [1]);
        source.complete();
        rt.run();
        assert!(matches!(probe.end(), Some(Ok(()))));
    }
}

#[test]
fn futures_are_dropped_on_cancel_failure_and_abort() {
    struct Held(Arc<AtomicU64>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    for ending in 0..3 {
        let held = Arc::new(AtomicU64::new(0));
        let count = held.clone();
        let mut rt = TestRuntime::new(1);
        let (source, line) = source_probe::<u64>();
        let m = rt.materializer();
        let line = line.map_async(4, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            let held = Held(count.clone());
            async move {
                let _held = held;
                std::future::pending::<u64>().await
            }
        });
        let probe = line.checked("map_async").run_with_on(sink_probe(), &m).unwrap();
        (0..10).for_each(|x| source.push(x));
        probe.request(1);
        rt.run();
        assert_eq!(held.load(Ordering::Relaxed), 4);
        match ending {
            0 => probe.cancel(datum_core::stage::CancelCause::Finished),
            1 => drop(source.fail_some()),
            _ => m.abort(),
        }
        rt.run();
        assert_eq!(held.load(Ordering::Relaxed), 0, "ending {ending}");
        assert!(source.dropped());
        assert_eq!(rt.live_tasks(), 0);
    }
}

#[test]
fn only_woken_futures_are_polled() {
    let polls = Arc::new(AtomicU64::new(0));
    let count = polls.clone();
    let mut rt = TestRuntime::new(1);
    let clock = rt.clock().clone();
    let line = Source::from_iter(0..1000u32).map_async(1000, move |x| {
        let (nap, count) = (sleep(&clock, (1000 - x) * MS), count.clone());
        let mut nap = Box::pin(nap);
        std::future::poll_fn(move |cx| {
            count.fetch_add(1, Ordering::Relaxed);
            nap.as_mut().poll(cx)
        })
    });
    let done = line.run_with_on(Sink::fold(0, |n, ()| n + 1), &rt.materializer()).unwrap();
    assert_eq!(rt.outcome(done).unwrap(), 1000);
    assert_eq!(polls.load(Ordering::Relaxed), 2000);
}

#[test]
fn no_parallelism_is_no_line() {
    let rt = TestRuntime::new(1);
    let line = Source::from_iter(0..3).map_async(0, |x| async move { x });
    let error = line.run_with_on(Sink::collect(), &rt.materializer()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { stage: "map_async", .. }));
}

/// A future that waits while slots are free and the upstream has nothing: its wake alone brings the stage back.
#[test]
fn a_waiting_future_wakes_its_stage() {
    for form in 0..3 {
        let mut rt = TestRuntime::new(1);
        let m = rt.materializer();
        let (source, line) = source_probe::<u64>();
        let (clock, done) = (rt.clock().clone(), Arc::new(AtomicU64::new(0)));
        let count = done.clone();
        let f = move |_: u64| {
            let (nap, count) = (sleep(&clock, MS), count.clone());
            async move {
                nap.await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let _running = match form {
            0 => line.map_async(4, f).checked("map_async").run_with_on(Sink::ignore(), &m).unwrap(),
            1 => line.map_async_unordered(4, f).checked("unordered").run_with_on(Sink::ignore(), &m).unwrap(),
            _ => line.run_with_on(Sink::foreach_async(4, f), &m).unwrap(),
        };
        rt.run();
        for n in 1..4 {
            source.push(n);
            rt.run();
            assert_eq!(done.load(Ordering::Relaxed), n, "form {form}");
        }
    }
}
