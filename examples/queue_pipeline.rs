//! A pipeline fed by hand: producers offer to a bounded queue and wait while it is full.
//!
//! `cargo run -p datum --example queue_pipeline`

#![allow(clippy::print_stdout, reason = "a program for people")]

use datum::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Up to 64 readings may wait; whoever offers more waits too. Nothing is dropped.
    let (queue, average) = Source::queue::<f64>(64)
        .filter(|celsius| celsius.is_finite())
        .map(|celsius| (celsius * 9.0 / 5.0 + 32.0, 1_u32))
        .to_keep(Sink::fold((0.0, 0), |(sum, n), (reading, one)| (sum + reading, n + one)), Keep::both)
        .run()?;

    let sensors = [[18.0, 21.5, f64::NAN], [19.0, 22.5, 24.0]].map(|readings| {
        let queue = queue.clone();
        tokio::spawn(async move {
            for celsius in readings {
                queue.offer(celsius).await?;
            }
            Ok::<_, OfferError<f64>>(())
        })
    });
    for sensor in sensors {
        sensor.await??;
    }
    // The stream ends when it is told to, or when the last handle is dropped; what was accepted is delivered first.
    queue.complete();

    let (sum, n) = average.await?;
    let fahrenheit = sum / f64::from(n);
    assert!(n == 5 && (fahrenheit - 69.8).abs() < 1e-9);
    println!("{n} readings, {fahrenheit:.1} °F on average");
    Ok(())
}

type OfferError<T> = datum::engine::sources::OfferError<T>;
