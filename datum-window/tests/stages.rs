//! Windows as stages: the answer of a naive reading, the contract between all operators, demand, failures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, Rng, TestRuntime, sink_probe, source_probe};
use datum_window::aggregate::Slots;
use datum_window::stages::KeyByOps;
use datum_window::{Aggregates, Millis, Tumbling, TumblingError, Window};

/// Event time, key, value, part of the input.
type Item = (Millis, u8, i64, u32);
/// Start of the window, key, count, sum.
type Got = (Millis, u8, i128, i128);

const SIZE: Millis = 10;
const GRACE: Millis = 2;

fn windows() -> Tumbling {
    Tumbling::of_millis(SIZE).grace_millis(GRACE)
}

fn sums() -> Aggregates<Item, impl Slots<Item> + Clone> {
    Aggregates::<Item>::new().count("n").sum("total", |item| {
        assert!(item.2 != BAD, "bad element");
        item.2
    })
}

/// The value at which user code fails.
const BAD: i64 = i64::MIN;

fn flat(pane: datum_window::Pane<u8, datum_window::Row>) -> Got {
    let int = |name| pane.value.get(name).and_then(datum_window::Value::as_int).unwrap();
    (pane.window.start, pane.key, int("n"), int("total"))
}

/// Which elements belong to their windows, and which are late: one part, nothing published early.
fn naive(items: &[Item]) -> (Vec<Got>, Vec<Item>) {
    let (mut before, mut late) = (Millis::MIN, Vec::new());
    let mut panes: BTreeMap<(Millis, u8), (i128, i128)> = BTreeMap::new();
    for item in items {
        let start = item.0.div_euclid(SIZE) * SIZE;
        if before < start + SIZE + GRACE {
            let pane = panes.entry((start, item.1)).or_default();
            *pane = (pane.0 + 1, pane.1 + i128::from(item.2));
        } else {
            late.push(*item);
        }
        before = before.max(item.0);
    }
    (panes.into_iter().map(|((start, key), (n, total))| (start, key, n, total)).collect(), late)
}

fn random_items(rng: &mut Rng) -> Vec<Item> {
    let below = |rng: &mut Rng, n| i64::try_from(rng.below(n)).unwrap();
    (0..rng.below(60))
        .map(|i| {
            let at = i64::try_from(i).unwrap() * 2 - 40 + below(rng, 30);
            (at, u8::try_from(rng.below(3)).unwrap(), below(rng, 100), 0)
        })
        .collect()
}

#[test]
fn panes_and_late_elements_are_those_of_a_naive_reading() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let items = random_items(&mut rng);
        let (panes, late) = naive(&items);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, mut rt) = (seen.clone(), TestRuntime::new(seed));
        let m = rt.materializer_with_budget([1, 3, 4096][usize::try_from(seed % 3).unwrap()]);
        let done = Source::from_iter(items)
            .checked("source")
            .jitter(seed)
            .key_by(|item| &item.1)
            .window(windows(), |item| item.0)
            .on_late(move |item, _| log.lock().unwrap().push(item))
            .aggregate(sums())
            .checked("panes")
            .map(flat)
            .jitter(seed + 1)
            .run_with_on(Sink::collect(), &m)
            .unwrap();
        assert_eq!(rt.outcome(done).unwrap(), panes, "seed {seed}");
        assert_eq!(*seen.lock().unwrap(), late, "seed {seed}");
        assert_eq!(rt.live_tasks(), 0);
    }
}

/// Two sources merged: each has a watermark of its own, so whichever is faster, nothing is late and the answer is the same.
#[test]
fn parts_of_a_merged_stream_do_not_make_each_other_late() {
    for seed in 0..200 {
        let part = move |part: u32, n: i64| {
            // The first element of each is at the beginning of time: both hold windows open from then on.
            Source::from_iter((0..n).map(move |i| (i * 3, 0, 1, part))).jitter(seed + u64::from(part))
        };
        let mut rt = TestRuntime::new(seed);
        let run = |by_part: bool| {
            let merged = part(0, 40).zip(part(1, 40)).map_concat(|(a, b)| [a, b]);
            let rest = Source::from_iter((40..80).map(|i| (i * 3, 0, 1, 0)));
            let behind = Source::from_iter((40..80).map(|i| (i * 3, 0, 1, 1)));
            let keyed = merged.concat(rest).concat(behind).key_by(|item: &Item| &item.1);
            let windowed = keyed.window(windows(), |item| item.0);
            let windowed = if by_part { windowed.partitioned_by(|item| item.3) } else { windowed };
            windowed.aggregate(sums()).map(flat).run_with_on(Sink::collect(), &rt.materializer()).unwrap()
        };
        let (apart, together) = (run(true), run(false));
        let count = |panes: Vec<Got>| panes.iter().map(|pane| pane.2).sum::<i128>();
        assert_eq!(count(rt.outcome(apart).unwrap()), 160, "seed {seed}");
        assert!(count(rt.outcome(together).unwrap()) < 160, "as one part the second half of part 1 is late");
    }
}

#[test]
fn panes_wait_for_demand_and_upstream_with_them() {
    let mut rt = TestRuntime::new(1);
    let (source, stream) = source_probe::<Item>();
    let probe = stream
        .key_by(|item| &item.1)
        .window(windows(), |item| item.0)
        .aggregate(sums())
        .map(flat)
        .run_with_on(sink_probe(), &rt.materializer())
        .unwrap();
    for item in [(0, 1, 5, 0), (1, 2, 6, 0), (12, 1, 7, 0), (40, 1, 8, 0)] {
        source.push(item);
    }
    rt.run();
    assert_eq!(source.taken(), 0, "nobody asked");
    probe.request(1);
    rt.run();
    assert_eq!((probe.take(), source.taken()), (vec![(0, 1, 1, 5)], 3), "the third closes the first window");
    probe.request(1);
    rt.run();
    assert_eq!((probe.take(), source.taken()), (vec![(0, 2, 1, 6)], 3));
    probe.request(5);
    rt.run();
    assert_eq!((probe.take(), source.taken()), (vec![(10, 1, 1, 7)], 4));
    source.complete();
    rt.run();
    assert_eq!(probe.take(), [(40, 1, 1, 8)], "the end closes what is open");
    assert!(probe.end().unwrap().is_ok());
}

#[test]
fn a_failure_drops_what_is_open_and_a_cancellation_reaches_upstream() {
    let mut rt = TestRuntime::new(1);
    let (source, stream) = source_probe::<Item>();
    let done = stream
        .key_by(|item| &item.1)
        .window(windows(), |item| item.0)
        .aggregate(sums())
        .run_with_on(Sink::collect(), &rt.materializer())
        .unwrap();
    source.push((0, 1, 5, 0));
    let error = source.fail_some();
    assert_eq!(rt.outcome(done).unwrap_err().to_string(), error.to_string());

    let (source, stream) = source_probe::<Item>();
    let done = stream
        .key_by(|item| &item.1)
        .window(windows(), |item| item.0)
        .aggregate(sums())
        .take(1)
        .run_with_on(Sink::collect(), &rt.materializer())
        .unwrap();
    source.push((0, 1, 5, 0));
    source.push((12, 1, 5, 0));
    assert_eq!(rt.outcome(done).unwrap().len(), 1);
    assert!(source.cancelled().is_some() && source.dropped());
}

#[test]
fn windows_that_are_none_fail_the_build() {
    let rt = TestRuntime::new(1);
    let error = Source::from_iter([(0, 1, 5, 0)])
        .key_by(|item: &Item| &item.1)
        .window(Tumbling::of_millis(0), |item| item.0)
        .aggregate(sums())
        .run_with_on(Sink::ignore(), &rt.materializer())
        .err()
        .unwrap();
    assert_eq!(
        error.downcast_ref::<TumblingError>(),
        Some(&TumblingError::SizeNotPositive { given: 0 }),
        "{error}"
    );
}

/// Two elements in [0, 10), a bad one, one more there, one that closes it.
#[test]
fn user_code_is_supervised() {
    let run = |supervision: Supervision| {
        let mut rt = TestRuntime::new(1);
        let done =
            Source::from_iter([(0, 1, 1, 0), (1, 1, 1, 0), (2, 1, BAD, 0), (3, 1, 1, 0), (12, 1, 1, 0)])
                .key_by(|item: &Item| &item.1)
                .window(windows(), |item| item.0)
                .aggregate(sums())
                .map(flat)
                .with_attributes(Attributes::new().supervision(supervision))
                .run_with_on(Sink::collect(), &rt.materializer())
                .unwrap();
        rt.outcome(done)
    };
    let totals = |panes: Vec<Got>| panes.iter().map(|pane| (pane.0, pane.3)).collect::<Vec<_>>();
    assert_eq!(totals(run(Supervision::resume()).unwrap()), [(0, 3), (10, 1)]);
    assert_eq!(totals(run(Supervision::restart()).unwrap()), [(0, 1), (10, 1)]);
    assert!(run(Supervision::stop()).is_err());
}

#[test]
fn as_a_flow_it_is_cloned_and_each_clone_has_windows_of_its_own() {
    let flow = Flow::<Item>::new()
        .key_by(|item| &item.1)
        .window(windows(), |item| item.0)
        .on_late(|item, window| assert!(window.end <= item.0 || window == Window { start: 0, end: 10 }))
        .aggregate(sums())
        .map(flat);
    let mut rt = TestRuntime::new(1);
    for _ in 0..2 {
        let items = Source::from_iter([(5, 1, 1, 0), (6, 1, 1, 0)]);
        let done = items.via(flow.clone()).run_with_on(Sink::collect(), &rt.materializer()).unwrap();
        assert_eq!(rt.outcome(done).unwrap(), [(0, 1, 2, 2)]);
    }
}
