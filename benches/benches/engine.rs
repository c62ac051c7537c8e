//! The engine's workloads under criterion: `cargo bench -p datum-benches --bench engine [-- FILTER]`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use datum_benches::engine as work;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const N: u64 = 100_000;

fn one_worker() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn two_workers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Straight lines beside the loops by hand.
fn lines(c: &mut Criterion) {
    let runtime = one_worker();
    let mut group = c.benchmark_group("line");
    group.throughput(Throughput::Elements(N)).measurement_time(Duration::from_secs(2)).sample_size(20);
    group.bench_function("map_filter_fold/hand", |b| b.iter(|| work::hand_map_filter_fold(N)));
    group.bench_function("map_filter_fold/datum", |b| b.iter(|| runtime.block_on(work::map_filter_fold(N))));
    group.bench_function("map_filter_fold/boxed", |b| {
        b.iter(|| runtime.block_on(work::boxed_map_filter_fold(N)));
    });
    group.bench_function("ten_maps/hand", |b| b.iter(|| work::hand_ten_maps(N)));
    group.bench_function("ten_maps/datum", |b| b.iter(|| runtime.block_on(work::ten_maps(N))));
    group.bench_function("map_concat/hand", |b| b.iter(|| work::hand_map_concat(N)));
    group.bench_function("map_concat/datum", |b| b.iter(|| runtime.block_on(work::map_concat(N))));
    group.bench_function("grouped", |b| b.iter(|| runtime.block_on(work::grouped(N))));
    group.finish();
}

/// Two inputs.
fn fan_ins(c: &mut Criterion) {
    let runtime = one_worker();
    let mut group = c.benchmark_group("fan_in");
    group.throughput(Throughput::Elements(N)).measurement_time(Duration::from_secs(2)).sample_size(20);
    group.bench_function("merge", |b| b.iter(|| runtime.block_on(work::merge(N))));
    group.bench_function("concat", |b| b.iter(|| runtime.block_on(work::concat(N))));
    group.bench_function("zip/hand", |b| b.iter(|| work::hand_zip(N)));
    group.bench_function("zip/datum", |b| b.iter(|| runtime.block_on(work::zip(N))));
    group.finish();
}

/// What waits: futures, buffers, boundaries.
fn waits(c: &mut Criterion) {
    let mut group = c.benchmark_group("wait");
    group.throughput(Throughput::Elements(N)).measurement_time(Duration::from_secs(2)).sample_size(20);
    let runtime = one_worker();
    group.bench_function("buffer", |b| b.iter(|| runtime.block_on(work::buffer(N))));
    group.bench_function("map_async/ready", |b| b.iter(|| runtime.block_on(work::map_async_ready(N))));
    group.bench_function("map_async/yielding", |b| b.iter(|| runtime.block_on(work::map_async_yielding(N))));
    let runtime = two_workers();
    for window in [16, 64, 256] {
        group.bench_function(BenchmarkId::new("boundary", window), |b| {
            b.iter(|| runtime.block_on(work::boundary(N, window)));
        });
    }
    group.finish();
}

criterion_group!(benches, lines, fan_ins, waits);
criterion_main!(benches);
