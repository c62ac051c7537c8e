//! What `ci/instructions` measures: pipelines beside the loop a person would write for the same answer.
//!
//! `engine_instructions NAME` runs one workload once over a million numbers, for a tool that counts the instructions of the
//! function of that name; `engine_instructions wall` takes the wall time of the engine and of `futures::Stream` in turns and prints both.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use datum::prelude::*;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};

const N: u64 = 1_000_000;

fn main() -> ExitCode {
    let Ok(runtime) = Builder::new_current_thread().build() else { return ExitCode::FAILURE };
    let name = std::env::args().nth(1).unwrap_or_default();
    let sum = match name.as_str() {
        "hand_map_filter_fold" => hand_map_filter_fold(),
        "datum_map_filter_fold" => datum_map_filter_fold(&runtime),
        "hand_ten_maps" => hand_ten_maps(),
        "datum_ten_maps" => datum_ten_maps(&runtime),
        "wall" => return wall(&runtime),
        _ => return ExitCode::from(2),
    };
    // The answer is the checksum: each pair must print the same.
    print(&format!("{name} {sum}"));
    ExitCode::SUCCESS
}

fn mix(x: u64) -> u64 {
    x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ x
}

#[inline(never)]
fn hand_map_filter_fold() -> u64 {
    let mut sum = 0_u64;
    for x in 0..black_box(N) {
        let y = mix(x);
        if y.is_multiple_of(2) {
            sum = sum.wrapping_add(y);
        }
    }
    sum
}

#[inline(never)]
fn datum_map_filter_fold(runtime: &Runtime) -> u64 {
    let source = Source::from_iter(0..black_box(N)).map(mix).filter(|y| y.is_multiple_of(2));
    runtime.block_on(async { run(source.run_with(Sink::fold(0, u64::wrapping_add))).await })
}

#[inline(never)]
fn hand_ten_maps() -> u64 {
    let mut sum = 0_u64;
    for x in 0..black_box(N) {
        let y = mix(mix(mix(mix(mix(x)))));
        sum = sum.wrapping_add(mix(mix(mix(mix(mix(y))))));
    }
    sum
}

#[inline(never)]
fn datum_ten_maps(runtime: &Runtime) -> u64 {
    let five = Source::from_iter(0..black_box(N)).map(mix).map(mix).map(mix).map(mix).map(mix);
    let ten = five.map(mix).map(mix).map(mix).map(mix).map(mix);
    runtime.block_on(async { run(ten.run_with(Sink::fold(0, u64::wrapping_add))).await })
}

#[inline(never)]
fn futures_map_filter_fold(runtime: &Runtime) -> u64 {
    let source = futures_util::stream::iter(0..black_box(N))
        .map(mix)
        .filter(|y| std::future::ready(y.is_multiple_of(2)));
    runtime.block_on(source.fold(0, |sum: u64, y| std::future::ready(sum.wrapping_add(y))))
}

async fn run<F>(started: Result<F, StreamError>) -> u64
where
    F: Future<Output = Result<u64, StreamError>>,
{
    match started {
        Ok(sum) => sum.await.expect("numbers do not fail"),
        Err(error) => panic!("the pipeline does not start: {error}"),
    }
}

/// Takes turns, so that other load meets both; compares the best rounds.
fn wall(runtime: &Runtime) -> ExitCode {
    let (mut engine, mut futures) = (Duration::MAX, Duration::MAX);
    for _ in 0..15 {
        let (sum, took) = timed(|| datum_map_filter_fold(runtime));
        engine = engine.min(took);
        let (other, took) = timed(|| futures_map_filter_fold(runtime));
        futures = futures.min(took);
        assert_eq!(sum, other, "both must give one answer");
    }
    let ns = |time: Duration| time.as_secs_f64() * 1e9 / 1e6;
    print(&format!(
        "map+filter+fold, ns per element: datum {:.2}, futures::Stream {:.2}",
        ns(engine),
        ns(futures)
    ));
    if engine <= futures { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn timed(run: impl FnOnce() -> u64) -> (u64, Duration) {
    let started = Instant::now();
    let sum = black_box(run());
    (sum, started.elapsed())
}

#[expect(clippy::print_stdout, reason = "its output is what it is for")]
fn print(line: &str) {
    println!("{line}");
}
