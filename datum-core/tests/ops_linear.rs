//! The synchronous operators: dropping, taking, unfolding, folding.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{panicked, same_everywhere};
use datum_core::prelude::*;
use datum_testkit::{CheckedOps, TestRuntime, sink_probe, source_probe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn flow() -> Flow<u64> {
    Flow::new()
}

#[test]
fn take_while_ends_before_or_with_the_first_that_does_not_fit() {
    same_everywhere(&[1, 2, 9, 1], || flow().take_while(|x| *x < 5), Ok(&[1, 2]));
    same_everywhere(&[1, 2, 9, 1], || flow().take_while_inclusive(|x| *x < 5), Ok(&[1, 2, 9]));
    same_everywhere(&[9, 1], || flow().take_while(|x| *x < 5), Ok(&[]));
    same_everywhere(&[1, 2], || flow().take_while(|_| true), Ok(&[1, 2]));
    same_everywhere::<u64, _>(&[1], || flow().take_while(|_| panic!("no")), Err(panicked));
}

#[test]
fn drop_skips_and_drop_while_asks_only_until_the_first_that_stays() {
    same_everywhere(&[1, 2, 3], || flow().drop(0), Ok(&[1, 2, 3]));
    same_everywhere(&[1, 2, 3], || flow().drop(2), Ok(&[3]));
    same_everywhere(&[1, 2, 3], || flow().drop(9), Ok(&[]));
    same_everywhere(&[1, 2, 9, 1], || flow().drop_while(|x| *x < 5), Ok(&[9, 1]));
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let mut rt = TestRuntime::new(1);
    let skip = move |x: &u64| {
        count.fetch_add(1, Ordering::Relaxed);
        *x < 2
    };
    let done = Source::from_iter(0..10).drop_while(skip).run_with_on(Sink::collect(), &rt.materializer());
    assert_eq!(rt.outcome(done.unwrap()).unwrap().len(), 8);
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[test]
fn map_concat_unfolds_in_order_and_stops_at_demand() {
    same_everywhere(&[2, 0, 3, 1], || flow().map_concat(|x| 0..x), Ok(&[0, 1, 0, 1, 2, 0]));
    same_everywhere(
        &[1, 2],
        || flow().map_concat(|x| vec![x; 2]).map_concat(|x| vec![x, 7]).take(5),
        Ok(&[1, 7, 1, 7, 2]),
    );
    same_everywhere(&[5], || flow().map_concat(|x| x..).take(4), Ok(&[5, 6, 7, 8]));
    same_everywhere::<u64, _>(&[5], || flow().map_concat(|_| -> Vec<u64> { panic!("f") }), Err(panicked));
    same_everywhere::<u64, _>(
        &[5],
        || flow().map_concat(|x| (0..x).inspect(|i| assert!(*i < 2, "item"))),
        Err(panicked),
    );
}

#[test]
fn map_concat_makes_one_item_per_demanded_one() {
    let made = Arc::new(AtomicU64::new(0));
    let count = made.clone();
    let mut rt = TestRuntime::new(1);
    let items = move |x: u64| {
        let count = count.clone();
        (0..x).inspect(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
    };
    let probe =
        Source::from_iter([3, 3]).map_concat(items).run_with_on(sink_probe(), &rt.materializer()).unwrap();
    probe.request(1);
    rt.run();
    assert_eq!((probe.take(), made.load(Ordering::Relaxed)), (vec![0], 1));
    probe.request(3);
    rt.run();
    assert_eq!((probe.take(), made.load(Ordering::Relaxed)), (vec![1, 2, 0], 4));
    probe.request(2);
    rt.run();
    assert_eq!(probe.take(), [1, 2]);
    assert!(probe.end().is_some(), "completes with the last item, without further demand");
}

#[test]
fn a_failure_overtakes_the_items_not_yet_given() {
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let line = line.checked("source").map_concat(|x| 0..x).checked("map_concat");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    source.push(5);
    probe.request(2);
    rt.run();
    assert_eq!(probe.take(), [0, 1]);
    let error = source.fail_some();
    rt.run();
    assert!(probe.end().unwrap().unwrap_err().same(&error));
    assert!(source.dropped());
}

#[test]
fn an_endless_iterator_lets_its_neighbours_run() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let busy = Source::from_iter([0u64]).map_concat(|_| std::iter::repeat(1u64)).filter(|_| false);
    let line = busy.merge(Source::from_iter(0..10u64)).take(10);
    let done = line.run_with_on(Sink::collect(), &m).unwrap();
    assert_eq!(rt.outcome(done).unwrap(), (0..10).collect::<Vec<_>>());
    assert_eq!(rt.live_tasks(), 0);
}

#[test]
fn scan_emits_zero_first_and_each_state() {
    same_everywhere(&[1, 2, 3], || flow().scan(10, |a, x| a + x), Ok(&[10, 11, 13, 16]));
    same_everywhere(&[], || flow().scan(10, |a, x| a + x), Ok(&[10]));
    same_everywhere::<u64, _>(&[1], || flow().scan(0, |_, _| panic!("f")), Err(panicked));
    // Zero is emitted at the first demand, also after an upstream that ended before it.
    let mut rt = TestRuntime::new(1);
    let (source, line) = source_probe::<u64>();
    let probe =
        line.scan(5, |a, x| a + x).checked("scan").run_with_on(sink_probe(), &rt.materializer()).unwrap();
    source.complete();
    rt.run();
    assert!(probe.end().is_none());
    probe.request(1);
    rt.run();
    assert_eq!(probe.take(), [5]);
    assert!(matches!(probe.end(), Some(Ok(()))));
}

#[test]
fn fold_and_reduce_emit_once_at_the_end() {
    same_everywhere(&[1, 2, 3], || flow().fold(10, |a, x| a + x), Ok(&[16]));
    same_everywhere(&[], || flow().fold(10, |a, x| a + x), Ok(&[10]));
    same_everywhere(&[3, 9, 4], || flow().reduce(u64::max), Ok(&[9]));
    same_everywhere(&[3], || flow().reduce(|_, _| panic!("not called for one")), Ok(&[3]));
    let empty = |e: &StreamError| matches!(e.kind(), ErrorKind::NoElement { stage: "reduce" });
    same_everywhere::<u64, _>(&[], || flow().reduce(u64::max), Err(empty));
}

#[test]
fn grouped_gives_full_groups_and_a_short_last_one() {
    same_everywhere(&[1, 2, 3, 4, 5], || flow().grouped(2), Ok(&[vec![1, 2], vec![3, 4], vec![5]]));
    same_everywhere(&[1, 2, 3, 4], || flow().grouped(2), Ok(&[vec![1, 2], vec![3, 4]]));
    same_everywhere(&[1, 2], || flow().grouped(1), Ok(&[vec![1], vec![2]]));
    same_everywhere(&[1, 2], || flow().grouped(usize::MAX), Ok(&[vec![1, 2]]));
    same_everywhere::<Vec<u64>, _>(&[], || flow().grouped(2), Ok(&[]));
}

#[test]
fn sliding_overlaps_skips_and_ends_short() {
    same_everywhere(&[1, 2, 3, 4], || flow().sliding(3, 2), Ok(&[vec![1, 2, 3], vec![3, 4]]));
    same_everywhere(&[1, 2, 3, 4, 5], || flow().sliding(3, 2), Ok(&[vec![1, 2, 3], vec![3, 4, 5]]));
    same_everywhere(&[1, 2, 3], || flow().sliding(3, 1), Ok(&[vec![1, 2, 3]]));
    same_everywhere(&[1, 2], || flow().sliding(3, 1), Ok(&[vec![1, 2]]));
    same_everywhere(&[1, 2, 3, 4, 5], || flow().sliding(2, 3), Ok(&[vec![1, 2], vec![4, 5]]));
    same_everywhere(&[1, 2, 3, 4], || flow().sliding(2, 3), Ok(&[vec![1, 2], vec![4]]));
    same_everywhere(&[1, 2, 3], || flow().sliding(2, 3), Ok(&[vec![1, 2]]));
    same_everywhere(&[1, 2, 3], || flow().sliding(1, 1), Ok(&[vec![1], vec![2], vec![3]]));
    same_everywhere(&[1, 2, 3], || flow().sliding(1, 2), Ok(&[vec![1], vec![3]]));
    same_everywhere::<Vec<u64>, _>(&[], || flow().sliding(2, 1), Ok(&[]));
}

#[test]
fn inspect_sees_each_element_once() {
    let seen = Arc::new(AtomicU64::new(0));
    let count = seen.clone();
    let mut rt = TestRuntime::new(1);
    let look = move |x: &u64| {
        count.fetch_add(*x, Ordering::Relaxed);
    };
    let done = Source::from_iter(0..5u64).inspect(look).run_with_on(Sink::collect(), &rt.materializer());
    assert_eq!(rt.outcome(done.unwrap()).unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(seen.load(Ordering::Relaxed), 10);
    same_everywhere::<u64, _>(&[1], || flow().inspect(|_| panic!("look")), Err(panicked));
}

#[test]
fn arguments_that_make_no_sense_fail_the_build() {
    let rt = TestRuntime::new(1);
    let m = rt.materializer();
    let source = || Source::from_iter(0..3u64);
    let second = std::time::Duration::from_secs(1);
    let zero = std::time::Duration::ZERO;
    let errors = [
        source().grouped(0).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().sliding(0, 1).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().sliding(1, 0).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().grouped_within(0, second).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().grouped_within(1, zero).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().buffer(0, OverflowStrategy::DropHead).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().throttle(Rate::new(0, second)).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().throttle(Rate::new(1, zero)).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().interleave(source(), 0).run_with_on(Sink::ignore(), &m).unwrap_err(),
        source().run_with_on(Sink::foreach_async(0, |_| async {}), &m).unwrap_err(),
    ];
    assert!(errors.iter().all(|e| matches!(e.kind(), ErrorKind::InvalidArgument { .. })), "{errors:?}");
    assert_eq!((rt.live_tasks(), m.running()), (0, 0));
}
