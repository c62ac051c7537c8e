//! `buffer` and other operators that run ahead of demand.

mod common;

use common::same_everywhere;
use datum_core::prelude::*;
use datum_testkit::{CheckedOps, TestRuntime, sink_probe, source_probe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Case H33: what each strategy drops, and that every drop is counted.
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
