//! What each operator that calls user code does when that fails: stop, resume, restart; panics and errors; one
//! question per failure.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime, pause};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The element at which user code fails.
const BAD: u64 = 3;

fn bad(x: u64) -> u64 {
    assert!(x != BAD, "bad element");
    x
}

fn tried(x: u64) -> Result<u64, std::io::Error> {
    if x == BAD { Err(std::io::Error::other("bad element")) } else { Ok(x) }
}

/// One operator over 1, 2, 3, 4, 5 whose user code fails at 3.
struct Case {
    name: &'static str,
    line: fn(BoxSource<u64>) -> BoxSource<u64>,
    resumed: &'static [u64],
    restarted: &'static [u64],
}

const fn case(
    name: &'static str,
    line: fn(BoxSource<u64>) -> BoxSource<u64>,
    resumed: &'static [u64],
    restarted: &'static [u64],
) -> Case {
    Case { name, line, resumed, restarted }
}

/// Drops the element, whichever of the two it is: an operator without state.
const fn stateless(name: &'static str, line: fn(BoxSource<u64>) -> BoxSource<u64>) -> Case {
    case(name, line, &[1, 2, 4, 5], &[1, 2, 4, 5])
}

const CASES: &[Case] = &[
    stateless("map", |s| s.map(bad).boxed()),
    stateless("try_map", |s| s.try_map(tried).boxed()),
    stateless("try_map panics", |s| s.try_map(|x| Ok::<_, std::io::Error>(bad(x))).boxed()),
    stateless("filter", |s| s.filter(|x| bad(*x) > 0).boxed()),
    stateless("filter_map", |s| s.filter_map(|x| Some(bad(x))).boxed()),
    stateless("inspect", |s| s.inspect(|x| assert_eq!(bad(*x), *x)).boxed()),
    stateless("take_while", |s| s.take_while(|x| bad(*x) > 0).boxed()),
    stateless("take_while_inclusive", |s| s.take_while_inclusive(|x| bad(*x) > 0).boxed()),
    // Asked about 1, 2 and the bad one: all dropped; about 4, which stays; not asked about 5.
    case("drop_while", |s| s.drop_while(|x| bad(*x) < 3).boxed(), &[4, 5], &[4, 5]),
    stateless("map_concat", |s| s.map_concat(|x| [bad(x)]).boxed()),
    // The iterator fails at its second item: what it had given stays given.
    case(
        "map_concat's iterator",
        |s| s.map_concat(|x| (0..2).map(move |i| if i == 1 { bad(x) } else { 0 })).boxed(),
        &[0, 1, 0, 2, 0, 0, 4, 0, 5],
        &[0, 1, 0, 2, 0, 0, 4, 0, 5],
    ),
    stateless("map_async", |s| s.map_async(2, |x| async move { bad(x) }).boxed()),
    stateless("map_async's closure", |s| {
        s.map_async(2, |x| {
            let x = bad(x);
            async move { x }
        })
        .boxed()
    }),
    stateless("map_async, later", |s| {
        s.map_async(2, |x| async move {
            pause(x % 3).await;
            bad(x)
        })
        .boxed()
    }),
    stateless("try_map_async", |s| {
        s.try_map_async(2, |x| async move {
            pause(x % 2).await;
            tried(x)
        })
        .boxed()
    }),
    stateless("map_async_unordered", |s| s.map_async_unordered(1, |x| async move { bad(x) }).boxed()),
    stateless("try_map_async_unordered", |s| {
        s.try_map_async_unordered(1, |x| async move {
            pause(1).await;
            tried(x)
        })
        .boxed()
    }),
    // The state is kept, or goes back to zero, which is then emitted again.
    case("scan", |s| s.scan(0, |a, x| a + bad(x)).boxed(), &[0, 1, 3, 7, 12], &[0, 1, 3, 0, 4, 9]),
    case("fold", |s| s.fold(100, |a, x| a + bad(x)).boxed(), &[112], &[109]),
    case("reduce", |s| s.reduce(|a, x| a + bad(x)).boxed(), &[12], &[9]),
    // The pair is dropped.
    case(
        "zip_with",
        |s| s.zip_with(Source::from_iter(10..20u64), |a, b| bad(a) + b).boxed(),
        &[11, 13, 17, 19],
        &[11, 13, 17, 19],
    ),
];

fn source(seed: u64) -> BoxSource<u64> {
    let source = Source::from_iter(1..6u64).checked("source");
    match seed % 3 {
        0 => source.boxed(),
        1 => source.jitter(seed).boxed(),
        _ => source.async_boundary().checked("cut").boxed(),
    }
}

fn run(case: &Case, directive: Directive, seed: u64) -> (Result<Vec<u64>, StreamError>, u64) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let supervision = Supervision::decide(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        directive
    });
    let mut rt = TestRuntime::new(seed);
    let m = rt.materializer_with_budget([1, 3, 4096][usize::try_from(seed % 3).unwrap()]);
    let line = (case.line)(source(seed)).with_attributes(Attributes::new().supervision(supervision));
    let outcome = rt.outcome(line.checked("line").jitter(seed).run_with_on(Sink::collect(), &m).unwrap());
    assert_eq!(rt.live_tasks(), 0, "{}", case.name);
    (outcome, asked.load(Ordering::Relaxed))
}

#[test]
fn each_operator_resumes_restarts_and_stops_as_documented() {
    for case in CASES {
        for seed in 0..30 {
            let what = format!("{}, seed {seed}", case.name);
            let (outcome, asked) = run(case, Directive::Resume, seed);
            assert_eq!((outcome.unwrap(), asked), (case.resumed.to_vec(), 1), "resume {what}");
            let (outcome, asked) = run(case, Directive::Restart, seed);
            assert_eq!((outcome.unwrap(), asked), (case.restarted.to_vec(), 1), "restart {what}");
            let (outcome, asked) = run(case, Directive::Stop, seed);
            let error = outcome.unwrap_err();
            assert_eq!(asked, 1, "stop {what}");
            let text = format!("{error}");
            assert!(text.contains("bad element"), "{what}: {text}");
        }
    }
}

#[test]
fn conflate_keeps_or_drops_its_aggregate() {
    let run = |directive: Option<Directive>, at: u64| {
        let mut rt = TestRuntime::new(1);
        let mut m = rt.materializer();
        if let Some(directive) = directive {
            m = m.with_attributes(Attributes::new().supervision(Supervision::decide(move |_| directive)));
        }
        let (source, line) = datum_testkit::source_probe::<u64>();
        let seed = move |x| {
            assert!(x != 1 || at != 1, "bad seed");
            x
        };
        let line = line.conflate_with_seed(seed, |a, x| a + bad(x)).checked("conflate");
        let probe = line.run_with_on(datum_testkit::sink_probe(), &m).unwrap();
        (1..6).for_each(|x| source.push(x));
        rt.run();
        source.complete();
        probe.request(9);
        rt.run();
        (probe.take(), probe.end().unwrap())
    };
    assert_eq!(run(Some(Directive::Resume), 0).0, [12]);
    assert_eq!(run(Some(Directive::Restart), 0).0, [9]);
    assert_eq!(run(Some(Directive::Resume), 1).0, [11], "a failed seed drops its element alone");
    assert!(run(None, 0).1.is_err());
}

#[test]
fn sinks_that_call_user_code_are_supervised_too() {
    let sums = |directive: Directive| {
        let mut rt = TestRuntime::new(1);
        let m = rt
            .materializer()
            .with_attributes(Attributes::new().supervision(Supervision::decide(move |_| directive)));
        let fold = source(0).run_with_on(Sink::fold(0, |a, x| a + bad(x)), &m).unwrap();
        let each = source(0).run_with_on(Sink::foreach(|x| assert_eq!(bad(x), x)), &m).unwrap();
        let f = |x| async move {
            pause(x % 2).await;
            bad(x);
        };
        let each_async = source(0).run_with_on(Sink::foreach_async(2, f), &m).unwrap();
        (rt.outcome(fold), rt.outcome(each).is_ok(), rt.outcome(each_async).is_ok())
    };
    let (fold, each, each_async) = sums(Directive::Resume);
    assert_eq!((fold.unwrap(), each, each_async), (12, true, true));
    let (fold, each, each_async) = sums(Directive::Restart);
    assert_eq!((fold.unwrap(), each, each_async), (9, true, true));
    let (fold, each, each_async) = sums(Directive::Stop);
    assert_eq!((fold.is_err(), each, each_async), (true, false, false));
}

#[test]
fn the_innermost_decider_counts_and_one_that_panics_stops() {
    let mut rt = TestRuntime::new(1);
    let m = rt.materializer().with_attributes(Attributes::new().supervision(Supervision::stop()));
    let resume = Attributes::new().supervision(Supervision::resume());
    let inner = source(0).map(bad).with_attributes(resume.clone());
    let outer = Attributes::new().supervision(Supervision::decide(|_| panic!("not asked")));
    let kept = inner.with_attributes(outer.clone()).run_with_on(Sink::collect(), &m).unwrap();
    assert_eq!(rt.outcome(kept).unwrap(), [1, 2, 4, 5]);
    let stopped = source(0).map(bad).with_attributes(outer).run_with_on(Sink::collect(), &m).unwrap();
    let error = rt.outcome(stopped).unwrap_err();
    assert!(error.to_string().contains("bad element"), "the failure itself, not the decider's: {error}");
    // Across a boundary as well: the attribute sticks to the island it encloses.
    let cut = source(0).map(bad).async_boundary().map(|x| x).with_attributes(resume);
    let cut = cut.run_with_on(Sink::collect(), &m).unwrap();
    assert_eq!(rt.outcome(cut).unwrap(), [1, 2, 4, 5]);
}
