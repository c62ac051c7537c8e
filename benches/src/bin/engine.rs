//! The engine's workloads by wall time, and the async boundary by processor time.
//!
//! `engine [FILTER]` prints nanoseconds per element: the median and the best of seven runs, each workload beside its twin by hand where it
//! has one. The boundary's figures are those of the whole process (both islands), and its bound on elements in flight is asserted.

use datum_benches::engine as work;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;
use tokio::runtime::Builder;

const N: u64 = 4_000_000;
const RUNS: usize = 7;

fn main() -> ExitCode {
    let Ok(runtime) = Builder::new_multi_thread().worker_threads(2).enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let filter = std::env::args().nth(1).unwrap_or_default();
    let on_a_worker = runtime.block_on(runtime.spawn(async move { run(&filter).await }));
    if on_a_worker.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

macro_rules! time {
    ($filter:expr, $name:expr, $work:expr) => {
        time!($filter, $name, N, $work)
    };
    ($filter:expr, $name:expr, $n:expr, $work:expr) => {
        if $name.contains($filter) {
            let mut rounds = Vec::with_capacity(RUNS);
            for _ in 0..RUNS {
                let started = Instant::now();
                black_box($work);
                rounds.push(per_element(started.elapsed().as_secs_f64(), $n));
            }
            rounds.sort_by(f64::total_cmp);
            print(&format!("{:<44} {:>8.2} ns  (best {:.2})", $name, rounds[RUNS / 2], rounds[0]));
        }
    };
}

async fn run(filter: &str) {
    print(&format!("ns per element, {N} elements, median of {RUNS}"));
    assert_eq!(work::hand_map_filter_fold(N), work::map_filter_fold(N).await);
    assert_eq!(work::hand_ten_maps(N), work::ten_maps(N).await);
    assert_eq!(work::hand_zip(N), work::zip(N).await);
    assert_eq!(work::hand_map_concat(N), work::map_concat(N).await);
    time!(filter, "by hand: map+filter+fold", work::hand_map_filter_fold(N));
    time!(filter, "map+filter+fold", work::map_filter_fold(N).await);
    time!(filter, "map+filter+fold, boxed in the middle", work::boxed_map_filter_fold(N).await);
    time!(filter, "map+filter+fold, closures that can panic", work::panicky_map_filter_fold(N).await);
    time!(filter, "by hand: ten maps", work::hand_ten_maps(N));
    time!(filter, "ten maps", work::ten_maps(N).await);
    time!(filter, "by hand: zip", work::hand_zip(N));
    time!(filter, "zip", work::zip(N).await);
    time!(filter, "merge", work::merge(N).await);
    time!(filter, "concat", work::concat(N).await);
    time!(filter, "by hand: map_concat of 10", work::hand_map_concat(N));
    time!(filter, "map_concat of 10", work::map_concat(N).await);
    time!(filter, "grouped by 64 and back", work::grouped(N).await);
    time!(filter, "buffer of 16", work::buffer(N).await);
    time!(filter, "map_async(4), ready", work::map_async_ready(N).await);
    time!(filter, "map_async(4), one yield each", N / 10, work::map_async_yielding(N / 10).await);
    for window in [16, 64, 256] {
        boundary(filter, window).await;
    }
}

async fn boundary(filter: &str, window: usize) {
    let name = format!("async boundary, window {window}");
    time!(filter, name, work::boundary(N, window).await);
    if !name.contains(filter) {
        return;
    }
    let most = work::most_in_flight(N / 10, window).await;
    assert!(most <= window as u64, "window {window}: {most} elements in flight");
    let mut rounds = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let Some(before) = processor_time() else { return };
        black_box(work::boundary(N, window).await);
        let Some(after) = processor_time() else { return };
        rounds.push(per_element(after - before, N));
    }
    rounds.sort_by(f64::total_cmp);
    let (median, best) = (rounds[RUNS / 2], rounds[0]);
    print(&format!(
        "{:<44} {median:>8.2} ns  (best {best:.2}), at most {most} in flight",
        format!("  its processor time, window {window}")
    ));
}

/// Seconds this process has run on any processor, as Linux counts them; `None` elsewhere.
fn processor_time() -> Option<f64> {
    let mut nanos = 0_u64;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let schedstat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        nanos += schedstat.split(' ').next()?.parse::<u64>().ok()?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a duration")]
    Some(nanos as f64 / 1e9)
}

fn per_element(seconds: f64, n: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let n = n as f64;
    seconds * 1e9 / n
}

#[expect(clippy::print_stdout, reason = "its output is what it is for")]
fn print(line: &str) {
    println!("{line}");
}
