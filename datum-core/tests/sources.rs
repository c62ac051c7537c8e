//! Each source: what it emits, when it ends, and what becomes of it when it is cancelled, drained or aborted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use datum_core::sources::TryOfferError;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Runs a source fused, boxed and across a boundary, with every yield point, and expects the same elements.
fn everywhere<T, B>(make: impl Fn() -> Source<B>, want: &[T])
where
    T: Send + std::fmt::Debug + PartialEq + 'static,
    B: Blueprint<Out = T>,
{
    for seed in 0..20 {
        for budget in [1, 3, 4096] {
            let mut rt = TestRuntime::new(seed);
            let m = rt.materializer_with_budget(budget);
            let fused = make().checked("fused").jitter(seed).run_with_on(Sink::collect(), &m).unwrap();
            let boxed = make().boxed().checked("boxed").run_with_on(Sink::collect(), &m).unwrap();
            let cut = make().checked("in").async_boundary().checked("out").jitter(seed);
            let cut = cut.run_with_on(Sink::collect(), &m).unwrap();
            for (form, done) in [("fused", fused), ("boxed", boxed), ("cut", cut)] {
                assert_eq!(rt.outcome(done).unwrap(), want, "{form}, seed {seed}, budget {budget}");
            }
            assert_eq!(rt.live_tasks(), 0);
        }
    }
}

#[test]
fn the_simple_ones_emit_and_complete() {
    everywhere(|| Source::from_iter(0..5), &[0, 1, 2, 3, 4]);
    everywhere(|| Source::single('a'), &['a']);
    everywhere(Source::empty::<u8>, &[]);
    everywhere(|| Source::repeat(1).take(3), &[1, 1, 1]);
    everywhere(|| Source::unfold(3u8, |n| n.checked_sub(1).map(|next| (next, n))), &[3, 2, 1]);
    everywhere(
        || {
            Source::unfold_async(0, |n| async move {
                tokio::task::yield_now().await;
                Ok::<_, StreamError>((n < 3).then_some((n + 1, n)))
            })
        },
        &[0, 1, 2],
    );
    everywhere(|| Source::future(async { 7 }), &[7]);
    everywhere(|| Source::lazy(|| Source::from_iter(0..3)), &[0, 1, 2]);
    everywhere(|| Source::from_stream(futures_util::stream::iter(0..3)), &[0, 1, 2]);
}

#[test]
fn a_failed_source_fails_without_demand_and_keeps_its_error() {
    let mut rt = TestRuntime::new(1);
    let error = std::io::Error::other("disk");
    let done = Source::failed::<u8>(error).run_with_on(Sink::collect(), &rt.materializer()).unwrap();
    let error = rt.outcome(done).unwrap_err();
    assert_eq!(error.downcast_ref::<std::io::Error>().unwrap().to_string(), "disk");
    let again = Source::failed::<u8>(error.clone()).run_with_on(Sink::ignore(), &rt.materializer()).unwrap();
    assert!(rt.outcome(again).unwrap_err().same(&error));
}

#[test]
fn panics_in_user_code_name_their_source() {
    fn fails<B: Blueprint>(source: Source<B>, stage: &str) {
        let mut rt = TestRuntime::new(1);
        let done = source.run_with_on(Sink::ignore(), &rt.materializer()).unwrap();
        let error = rt.outcome(done).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Panicked { stage: s, .. } if *s == stage), "{error}");
        assert_eq!(rt.live_tasks(), 0);
    }
    fn boom<T>() -> T {
        panic!("boom")
    }
    fails(Source::from_iter(std::iter::from_fn(boom::<Option<u8>>)), "from_iter");
    fails(Source::unfold(0, |_| boom::<Option<(i32, u8)>>()), "unfold");
    fails(
        Source::unfold_async(0, |_| async { boom::<Result<Option<(i32, u8)>, StreamError>>() }),
        "unfold_async",
    );
    fails(Source::future(async { boom::<u8>() }), "future");
    fails(Source::lazy(boom::<BoxSource<u8>>), "lazy");
    let stream = futures_util::stream::once(async { boom::<u8>() });
    fails(Source::from_stream(stream), "from_stream");
}

#[test]
fn lazy_is_made_at_the_first_demand_only() {
    let made = Arc::new(AtomicUsize::new(0));
    let lazy = || {
        let made = made.clone();
        Source::lazy(move || {
            made.fetch_add(1, Ordering::Relaxed);
            Source::from_iter(0..3).map_materialized(|()| "inner")
        })
    };
    let mut rt = TestRuntime::new(1);
    let (never, ()) = lazy().to_keep(Sink::cancelled(), Keep::both).run_on(&rt.materializer()).unwrap();
    let error = rt.outcome(never).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NeverMaterialized { .. }));
    assert_eq!(made.load(Ordering::Relaxed), 0);
    let (inner, all) = lazy().to_keep(Sink::collect(), Keep::both).run_on(&rt.materializer()).unwrap();
    assert_eq!(rt.outcome(all).unwrap(), [0, 1, 2]);
    assert_eq!(rt.outcome(inner).unwrap(), "inner");
    let failing = Source::lazy(|| Source::tick(Duration::ZERO, Duration::ZERO, ()));
    let (inner, all) = failing.to_keep(Sink::ignore(), Keep::both).run_on(&rt.materializer()).unwrap();
    assert!(rt.outcome(all).unwrap_err().same(&rt.outcome(inner).unwrap_err()));
}

#[test]
fn ticks_follow_the_clock_and_are_skipped_when_nobody_asks() {
    let mut rt = TestRuntime::new(1);
    let tick = || Source::tick(Duration::from_secs(1), Duration::from_secs(10), ());
    let mut queue = tick().run_with_on(Sink::queue(1), &rt.materializer()).unwrap();
    let mut pull = |rt: &TestRuntime| rt.poll_once(queue.pull());
    rt.run_ready();
    assert!(pull(&rt).is_pending());
    rt.advance(Duration::from_secs(1));
    assert!(pull(&rt).is_ready(), "the first tick after the initial delay");
    rt.advance(Duration::from_secs(10));
    // One tick waits in the queue; the next five are due without demand and are skipped.
    rt.advance(Duration::from_secs(50));
    assert!(pull(&rt).is_ready());
    rt.run_ready();
    assert!(pull(&rt).is_pending(), "no tick was queued up");
    rt.advance(Duration::from_secs(10));
    assert!(pull(&rt).is_ready(), "still on the grid: 1 s + n * 10 s");
    let error =
        Source::tick(Duration::ZERO, Duration::ZERO, ()).run_with_on(Sink::ignore(), &rt.materializer());
    assert!(matches!(error.unwrap_err().kind(), ErrorKind::InvalidArgument { stage: "tick", .. }));
}

#[test]
fn a_queue_delivers_what_it_accepted_and_backpressures() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let (queue, mut out) = Source::queue(2).to_keep(Sink::queue(1), Keep::both).run_on(&m).unwrap();
    rt.run_ready();
    for x in 0..3 {
        queue.try_offer(x).unwrap();
        rt.run_ready();
    }
    // One waits in the sink's queue, two here.
    assert!(matches!(queue.try_offer(9), Err(TryOfferError::Full(9))));
    assert_eq!((queue.len(), queue.capacity()), (2, 2));
    let waiting = {
        let queue = queue.clone();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        for x in 3..6 {
            let (queue, order) = (queue.clone(), order.clone());
            rt.spawn(async move {
                queue.offer(x).await.unwrap();
                order.lock().unwrap().push(x);
            });
            rt.run_ready();
        }
        order
    };
    let mut got = Vec::new();
    for _ in 0..6 {
        match rt.poll_once(out.pull()) {
            std::task::Poll::Ready(x) => got.push(x.unwrap().unwrap()),
            std::task::Poll::Pending => panic!("an accepted element is missing after {got:?}"),
        }
        rt.run_ready();
    }
    assert_eq!(got, [0, 1, 2, 3, 4, 5]);
    assert_eq!(*waiting.lock().unwrap(), [3, 4, 5], "offers are accepted in order");
    queue.try_offer(6).unwrap();
    queue.complete();
    assert!(matches!(queue.try_offer(7), Err(TryOfferError::Closed(7))));
    rt.run_ready();
    assert!(matches!(rt.poll_once(out.pull()), std::task::Poll::Ready(Ok(Some(6)))));
    assert!(matches!(rt.poll_once(out.pull()), std::task::Poll::Ready(Ok(None))));
    assert!(rt.poll_once(queue.closed()).is_ready());
}

#[test]
fn a_dropped_offer_gives_its_turn_away() {
    let mut rt = TestRuntime::new(1);
    let (queue, mut out) =
        Source::queue(1).to_keep(Sink::queue(1), Keep::both).run_on(&rt.materializer()).unwrap();
    rt.run_ready();
    for x in 0..2 {
        queue.try_offer(x).unwrap();
        rt.run_ready();
    }
    let mut first = Box::pin(queue.offer(2));
    assert!(rt.poll_once(&mut first).is_pending());
    let second = queue.clone();
    rt.spawn(async move { second.offer(3).await.unwrap() });
    rt.run_ready();
    drop(first);
    let mut got = Vec::new();
    while let std::task::Poll::Ready(Ok(Some(x))) = rt.poll_once(out.pull()) {
        got.push(x);
        rt.run_ready();
    }
    assert_eq!(got, [0, 1, 3]);
}

#[test]
fn a_queue_fails_at_once_completes_with_its_last_handle_and_drains() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let (queue, all) = Source::queue(4).to_keep(Sink::collect::<u8>(), Keep::both).run_on(&m).unwrap();
    queue.try_offer(1).unwrap();
    queue.fail("pulled the plug");
    assert!(queue.is_closed() && queue.is_empty());
    assert!(rt.outcome(all).unwrap_err().to_string().contains("pulled the plug"));

    let (queue, all) = Source::queue(4).to_keep(Sink::collect(), Keep::both).run_on(&m).unwrap();
    queue.clone().try_offer(1).unwrap();
    queue.try_offer(2).unwrap();
    drop(queue);
    assert_eq!(rt.outcome(all).unwrap(), [1, 2]);

    let (queue, all) = Source::queue(4).to_keep(Sink::collect(), Keep::both).run_on(&m).unwrap();
    queue.try_offer(1).unwrap();
    assert!(rt.poll_once(m.shutdown()).is_pending());
    assert_eq!(rt.outcome(all).unwrap(), [1], "accepted before the shutdown");
    assert!(matches!(queue.try_offer(2), Err(TryOfferError::Closed(2))));

    let m = rt.materializer();
    let queue = Source::queue::<u8>(4).to(Sink::cancelled()).run_on(&m).unwrap();
    rt.run();
    assert!(matches!(rt.poll_once(queue.offer(1)), std::task::Poll::Ready(Err(_))));
}

#[test]
fn endless_sources_end_at_a_graceful_shutdown() {
    fn drains<B: Blueprint>(source: Source<B>) {
        let mut rt = TestRuntime::new(1);
        let m = rt.materializer_with_budget(8);
        let done = source.checked("source").run_with_on(Sink::ignore(), &m).unwrap();
        for _ in 0..5 {
            rt.step();
        }
        assert!(rt.poll_once(m.shutdown()).is_pending());
        rt.outcome(done).unwrap();
        assert!(rt.poll_once(m.shutdown()).is_ready());
        assert_eq!(rt.live_tasks(), 0);
    }
    drains(Source::repeat(1));
    drains(Source::never::<u8>());
    drains(Source::tick(Duration::from_secs(1), Duration::from_secs(1), ()));
    drains(Source::from_stream(futures_util::stream::pending::<u8>()));
    drains(Source::future(std::future::pending::<u8>()));
    drains(Source::lazy(|| Source::repeat(1)));
    drains(Source::unfold_async(0, |n| async move { Ok::<_, StreamError>(Some((n, n))) }));
}
