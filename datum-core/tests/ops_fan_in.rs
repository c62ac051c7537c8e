//! `merge`, `concat`, `zip` and their kin: order, fairness, endings, loops of demand.

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
    let joins: [(&str, Join); 4] = [
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
