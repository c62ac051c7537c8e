//! `buffer` and other operators that run ahead of demand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::same_everywhere;
use datum_core::prelude::*;
use datum_testkit::{
    CheckedOps, JitterOps, Rng, SinkProbe, SourceProbe, TestRuntime, pause, sink_probe, sleep, source_probe,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_buffer_loses_nothing_while_it_backpressures() {
    let input: Vec<u64> = (0..100).collect();
    for n in [1, 2, 16, 1000] {
        same_everywhere(&input, || Flow::new().buffer(n, OverflowStrategy::Backpressure), Ok(&input));
    }
}

/// Fills a buffer of `n` with 0..10 while nobody asks, then asks for all.
fn overflown(n: usize, strategy: OverflowStrategy) -> (Vec<u64>, u64, u64) {
    let mut rt = TestRuntime::new(1);
    let lost = Arc::new(AtomicU64::new(0));
    let count = lost.clone();
    let (source, line) = source_probe::<u64>();
    let overflow = strategy.on_drop(move |n| {
        count.fetch_add(n, Ordering::Relaxed);
    });
    let line = line.checked("source").buffer(n, overflow).checked("buffer");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    (0..10).for_each(|x| source.push(x));
    rt.run();
    let taken = source.taken();
    source.complete();
    probe.request(100);
    rt.run();
    assert!(matches!(probe.end(), Some(Ok(()))), "{strategy:?}");
    (probe.take(), lost.load(Ordering::Relaxed), taken)
}

/// From a public report: what each strategy drops, and that every drop is counted.
#[test]
fn each_strategy_drops_what_it_says_and_counts_it() {
    let all: Vec<u64> = (0..10).collect();
    assert_eq!(overflown(4, OverflowStrategy::Backpressure), (all.clone(), 0, 4));
    assert_eq!(overflown(4, OverflowStrategy::DropHead), (vec![6, 7, 8, 9], 6, 10));
    assert_eq!(overflown(4, OverflowStrategy::DropTail), (vec![0, 1, 2, 9], 6, 10));
    assert_eq!(overflown(4, OverflowStrategy::DropBuffer), (vec![8, 9], 8, 10));
    assert_eq!(overflown(4, OverflowStrategy::DropNew), (vec![0, 1, 2, 3], 6, 10));
    assert_eq!(overflown(1, OverflowStrategy::DropHead), (vec![9], 9, 10));
    assert_eq!(overflown(1, OverflowStrategy::DropTail), (vec![9], 9, 10));
    assert_eq!(overflown(1, OverflowStrategy::DropBuffer), (vec![9], 9, 10));
    assert_eq!(overflown(1, OverflowStrategy::DropNew), (vec![0], 9, 10));
    assert_eq!(overflown(10, OverflowStrategy::DropHead), (all, 0, 10));
}

#[test]
fn an_overflow_fails_where_it_must() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.checked("source").buffer(4, OverflowStrategy::Fail).checked("buffer");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    (0..4).for_each(|x| source.push(x));
    rt.run();
    assert!(probe.end().is_none());
    source.push(4);
    rt.run();
    let error = probe.end().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BufferOverflow { stage: "buffer", capacity: 4 }));
    assert!(source.cancelled().is_some() && source.dropped());
}

#[test]
fn a_failure_drops_what_a_buffer_holds() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.buffer(4, OverflowStrategy::Backpressure).checked("buffer");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    (0..3).for_each(|x| source.push(x));
    rt.run();
    let error = source.fail_some();
    rt.run();
    probe.request(9);
    rt.run();
    assert!(probe.take().is_empty());
    assert!(probe.end().unwrap().unwrap_err().same(&error));
}

#[test]
fn a_hook_that_panics_fails_the_stream() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let overflow = OverflowStrategy::DropNew.on_drop(|_| panic!("hook"));
    let probe = line.buffer(1, overflow).run_with_on(sink_probe(), &rt.materializer()).unwrap();
    (0..3).for_each(|x| source.push(x));
    rt.run();
    let error = probe.end().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Panicked { stage: "buffer", .. }));
    assert!(source.cancelled().is_some());
}

#[test]
fn conflate_merges_while_nobody_asks() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.checked("source").conflate(|a, b| a + b).checked("conflate");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    (1..=100).for_each(|x| source.push(x));
    rt.run();
    assert_eq!(source.taken(), 100, "never backpressures");
    probe.request(1);
    rt.run();
    assert_eq!(probe.take(), [5050]);
    probe.request(2);
    rt.run();
    source.push(7);
    rt.run();
    assert_eq!(probe.take(), [7], "passes straight through to demand");
    source.push(8);
    rt.run();
    source.push(9);
    source.push(10);
    source.complete();
    rt.run();
    assert_eq!(probe.take(), [8]);
    assert!(probe.end().is_none(), "the last aggregate waits");
    probe.request(1);
    rt.run();
    assert_eq!(probe.take(), [19]);
    assert!(matches!(probe.end(), Some(Ok(()))));
}

#[test]
fn conflate_neither_loses_nor_reorders_at_random_rates() {
    let input: Vec<u64> = (0..300).collect();
    for seed in 0..50 {
        let mut rt = TestRuntime::new(seed);
        let m = rt.materializer_with_budget(1 + u32::try_from(seed % 7).unwrap());
        let mut rng = Rng::new(seed);
        let append = |mut all: Vec<u64>, x| {
            all.push(x);
            all
        };
        let line = Source::from_iter(input.clone()).jitter(seed).conflate_with_seed(|x| vec![x], append);
        let line = line.checked("conflate").map_async(1, move |x| {
            let wait = pause(rng.below(6));
            async move {
                wait.await;
                x
            }
        });
        let done = line.jitter(seed + 1).run_with_on(Sink::collect(), &m).unwrap();
        assert_eq!(rt.outcome(done).unwrap().concat(), input, "seed {seed}");
    }
}

/// A conflating stage before one that is busy: what arrives meanwhile is merged, and only then.
#[test]
fn conflate_merges_behind_a_busy_stage() {
    let mut rt = TestRuntime::new(1);
    let clock = rt.clock().clone();
    let (source, line) = source_probe::<u64>();
    let line = line.conflate(|a, b| a + b).checked("conflate").map_async(1, move |x| {
        let nap = sleep(&clock, 600 * MS);
        async move {
            nap.await;
            x
        }
    });
    let mut done = line.run_with_on(Sink::collect(), &rt.materializer()).unwrap();
    source.push(1);
    rt.advance(50 * MS);
    (0..100).for_each(|_| source.push(1));
    rt.advance(300 * MS);
    assert_eq!(source.taken(), 101, "merged while the stage was busy");
    source.complete();
    rt.run();
    assert_eq!(done.try_get().unwrap().unwrap(), [1, 100]);
}

#[test]
fn throttle_keeps_its_rate_at_any_size() {
    let pass = |rate: Rate, n: u64| {
        let mut rt = TestRuntime::new(1);
        let line = Source::from_iter(0..n).checked("source").throttle(rate).checked("throttle");
        let done = line.run_with_on(Sink::collect(), &rt.materializer()).unwrap();
        assert_eq!(rt.outcome(done).unwrap(), (0..n).collect::<Vec<_>>());
        rt.clock().now()
    };
    let second = Duration::from_secs(1);
    assert_eq!(pass(Rate::new(1, 10 * MS).burst(1), 10), 90 * MS);
    assert_eq!(pass(Rate::new(1, 10 * MS).burst(0), 10), 90 * MS, "a burst of 0 counts as 1");
    assert_eq!(pass(Rate::new(1, 10 * MS).burst(5), 10), 50 * MS, "the bucket starts full");
    assert_eq!(pass(Rate::new(1, 10 * MS), 10), Duration::ZERO, "100 ms of tokens by default");
    assert_eq!(pass(Rate::new(1, 10 * MS), 11), 10 * MS);
    assert_eq!(pass(Rate::new(3, second).burst(1), 4), second);
    assert_eq!(pass(Rate::new(1_000_000_000, second), 100_000), Duration::ZERO);
    assert_eq!(pass(Rate::new(1_000_000_000, second).burst(1), 1_001), Duration::from_micros(1));
    assert_eq!(pass(Rate::new(u64::MAX, Duration::from_nanos(1)).burst(1), 1000), Duration::from_nanos(1));
    let days = Duration::from_secs(100 * 24 * 3600);
    assert_eq!(pass(Rate::new(1, days), 3), 2 * days);
}

#[test]
fn throttle_saves_at_most_a_burst_while_idle_and_asks_only_when_it_may() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.throttle(Rate::new(1, 10 * MS).burst(3)).checked("throttle");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    probe.request(100);
    (0..4).for_each(|x| source.push(x));
    rt.run_ready();
    assert_eq!(probe.take(), [0, 1, 2]);
    assert_eq!(source.taken(), 3, "nothing is held");
    rt.advance(9 * MS);
    assert!(probe.take().is_empty());
    rt.advance(MS);
    assert_eq!(probe.take(), [3]);
    rt.advance(1000 * MS);
    (4..10).for_each(|x| source.push(x));
    rt.run_ready();
    assert_eq!(probe.take(), [4, 5, 6], "no more than a burst was saved");
    source.fail_some();
    rt.run_ready();
    assert!(probe.end().unwrap().is_err(), "a failure does not wait for a token");
}

#[test]
fn an_enforcing_throttle_fails_at_the_first_element_too_many() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.throttle(Rate::new(1, 200 * MS).burst(5).enforcing()).checked("throttle");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    probe.request(100);
    (1..=5).for_each(|x| source.push(x));
    rt.run_ready();
    assert_eq!(probe.take(), [1, 2, 3, 4, 5]);
    rt.advance(200 * MS);
    source.push(6);
    rt.run_ready();
    assert_eq!(probe.take(), [6]);
    source.push(7);
    rt.run_ready();
    let error = probe.end().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::RateExceeded { elements: 1, .. }), "{error}");
    assert!(source.cancelled().is_some());
}

/// From a public report: an overflowing buffer before a throttle fails the stream.
#[test]
fn a_failing_buffer_before_a_throttle_overflows() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.buffer(10, OverflowStrategy::Fail).throttle(Rate::new(1, Duration::from_secs(1)));
    let mut done = line.run_with_on(Sink::collect(), &rt.materializer()).unwrap();
    (0..11).for_each(|x| source.push(x));
    rt.run_ready();
    assert!(done.try_get().is_none(), "one has passed, ten are held");
    source.push(11);
    rt.run_ready();
    let error = done.try_get().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BufferOverflow { capacity: 10, .. }));
}

/// A line of `grouped_within(3, 100 ms)` played by hand.
fn groups(rt: &TestRuntime) -> (SourceProbe<u64>, SinkProbe<Vec<u64>>) {
    let (source, line) = source_probe::<u64>();
    let line = line.checked("source").grouped_within(3, 100 * MS).checked("grouped_within");
    (source, line.run_with_on(sink_probe(), &rt.materializer()).unwrap())
}

#[test]
fn grouped_within_groups_by_size_and_by_time() {
    let mut rt = TestRuntime::new(1);
    let (source, probe) = groups(&rt);
    probe.request(100);
    (1..=4).for_each(|x| source.push(x));
    rt.run_ready();
    assert_eq!(probe.take(), [vec![1, 2, 3]], "full");
    rt.advance(99 * MS);
    assert!(probe.take().is_empty());
    rt.advance(MS);
    assert_eq!(probe.take(), [vec![4]], "time is over");
    rt.advance(1050 * MS);
    assert!(probe.take().is_empty(), "no empty groups");
    source.push(5);
    rt.advance(49 * MS);
    assert!(probe.take().is_empty());
    rt.advance(MS);
    assert_eq!(probe.take(), [vec![5]], "at the end of the running step");
    // A full group starts the count anew.
    rt.advance(60 * MS);
    (6..=8).for_each(|x| source.push(x));
    rt.run_ready();
    assert_eq!(probe.take(), [vec![6, 7, 8]]);
    source.push(9);
    rt.advance(99 * MS);
    assert!(probe.take().is_empty());
    rt.advance(MS);
    assert_eq!(probe.take(), [vec![9]]);
    source.push(10);
    source.complete();
    rt.run_ready();
    assert_eq!(probe.take(), [vec![10]], "the rest at the end");
    assert!(matches!(probe.end(), Some(Ok(()))));
}

/// From a public report: the timer and the end at the same moment, and an end right after a full group.
#[test]
fn grouped_within_gives_no_empty_group_and_the_rest_once() {
    let mut rt = TestRuntime::new(1);
    let (source, probe) = groups(&rt);
    probe.request(100);
    source.push(1);
    rt.advance(99 * MS);
    source.complete();
    rt.clock().advance(MS);
    rt.run();
    assert_eq!(probe.take(), [vec![1]]);
    assert!(matches!(probe.end(), Some(Ok(()))));
    let (source, probe) = groups(&rt);
    probe.request(100);
    (1..=3).for_each(|x| source.push(x));
    rt.run_ready();
    source.complete();
    rt.run();
    assert_eq!(probe.take(), [vec![1, 2, 3]]);
    assert!(matches!(probe.end(), Some(Ok(()))));
}

#[test]
fn grouped_within_collects_one_group_ahead_and_then_waits() {
    let mut rt = TestRuntime::new(1);
    let (source, probe) = groups(&rt);
    (1..=9).for_each(|x| source.push(x));
    rt.run_ready();
    assert_eq!(source.taken(), 3);
    probe.request(1);
    rt.run_ready();
    assert_eq!(probe.take(), [vec![1, 2, 3]]);
    assert_eq!(source.taken(), 6);
    // Closed by time while nobody asks: what comes later belongs to the next group.
    let (source, probe) = groups(&rt);
    source.push(1);
    rt.advance(100 * MS);
    source.push(2);
    rt.run_ready();
    probe.request(2);
    rt.run();
    assert_eq!(probe.take(), [vec![1], vec![2]]);
    let error = source.fail_some();
    rt.run();
    assert!(probe.end().unwrap().unwrap_err().same(&error));
}

#[test]
fn grouped_within_loses_nothing() {
    let input: Vec<u64> = (0..100).collect();
    let by_size: Vec<Vec<u64>> = input.chunks(7).map(<[u64]>::to_vec).collect();
    same_everywhere(&input, || Flow::new().grouped_within(7, Duration::from_secs(9)), Ok(&by_size));
}

fn timed_out(end: Option<Result<(), StreamError>>, name: &str) -> bool {
    matches!(end, Some(Err(e)) if matches!(e.kind(), ErrorKind::Timeout { stage, .. } if *stage == name))
}

#[test]
fn idle_timeout_counts_from_the_last_element() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.idle_timeout(50 * MS).checked("idle");
    // A run that begins late is not punished.
    rt.advance(200 * MS);
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    probe.request(100);
    for x in 0..5 {
        rt.advance(40 * MS);
        assert!(probe.end().is_none());
        source.push(x);
    }
    rt.advance(49 * MS);
    assert!(probe.end().is_none());
    rt.advance(MS);
    assert!(timed_out(probe.end(), "idle_timeout"));
    assert!(source.cancelled().is_some() && source.dropped());
}

#[test]
fn initial_completion_and_backpressure_timeouts() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let (source, line) = source_probe::<u64>();
    let initial = line.initial_timeout(50 * MS).run_with_on(sink_probe(), &m).unwrap();
    let (other, line) = source_probe::<u64>();
    let prompt = line.initial_timeout(50 * MS).run_with_on(sink_probe(), &m).unwrap();
    let (_third, line) = source_probe::<u64>();
    let completion = line.completion_timeout(80 * MS).run_with_on(sink_probe(), &m).unwrap();
    initial.request(1);
    prompt.request(1);
    other.push(1);
    rt.advance(50 * MS);
    assert!(timed_out(initial.end(), "initial_timeout"));
    assert!(source.cancelled().is_some());
    assert!(completion.end().is_none());
    rt.advance(1000 * MS);
    assert!(timed_out(completion.end(), "completion_timeout"));
    assert!(prompt.end().is_none());
    let (source, line) = source_probe::<u64>();
    let probe =
        line.backpressure_timeout(50 * MS).checked("backpressure").run_with_on(sink_probe(), &m).unwrap();
    probe.request(2);
    rt.advance(1000 * MS);
    assert!(probe.end().is_none(), "a slow producer is not the consumer's fault");
    source.push(1);
    source.push(2);
    rt.advance(49 * MS);
    assert!(probe.end().is_none());
    rt.advance(MS);
    assert!(timed_out(probe.end(), "backpressure_timeout"));
}
