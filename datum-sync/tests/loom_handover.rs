//! Models of the hand-over's races, each two threads, one race, one assertion. Run with
//! `RUSTFLAGS="--cfg datum_loom" cargo test -p datum-sync --release --test loom_handover`.
#![cfg(datum_loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_sync::handover::{Cancelled, End, Reader, Writer, handover};
use loom::future::block_on;
use loom::thread;
use std::future::poll_fn;
use std::task::Poll;

type W = Writer<u32, &'static str, &'static str>;
type R = Reader<u32, &'static str, &'static str>;

/// Puts `0..n` and ends; gives the cancellation if there was one.
async fn produce(mut writer: W, n: u32, end: Result<(), &'static str>) -> Option<Cancelled<&'static str>> {
    let mut next = 0;
    let cancelled = poll_fn(|cx| {
        while next < n {
            match writer.poll_room(cx.waker()) {
                Poll::Ready(Ok(room)) => {
                    for _ in 0..room {
                        if next < n {
                            writer.put(next);
                            next += 1;
                        }
                    }
                }
                Poll::Ready(Err(cancelled)) => return Poll::Ready(Some(cancelled)),
                Poll::Pending => match writer.flush(cx.waker()) {
                    Some(cancelled) => return Poll::Ready(Some(cancelled)),
                    None => return Poll::Pending,
                },
            }
        }
        Poll::Ready(None)
    })
    .await;
    if cancelled.is_none() {
        writer.end(end, true);
    }
    cancelled
}

/// Takes everything until the end, asserting the order.
async fn consume(reader: &mut R) -> (u32, End<&'static str>) {
    let mut next = 0;
    poll_fn(|cx| {
        loop {
            while let Some(x) = reader.take() {
                assert_eq!(x, next);
                next += 1;
            }
            if let Some(end) = reader.take_end() {
                return Poll::Ready((next, end));
            }
            reader.refill(cx.waker(), true);
            if reader.ready() == 0 {
                return match reader.take_end() {
                    Some(end) => Poll::Ready((next, end)),
                    None => Poll::Pending,
                };
            }
        }
    })
    .await
}

fn all_arrive(window: usize, chunk: usize, n: u32, end: Result<(), &'static str>) {
    loom::model(move || {
        let (writer, mut reader) = handover(window, chunk);
        let producer = thread::spawn(move || block_on(produce(writer, n, end)));
        let (taken, seen) = block_on(consume(&mut reader));
        assert_eq!(taken, n);
        assert_eq!(seen, end.map_or_else(End::Failed, |()| End::Complete));
        assert_eq!(producer.join().unwrap(), None);
    });
}

#[test]
fn everything_arrives_before_the_end() {
    all_arrive(2, 1, 3, Ok(()));
}

#[test]
fn a_failure_comes_behind_what_was_put() {
    all_arrive(1, 1, 2, Err("broken"));
}

#[test]
fn lock_step_at_window_zero() {
    all_arrive(0, 1, 2, Ok(()));
}

#[test]
fn a_writer_that_ends_while_the_reader_looks() {
    all_arrive(1, 1, 0, Ok(()));
}

#[test]
fn a_cancellation_reaches_a_writer_that_waits_for_room() {
    loom::model(|| {
        let (writer, mut reader): (W, R) = handover(1, 1);
        let producer = thread::spawn(move || block_on(produce(writer, 3, Ok(()))));
        reader.cancel("enough");
        drop(reader);
        assert_eq!(producer.join().unwrap(), Some(Cancelled::Cause("enough")));
    });
}

#[test]
fn a_dropped_reader_cancels() {
    loom::model(|| {
        let (writer, reader): (W, R) = handover(1, 1);
        let producer = thread::spawn(move || block_on(produce(writer, 3, Ok(()))));
        drop(reader);
        assert_eq!(producer.join().unwrap(), Some(Cancelled::Dropped));
    });
}

#[test]
fn a_dropped_writer_shows_behind_what_it_flushed() {
    loom::model(|| {
        let (mut writer, mut reader): (W, R) = handover(2, 1);
        let producer = thread::spawn(move || {
            block_on(poll_fn(|cx| {
                assert!(matches!(writer.poll_room(cx.waker()), Poll::Ready(Ok(1))));
                writer.put(0);
                assert!(writer.flush(cx.waker()).is_none());
                Poll::Ready(())
            }));
            drop(writer);
        });
        assert_eq!(block_on(consume(&mut reader)), (1, End::Dropped));
        producer.join().unwrap();
    });
}

#[test]
fn closing_is_waited_for() {
    loom::model(|| {
        let (mut writer, mut reader): (W, R) = handover(1, 1);
        let producer = thread::spawn(move || {
            writer.end(Ok(()), false);
            writer.closed();
        });
        assert_eq!(block_on(consume(&mut reader)), (0, End::Complete));
        block_on(poll_fn(|cx| reader.poll_closed(cx.waker())));
        producer.join().unwrap();
    });
}
