//! On the real runtime with two workers: wakes from other threads, real timers. A lost wake runs into the deadline.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

async fn within<T>(done: impl Future<Output = Result<T, StreamError>>) -> T {
    timeout(DEADLINE, done).await.expect("no lost wake").unwrap()
}

fn window(n: usize) -> Attributes {
    Attributes::new().window(n)
}

fn sum_below(n: u64) -> u64 {
    (0..n).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn islands_in_a_row_lose_nothing() {
    const N: u64 = 10_000;
    for n in [1, 2, 16, 64] {
        let line = Source::from_iter(0..N).async_boundary().map(|x| x + 1).async_boundary().map(|x| x - 1);
        let line = line.async_boundary().grouped(7).async_boundary().map_concat(|group| group);
        let done = line.with_attributes(window(n)).run_with(Sink::collect()).unwrap();
        assert_eq!(within(done).await, (0..N).collect::<Vec<_>>(), "window {n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn futures_that_other_threads_wake() {
    const N: u64 = 4_000;
    for n in [1, 4, 64] {
        let elsewhere = |x: u64| async move { tokio::spawn(async move { x }).await.unwrap() };
        let line = Source::from_iter(0..N).map_async(n, elsewhere);
        let done = line.run_with(Sink::collect()).unwrap();
        assert_eq!(within(done).await, (0..N).collect::<Vec<_>>());
        let line = Source::from_iter(0..N).async_boundary().map_async_unordered(n, elsewhere);
        let done = line.run_with(Sink::fold(0, |sum: u64, x| sum + x)).unwrap();
        assert_eq!(within(done).await, sum_below(N));
        let (total, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (t, c) = (total.clone(), count.clone());
        let add = move |x| {
            let (t, c) = (t.clone(), c.clone());
            async move {
                t.fetch_add(elsewhere(x).await, Ordering::Relaxed);
                c.fetch_add(1, Ordering::Relaxed);
            }
        };
        within(Source::from_iter(0..N).run_with(Sink::foreach_async(n, add)).unwrap()).await;
        assert_eq!((total.load(Ordering::Relaxed), count.load(Ordering::Relaxed)), (sum_below(N), N));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_from_other_islands_join() {
    const N: u64 = 10_000;
    let cut = || Source::from_iter(0..N).async_boundary();
    let done = cut().merge(cut()).merge(cut()).run_with(Sink::fold(0, |sum: u64, x| sum + x)).unwrap();
    assert_eq!(within(done).await, 3 * sum_below(N));
    let done = cut().zip(cut().async_boundary()).run_with(Sink::foreach(|(a, b)| assert_eq!(a, b))).unwrap();
    within(done).await;
    let done = cut().interleave(cut(), 3).run_with(Sink::fold(0, |sum: u64, x| sum + x)).unwrap();
    assert_eq!(within(done).await, 2 * sum_below(N));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_turned_by_another_thread_is_always_seen() {
    for round in 0..100_u64 {
        let line = Source::from_iter(0u64..).async_boundary();
        let idle = Source::from_iter(0u64..1).map_async(1, |x| async move {
            std::future::pending::<()>().await;
            x
        });
        let switch = KillSwitch::new();
        let busy = line.killed_by(&switch).run_with(Sink::fold(0, |n: u64, _| n + 1)).unwrap();
        let parked = idle.killed_by(&switch).run_with(Sink::collect()).unwrap();
        let turn = switch.clone();
        let turned = std::thread::spawn(move || {
            for _ in 0..round * 10 {
                std::hint::spin_loop();
            }
            turn.shutdown();
        });
        within(busy).await;
        assert!(within(parked).await.is_empty());
        turned.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_timers_close_groups_and_pace_elements() {
    let slow = Source::from_iter(0..6u64).throttle(Rate::new(1, Duration::from_millis(5)).burst(1));
    let groups = slow.grouped_within(100, Duration::from_millis(12)).run_with(Sink::collect()).unwrap();
    let groups = within(groups).await;
    assert_eq!(groups.concat(), (0..6).collect::<Vec<_>>());
    assert!(groups.len() >= 2, "{groups:?}");
    let stuck = Source::from_iter(0..1u64).map_async(1, |_| std::future::pending::<u64>());
    let failed = stuck.idle_timeout(Duration::from_millis(10)).run_with(Sink::collect()).unwrap();
    let failed = timeout(DEADLINE, failed).await.expect("no lost timer").unwrap_err();
    assert!(matches!(failed.kind(), ErrorKind::Timeout { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_element_of_an_overflowing_buffer_is_delivered_or_counted() {
    const N: u64 = 30_000;
    let lost = Arc::new(AtomicU64::new(0));
    let count = lost.clone();
    let overflow = OverflowStrategy::DropHead.on_drop(move |n| {
        count.fetch_add(n, Ordering::Relaxed);
    });
    let line = Source::from_iter(0..N).buffer(64, overflow).async_boundary().map_async(1, |x| async move {
        tokio::task::yield_now().await;
        x
    });
    let got = within(line.run_with(Sink::collect()).unwrap()).await;
    assert!(got.is_sorted());
    assert_eq!(got.len() as u64 + lost.load(Ordering::Relaxed), N);
}

#[tokio::test]
async fn times_without_end_are_no_trouble() {
    for limit in [Duration::MAX, Duration::from_secs(u64::MAX - 1), Duration::from_secs(1 << 40)] {
        let line = Source::from_iter(0..3u64).idle_timeout(limit).completion_timeout(limit);
        let line = line.backpressure_timeout(limit).grouped_within(2, limit).map_async(1, |group| async {
            tokio::task::yield_now().await;
            group
        });
        assert_eq!(within(line.run_with(Sink::collect()).unwrap()).await, [vec![0, 1], vec![2]]);
        let line = Source::from_iter(0..1u64).throttle(Rate::new(1, limit)).initial_timeout(limit);
        assert_eq!(within(line.run_with(Sink::collect()).unwrap()).await, [0]);
    }
}
