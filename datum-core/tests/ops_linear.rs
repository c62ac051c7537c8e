//! The synchronous operators: dropping, taking, unfolding, folding.

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
