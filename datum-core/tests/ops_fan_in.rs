//! `merge`, `concat`, `zip` and their kin: order, fairness, endings, loops of demand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use datum_core::stage::CancelCause;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime, sink_probe, source_probe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Both inputs in every form, several budgets and seeds.
fn in_every_form<T: Send + 'static>(
    a: &[u64],
    b: &[u64],
    join: impl Fn(BoxSource<u64>, BoxSource<u64>) -> BoxSource<T>,
    check: impl Fn(Vec<T>, &str),
) {
    for seed in 0..32 {
        for budget in [1, 2, 7, 4096] {
            let mut rt = TestRuntime::new(seed);
            let m = rt.materializer_with_budget(budget);
            let input = |v: &[u64], form: u64| {
                let s = Source::from_iter(v.to_vec()).checked("input");
                match form % 3 {
                    0 => s.boxed(),
                    1 => s.jitter(seed + form).checked("jitter").boxed(),
                    _ => s.jitter(seed).async_boundary().checked("cut").boxed(),
                }
            };
            let line = join(input(a, seed), input(b, seed / 3)).checked("join");
            let done = match seed % 2 {
                0 => line.run_with_on(Sink::collect(), &m),
                _ => line.jitter(seed).run_with_on(Sink::collect(), &m),
            };
            let what = format!("seed {seed}, budget {budget}");
            let mut done = done.unwrap();
            rt.run();
            check(done.try_get().unwrap_or_else(|| panic!("stuck: {what}")).unwrap(), &what);
            assert_eq!(rt.live_tasks(), 0, "{what}");
        }
    }
}

#[test]
fn merge_loses_nothing_and_keeps_each_order() {
    let (a, b): (Vec<u64>, Vec<u64>) = ((0..50).collect(), (100..130).collect());
    for (a, b) in [(&a[..], &b[..]), (&a[..], &[]), (&[], &b[..]), (&[], &[])] {
        in_every_form(
            a,
            b,
            |a, b| a.merge(b).boxed(),
            |got, what| {
                let (from_a, from_b): (Vec<u64>, Vec<u64>) = got.into_iter().partition(|x| *x < 100);
                assert_eq!((&from_a[..], &from_b[..]), (a, b), "{what}");
            },
        );
    }
}

#[test]
fn merge_alternates_between_ready_inputs() {
    let mut rt = TestRuntime::new(1);
    let line = Source::from_iter(0..10u64).merge(Source::from_iter(100..110u64)).checked("merge");
    let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
    let mut from_b = 0;
    for _ in 0..10 {
        probe.request(1);
        rt.run();
        from_b += u64::from(probe.take()[0] >= 100);
    }
    assert_eq!(from_b, 5);
}

#[test]
fn merge_eager_ends_with_the_first_and_delivers_what_it_took() {
    in_every_form(
        &[1, 2, 3],
        &(100..10_000).collect::<Vec<_>>(),
        |a, b| a.merge_eager(b).boxed(),
        |got, what| {
            assert_eq!(got.iter().filter(|x| **x < 100).count(), 3, "{what}");
            assert!(got.len() < 9_000, "{what}");
        },
    );
}

/// A filter that keeps nothing of an endless source, beside a ready one.
#[test]
fn an_always_busy_input_does_not_starve_the_other() {
    for budget in [1, 2, 4096] {
        for swap in [false, true] {
            let mut rt = TestRuntime::new(1);
            let m = rt.materializer_with_budget(budget);
            let idle = || Source::from_iter(std::iter::repeat(1u64)).filter(|_| false);
            let ready = || Source::from_iter(0..10u64);
            let done = if swap {
                ready().merge(idle()).take(10).run_with_on(Sink::collect(), &m)
            } else {
                idle().merge(ready()).take(10).run_with_on(Sink::collect(), &m)
            };
            assert_eq!(rt.outcome(done.unwrap()).unwrap(), (0..10).collect::<Vec<_>>());
            assert!(rt.polls() < 100, "{} polls at budget {budget}", rt.polls());
            assert_eq!(rt.live_tasks(), 0);
        }
    }
}

#[test]
fn concat_is_one_after_the_other() {
    for (a, b) in [(&[1u64, 2][..], &[3u64][..]), (&[], &[3]), (&[1], &[]), (&[], &[])] {
        let want = [a, b].concat();
        in_every_form(a, b, |a, b| a.concat(b).boxed(), |got, what| assert_eq!(got, want, "{what}"));
    }
}

#[test]
fn zip_pairs_until_no_further_pair_can_exist() {
    in_every_form(
        &[1, 2, 3],
        &[10, 20],
        |a, b| a.zip(b).boxed(),
        |got, _| assert_eq!(got, [(1, 10), (2, 20)]),
    );
    in_every_form(&[1], &[10, 20], |a, b| a.zip(b).boxed(), |got, _| assert_eq!(got, [(1, 10)]));
    in_every_form(&[], &[10], |a, b| a.zip(b).boxed(), |got, _| assert_eq!(got, []));
    in_every_form(
        &[1, 2],
        &[3, 4],
        |a, b| a.zip_with(b, |a, b| a * b).boxed(),
        |got, _| assert_eq!(got, [3, 8]),
    );
}

#[test]
fn zip_ends_together_with_its_last_pair() {
    let mut rt = TestRuntime::new(1);
    let (a, left) = source_probe::<u64>();
    let (b, right) = source_probe::<u64>();
    let probe = left.zip(right).checked("zip").run_with_on(sink_probe(), &rt.materializer()).unwrap();
    a.push(1);
    b.push(2);
    b.complete();
    probe.request(1);
    rt.run();
    assert_eq!(probe.take(), [(1, 2)]);
    assert!(matches!(probe.end(), Some(Ok(()))));
    assert!(matches!(a.cancelled(), Some(CancelCause::StageCompleted)));
}

/// The four endings of each input, for every fan-in: failure at once, with the other cancelled by it.
#[test]
fn a_failing_input_fails_the_join_at_once_and_cancels_the_other() {
    type Join = fn(BoxSource<u64>, BoxSource<u64>) -> BoxSource<u64>;
    let joins: [(&str, Join); 6] = [
        ("interleave", |a, b| a.interleave(b, 1).boxed()),
        ("interleave_eager", |a, b| a.interleave_eager(b, 1).boxed()),
        ("merge", |a, b| a.merge(b).boxed()),
        ("merge_eager", |a, b| a.merge_eager(b).boxed()),
        ("concat", |a, b| a.concat(b).boxed()),
        ("zip", |a, b| a.zip_with(b, |a, b| a + b).boxed()),
    ];
    for (name, join) in joins {
        for second in [false, true] {
            for demand in [false, true] {
                let mut rt = TestRuntime::new(1);
                let (a, left) = source_probe::<u64>();
                let (b, right) = source_probe::<u64>();
                let line = join(left.checked("a").boxed(), right.checked("b").boxed()).checked(name);
                let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
                if demand {
                    probe.request(5);
                }
                a.push(1);
                rt.run();
                let (failing, other) = if second { (&b, &a) } else { (&a, &b) };
                let error = failing.fail_some();
                rt.run();
                let what = format!("{name}, second {second}, demand {demand}");
                let end = probe.end().unwrap_or_else(|| panic!("{what}: not seen"));
                assert!(end.unwrap_err().same(&error), "{what}");
                assert!(
                    matches!(other.cancelled(), Some(CancelCause::Failure(cause)) if cause.same(&error)),
                    "{what}"
                );
                assert!(a.dropped() && b.dropped(), "{what}");
            }
        }
    }
}

#[test]
fn fan_ins_ask_for_one_element_of_each_input_before_there_is_demand() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let made = Arc::new(AtomicU64::new(0));
    let source = || {
        let count = made.clone();
        Source::from_iter(0..100u64).map(move |x| {
            count.fetch_add(1, Ordering::Relaxed);
            x
        })
    };
    let merge = source().merge(source()).run_with_on(sink_probe(), &m).unwrap();
    rt.run();
    assert_eq!(made.swap(0, Ordering::Relaxed), 2);
    drop(merge);
    let zip = source().zip(source()).run_with_on(sink_probe(), &m).unwrap();
    rt.run();
    assert_eq!(made.swap(0, Ordering::Relaxed), 2);
    drop(zip);
    let concat = source().concat(source()).run_with_on(sink_probe(), &m).unwrap();
    rt.run();
    assert_eq!(made.load(Ordering::Relaxed), 0, "concat asks for nothing ahead");
    drop(concat);
}

#[test]
fn interleave_takes_segments_in_turn() {
    let (a, b) = (&[1u64, 2, 3, 4, 5][..], &[10u64, 20, 30][..]);
    let segment = |n| move |a: BoxSource<u64>, b: BoxSource<u64>| a.interleave(b, n).boxed();
    in_every_form(a, b, segment(1), |got, what| assert_eq!(got, [1, 10, 2, 20, 3, 30, 4, 5], "{what}"));
    in_every_form(a, b, segment(2), |got, what| assert_eq!(got, [1, 2, 10, 20, 3, 4, 30, 5], "{what}"));
    in_every_form(a, b, segment(9), |got, what| assert_eq!(got, [a, b].concat(), "{what}"));
    in_every_form(&[], b, segment(2), |got, what| assert_eq!(got, b, "{what}"));
    in_every_form(a, &[], segment(2), |got, what| assert_eq!(got, a, "{what}"));
    in_every_form(
        &[1, 2],
        &(10..1000).collect::<Vec<_>>(),
        |a, b| a.interleave_eager(b, 1).boxed(),
        |got, what| assert!(got.starts_with(&[1, 10, 2]) && got.len() <= 4, "{what}: {got:?}"),
    );
}

#[test]
fn concat_lazy_is_one_after_the_other_too() {
    for (a, b) in [(&[1u64, 2][..], &[3u64][..]), (&[], &[3]), (&[1], &[]), (&[], &[])] {
        let want = [a, b].concat();
        in_every_form(
            a,
            b,
            |a, b| a.concat_lazy(move || b).boxed(),
            |got, what| assert_eq!(got, want, "{what}"),
        );
    }
}

/// From a public report: what is asked of a second source whose turn never comes.
#[test]
fn an_unneeded_second_source_is_not_asked_for_anything() {
    for n in [0, 1, 2] {
        let (made, lazily) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (count, lazy_count) = (made.clone(), lazily.clone());
        let mut rt = TestRuntime::new(1);
        let m = rt.materializer();
        let second = Source::unfold(0u64, move |n| {
            count.fetch_add(1, Ordering::Relaxed);
            Some((n + 1, n))
        });
        let line = Source::from_iter(0..2u64).concat(second).checked("concat").take(n);
        assert_eq!(rt.outcome(line.run_with_on(Sink::collect(), &m).unwrap()).unwrap().len() as u64, n);
        assert_eq!(made.load(Ordering::Relaxed), 0, "concat tends it and does not ask");
        let next = move || {
            lazy_count.fetch_add(1, Ordering::Relaxed);
            Source::from_iter(0..9u64)
        };
        let line = Source::from_iter(0..2u64).concat_lazy(next).checked("concat_lazy").take(n);
        assert_eq!(rt.outcome(line.run_with_on(Sink::collect(), &m).unwrap()).unwrap().len() as u64, n);
        assert_eq!(lazily.load(Ordering::Relaxed), 0, "concat_lazy does not even make it");
    }
}

/// From a public report: it must end, with the failure.
#[test]
fn an_empty_source_before_a_failing_one_fails() {
    let error = StreamError::from(ErrorKind::NoElement { stage: "test" });
    for lazy in [false, true] {
        let mut rt = TestRuntime::new(1);
        let m = rt.materializer();
        let e = error.clone();
        let failing = move || Source::<datum_core::blueprint::Unset>::failed::<u64>(e);
        let done = if lazy {
            Source::empty::<u64>().concat_lazy(failing).run_with_on(Sink::collect(), &m)
        } else {
            Source::empty::<u64>().concat(failing()).run_with_on(Sink::collect(), &m)
        };
        assert!(rt.outcome(done.unwrap()).unwrap_err().same(&error));
        assert_eq!(rt.live_tasks(), 0);
    }
}

fn pages(n: u64, last: u64) -> BoxSource<u64> {
    let page = Source::from_iter([n]);
    if n == last { page.boxed() } else { page.concat_lazy(move || pages(n + 1, last)).boxed() }
}

fn empty_pages(n: u64) -> BoxSource<u64> {
    if n == 0 {
        Source::from_iter([7]).boxed()
    } else {
        Source::empty().concat_lazy(move || empty_pages(n - 1)).boxed()
    }
}

/// A hundred thousand tails deep, on a test thread's small stack, unoptimised, the drop included.
#[test]
fn recursive_tails_replace_themselves() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer();
    let sum =
        |line: BoxSource<u64>, m: &Materializer| line.run_with_on(Sink::fold(0, |n, x| n + x), m).unwrap();
    let deep = sum(pages(0, 100_000), &m);
    assert_eq!(rt.outcome(deep).unwrap(), (0..=100_000).sum::<u64>());
    let empty = sum(empty_pages(100_000), &m);
    assert_eq!(rt.outcome(empty).unwrap(), 7);
    // Not begun with a box, demanded one by one, and cancelled in the middle.
    let line = Source::from_iter([1u64]).concat_lazy(|| pages(2, u64::MAX)).checked("pages").take(50_000);
    let taken = line.boxed().jitter(3).run_with_on(Sink::fold(0, |n, _| n + 1), &m).unwrap();
    assert_eq!(rt.outcome(taken).unwrap(), 50_000);
    // Small budgets: each page is a turn.
    let m = rt.materializer_with_budget(3);
    let slow = sum(pages(0, 1000), &m);
    assert_eq!(rt.outcome(slow).unwrap(), (0..=1000).sum::<u64>());
}

#[test]
fn a_shutdown_ends_endless_tails_with_the_running_part() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer_with_budget(20);
    let mut endless = pages(0, u64::MAX).run_with_on(Sink::collect(), &m).unwrap();
    for _ in 0..20 {
        rt.step();
    }
    assert!(endless.try_get().is_none());
    assert!(rt.poll_once(m.shutdown()).is_pending());
    rt.run();
    let got = endless.try_get().unwrap().unwrap();
    assert_eq!(got, (0..got.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_panic_where_the_next_source_is_made_fails_the_stream() {
    let mut rt = TestRuntime::new(1);
    let line = Source::from_iter([1u64]).concat_lazy(|| -> BoxSource<u64> { panic!("next") });
    let error = rt.outcome(line.run_with_on(Sink::collect(), &rt.materializer()).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Panicked { stage: "concat_lazy", .. }));
}

/// Merges in merges at the smallest budgets: no input may only ever meet turns without budget.
#[test]
fn nested_merges_starve_no_input() {
    for budget in [1, 2, 3, 4096] {
        // Which side of each merge the busy one is on, as bits.
        for sides in 0..32_u32 {
            let mut rt = TestRuntime::new(1);
            let m = rt.materializer_with_budget(budget);
            let mut line = Source::from_iter(0..3u64).boxed();
            for depth in 0..5 {
                let busy = Source::from_iter(std::iter::repeat(1u64)).filter(|_| false).boxed();
                let (a, b) = if sides >> depth & 1 == 0 { (line, busy) } else { (busy, line) };
                line = a.merge(b).boxed();
            }
            let done = line.take(3).run_with_on(Sink::collect(), &m).unwrap();
            assert_eq!(rt.outcome(done).unwrap(), [0, 1, 2], "sides {sides:b}, budget {budget}");
            assert!(rt.polls() < 1000, "sides {sides:b}, budget {budget}: {} polls", rt.polls());
        }
    }
}

#[test]
fn or_else_stands_in_for_an_empty_stream_only() {
    for (a, b) in [(&[1u64, 2][..], &[3u64][..]), (&[], &[3, 4]), (&[1], &[]), (&[], &[])] {
        let want = if a.is_empty() { b } else { a };
        in_every_form(a, b, |a, b| a.or_else(b).boxed(), |got, what| assert_eq!(got, want, "{what}"));
    }
    let mut rt = TestRuntime::new(1);
    let (a, first) = source_probe::<u64>();
    let (b, second) = source_probe::<u64>();
    let probe =
        first.or_else(second).checked("or_else").run_with_on(sink_probe(), &rt.materializer()).unwrap();
    probe.request(5);
    b.push(7);
    rt.run();
    assert_eq!((b.taken(), b.cancelled().is_some()), (0, false), "not asked before its turn");
    a.push(1);
    rt.run();
    assert!(matches!(b.cancelled(), Some(CancelCause::StageCompleted)));
    a.complete();
    rt.run();
    assert_eq!(probe.take(), [1]);
    assert!(matches!(probe.end(), Some(Ok(()))));
}

#[test]
fn or_else_fails_at_once_when_either_does_before_it_is_clear() {
    for second in [false, true] {
        for demand in [0, 5] {
            let mut rt = TestRuntime::new(1);
            let (a, first) = source_probe::<u64>();
            let (b, other) = source_probe::<u64>();
            let line = first.checked("a").or_else(other.checked("b")).checked("or_else");
            let probe = line.run_with_on(sink_probe(), &rt.materializer()).unwrap();
            probe.request(demand);
            rt.run();
            let (failing, left) = if second { (&b, &a) } else { (&a, &b) };
            let error = failing.fail_some();
            rt.run();
            let what = format!("second {second}, demand {demand}");
            assert!(probe.end().unwrap_or_else(|| panic!("{what}")).unwrap_err().same(&error), "{what}");
            assert!(matches!(left.cancelled(), Some(CancelCause::Failure(e)) if e.same(&error)), "{what}");
        }
    }
}
