//! The engine's workloads: pipelines over numbers, and the loops a person would write for the same answers.
//!
//! Every workload gives a checksum, so that none can be optimised away and twins can be compared.

use datum::engine::blueprint::Blueprint;
use datum::prelude::*;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One multiplication, one rotation, one exclusive or: some work that nothing foresees.
#[must_use]
pub fn mix(x: u64) -> u64 {
    x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ x
}

/// Runs a source of numbers to its wrapping sum.
///
/// # Panics
/// When it does not start or fails: the workloads do neither.
pub async fn sum<B: Blueprint<Out = u64>>(source: Source<B>) -> u64 {
    let done = source.run_with(Sink::fold(0, u64::wrapping_add)).expect("the workload starts");
    done.await.expect("numbers do not fail")
}

/// The numbers below `n`, `n` unknown to the compiler.
pub fn numbers(n: u64) -> Source<impl Blueprint<Out = u64, Mat = ()>> {
    Source::from_iter(0..black_box(n))
}

/// By hand: map, filter, fold.
#[must_use]
pub fn hand_map_filter_fold(n: u64) -> u64 {
    let mut sum = 0_u64;
    for x in 0..black_box(n) {
        let y = mix(x);
        if y.is_multiple_of(2) {
            sum = sum.wrapping_add(y);
        }
    }
    sum
}

/// By hand: ten maps, fold.
#[must_use]
pub fn hand_ten_maps(n: u64) -> u64 {
    let five = |x| mix(mix(mix(mix(mix(x)))));
    (0..black_box(n)).fold(0, |sum: u64, x| sum.wrapping_add(five(five(x))))
}

/// By hand: the pairs of two ranges.
#[must_use]
pub fn hand_zip(n: u64) -> u64 {
    (0..black_box(n)).zip(0..black_box(n)).fold(0, |sum: u64, (a, b)| sum.wrapping_add(a ^ b.rotate_left(7)))
}

/// By hand: ten items of each tenth element.
#[must_use]
pub fn hand_map_concat(n: u64) -> u64 {
    (0..black_box(n / 10)).flat_map(|x| x..x + 10).fold(0, u64::wrapping_add)
}

/// Map, filter, fold.
pub async fn map_filter_fold(n: u64) -> u64 {
    sum(numbers(n).map(mix).filter(|y| y.is_multiple_of(2))).await
}

/// The same with a box in the middle.
pub async fn boxed_map_filter_fold(n: u64) -> u64 {
    sum(numbers(n).map(mix).boxed().filter(|y| y.is_multiple_of(2))).await
}

/// The same with closures that can panic: the guard does not vanish.
pub async fn panicky_map_filter_fold(n: u64) -> u64 {
    let table: Vec<u64> = (0..1024).collect();
    let look_up = move |x: u64| table[usize::try_from(x & 1023).unwrap_or(0)] + x / black_box(3);
    sum(numbers(n).map(look_up).filter(|y| y.is_multiple_of(2))).await
}

/// Ten maps, fold.
pub async fn ten_maps(n: u64) -> u64 {
    let five = numbers(n).map(mix).map(mix).map(mix).map(mix).map(mix);
    sum(five.map(mix).map(mix).map(mix).map(mix).map(mix)).await
}

/// Two halves, merged.
pub async fn merge(n: u64) -> u64 {
    sum(numbers(n / 2).merge(numbers(n / 2))).await
}

/// Two halves, one after the other.
pub async fn concat(n: u64) -> u64 {
    sum(numbers(n / 2).concat(numbers(n / 2))).await
}

/// Pairs.
pub async fn zip(n: u64) -> u64 {
    sum(numbers(n).zip_with(numbers(n), |a, b| a ^ b.rotate_left(7))).await
}

/// Ten items of each tenth element.
pub async fn map_concat(n: u64) -> u64 {
    sum(numbers(n / 10).map_concat(|x| x..x + 10)).await
}

/// Groups of 64 and back.
pub async fn grouped(n: u64) -> u64 {
    sum(numbers(n).grouped(64).map_concat(|group| group)).await
}

/// A buffer between two sides that take turns.
pub async fn buffer(n: u64) -> u64 {
    sum(numbers(n).buffer(16, OverflowStrategy::Backpressure)).await
}

/// Futures that are ready at once.
pub async fn map_async_ready(n: u64) -> u64 {
    sum(numbers(n).map_async(4, |x| async move { mix(x) })).await
}

/// Futures that yield once.
pub async fn map_async_yielding(n: u64) -> u64 {
    sum(numbers(n).map_async(4, |x| async move {
        tokio::task::yield_now().await;
        mix(x)
    }))
    .await
}

/// Two islands with `window` elements between them.
pub async fn boundary(n: u64, window: usize) -> u64 {
    let line = numbers(n).map(mix).async_boundary().filter(|y| y.is_multiple_of(2));
    sum(line.with_attributes(Attributes::new().window(window))).await
}

/// How many elements two busy islands ever have between them, made and not consumed. At most `window` is promised.
pub async fn most_in_flight(n: u64, window: usize) -> u64 {
    let (made, eaten, most) = <(Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
    let (made_here, seen, ahead) = (made.clone(), eaten.clone(), most.clone());
    let line = numbers(n).inspect(move |_| {
        let made = made_here.fetch_add(1, Ordering::SeqCst) + 1;
        ahead.fetch_max(made - seen.load(Ordering::SeqCst), Ordering::SeqCst);
    });
    let line = line.async_boundary().inspect(move |_| {
        eaten.fetch_add(1, Ordering::SeqCst);
    });
    let total = sum(line.with_attributes(Attributes::new().window(window))).await;
    assert_eq!(total, hand_sum(n), "every number comes over");
    most.load(Ordering::SeqCst)
}

fn hand_sum(n: u64) -> u64 {
    (0..n).fold(0, u64::wrapping_add)
}
