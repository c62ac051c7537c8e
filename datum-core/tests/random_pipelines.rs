//! Random pipelines of 2 to 12 operators against a naive model: random demand, yield points, failures, kills and aborts.
//!
//! Every operator sits between two contract checks; every run must end by itself (a lost wake hangs it) and leave no
//! task behind. `SEEDS=n` runs more, `SEED=first` starts elsewhere; a failure names its seed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, LingerLog, Rng, TestRuntime, lingering, pause};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// What the pipeline should give.
#[derive(Default)]
struct Model {
    out: Vec<u64>,
    /// The order is not determined any more: compared sorted.
    bag: bool,
    /// A failure is under way; a prefix of `out` may arrive before it.
    fails: bool,
    ops: String,
}

impl Model {
    /// The order is known, and everything will arrive.
    fn exact(&self) -> bool {
        !self.bag && !self.fails
    }
}

fn index(rng: &mut Rng, below: u64) -> usize {
    usize::try_from(rng.below(below)).unwrap()
}

/// A source that closes at once, or one that takes a while.
fn root(v: Vec<u64>, rng: &mut Rng, log: &LingerLog) -> BoxSource<u64> {
    if rng.one_in(2) { lingering(v, rng.below(4), log).boxed() } else { Source::from_iter(v).boxed() }
}

/// A second input and its elements.
fn side(rng: &mut Rng, log: &LingerLog) -> (BoxSource<u64>, Vec<u64>) {
    let v: Vec<u64> = (0..rng.below(12)).map(|_| rng.below(100)).collect();
    let source = root(v.clone(), rng, log).checked("side").jitter(rng.next());
    let window = Attributes::new().window(1 + index(rng, 4));
    let source =
        if rng.one_in(2) { source.async_boundary().with_attributes(window).boxed() } else { source.boxed() };
    (source, v)
}

fn paused(
    seed: u64,
    most: u64,
) -> impl FnMut(u64) -> std::pin::Pin<Box<dyn Future<Output = u64> + Send>> + Send {
    let mut rng = Rng::new(seed);
    move |x| {
        let wait = pause(rng.below(most));
        Box::pin(async move {
            wait.await;
            x
        })
    }
}

type Grown = (&'static str, BoxSource<u64>);

/// Adds one random operator to the line and to the model. `None`: that one does not fit here.
fn grow(s: BoxSource<u64>, m: &mut Model, rng: &mut Rng, log: &LingerLog) -> Grown {
    let (n, seed, k) = (1 + index(rng, 5), rng.next(), rng.below(7));
    let ms = |n: usize| Duration::from_millis(n as u64);
    match rng.below(36) {
        0 => {
            m.out.iter_mut().for_each(|x| *x += k);
            ("map", s.map(move |x| x + k).boxed())
        }
        1 => {
            m.out.retain(|x| x % 7 != k);
            ("filter", s.filter(move |x| x % 7 != k).boxed())
        }
        2 if m.exact() => {
            let n = index(rng, 20);
            m.out.truncate(n);
            ("take", s.take(n as u64).boxed())
        }
        3 if m.exact() => {
            let end = m.out.iter().position(|x| x % 7 == k).unwrap_or(m.out.len());
            m.out.truncate(end);
            ("take_while", s.take_while(move |x| x % 7 != k).boxed())
        }
        4 if m.exact() => {
            let end = m.out.iter().position(|x| x % 7 == k).map_or(m.out.len(), |at| at + 1);
            m.out.truncate(end);
            ("take_while_inclusive", s.take_while_inclusive(move |x| x % 7 != k).boxed())
        }
        5 if !m.bag => {
            let n = n.min(m.out.len());
            m.out.drain(..n);
            ("drop", s.drop(n as u64).boxed())
        }
        6 if !m.bag => {
            let end = m.out.iter().position(|x| x % 7 == k).unwrap_or(m.out.len());
            m.out.drain(..end);
            ("drop_while", s.drop_while(move |x| x % 7 != k).boxed())
        }
        7 => {
            m.out = m.out.iter().flat_map(|x| (0..x % 4).map(move |i| x + i)).collect();
            ("map_concat", s.map_concat(|x| (0..x % 4).map(move |i| x + i)).boxed())
        }
        8 => ("map_async", s.map_async(n, paused(seed, 4)).boxed()),
        9 => {
            m.bag = true;
            ("map_async_unordered", s.map_async_unordered(n, paused(seed, 4)).boxed())
        }
        10 => ("buffer", s.buffer(n, OverflowStrategy::Backpressure).boxed()),
        11 | 12 => ("boundary", s.async_boundary().with_attributes(Attributes::new().window(n)).boxed()),
        13 if !m.fails => {
            let (other, v) = side(rng, log);
            m.out.extend(v);
            ("concat", s.concat(other).boxed())
        }
        14 if !m.fails => {
            let (other, v) = side(rng, log);
            m.out.extend(v);
            ("concat_lazy", s.concat_lazy(move || other).boxed())
        }
        15 if m.exact() => {
            let (other, v) = side(rng, log);
            m.out = m.out.iter().zip(v).map(|(a, b)| a * 3 + b).collect();
            ("zip", s.zip(other).map(|(a, b)| a * 3 + b).boxed())
        }
        16 if m.exact() => {
            let (other, v) = side(rng, log);
            m.out = m.out.iter().zip(v).map(|(a, b)| a + b).collect();
            ("zip_with", s.zip_with(other, |a, b| a + b).boxed())
        }
        17 | 18 => {
            let (other, v) = side(rng, log);
            m.out.extend(v);
            m.bag = true;
            ("merge", s.merge(other).boxed())
        }
        19 if m.exact() => {
            let (other, v) = side(rng, log);
            let (mut a, mut b) = (m.out.chunks(n), v.chunks(n));
            let mut mixed = Vec::new();
            loop {
                let (x, y) = (a.next(), b.next());
                mixed.extend(x.into_iter().chain(y).flatten());
                if x.is_none() && y.is_none() {
                    break;
                }
            }
            m.out = mixed;
            ("interleave", s.interleave(other, n as u64).boxed())
        }
        20 if !m.bag => {
            let mut sum = k;
            let states = m.out.iter().map(|x| {
                sum += x;
                sum
            });
            m.out = std::iter::once(k).chain(states).collect();
            ("scan", s.scan(k, |a, x| a + x).boxed())
        }
        21 if !m.fails => {
            m.out = vec![m.out.iter().sum::<u64>() + k];
            m.bag = false;
            ("fold", s.fold(k, |a, x| a + x).boxed())
        }
        22 if !m.fails && !m.out.is_empty() => {
            m.out = vec![*m.out.iter().max().unwrap()];
            m.bag = false;
            ("reduce", s.reduce(u64::max).boxed())
        }
        23 if m.exact() => {
            m.out = m.out.chunks(n).map(|c| c.iter().sum()).collect();
            ("grouped", s.grouped(n).map(|c| c.iter().sum()).boxed())
        }
        24 if m.exact() => {
            // Long enough that only the size closes a group.
            m.out = m.out.chunks(n).map(|c| c.iter().sum()).collect();
            let hour = Duration::from_secs(3600);
            ("grouped_within", s.grouped_within(n, hour).map(|c| c.iter().sum()).boxed())
        }
        25 => {
            let flat = s.grouped_within(n, ms(1)).map_concat(|c| c);
            ("grouped_within, flat", flat.boxed())
        }
        26 if m.exact() => {
            let step = 1 + index(rng, 6);
            m.out = windows(&m.out, n, step).iter().map(|w| w.iter().sum::<u64>()).collect();
            ("sliding", s.sliding(n, step).map(|w| w.iter().sum()).boxed())
        }
        27 if !m.fails => {
            m.out = vec![m.out.iter().sum()];
            m.bag = false;
            let busy = s.conflate(|a, b| a + b).checked("conflate").map_async(1, paused(seed, 5));
            ("conflate", busy.fold(0, |a, x| a + x).boxed())
        }
        28 => ("throttle", s.throttle(Rate::new(1, ms(n)).burst(k)).boxed()),
        29 => ("inspect", s.inspect(|_| {}).boxed()),
        30 => ("timeouts", s.idle_timeout(Duration::from_secs(3600)).boxed()),
        31 if m.exact() => {
            // Fails at an element, and recovers with one.
            let at = index(rng, 10);
            if at < m.out.len() {
                m.out.truncate(at);
                m.out.push(k);
            }
            ("recover", failing(s, at).checked("failing").recover(move |_| Some(k)).boxed())
        }
        32 if m.exact() => {
            let at = index(rng, 30);
            m.fails = at < m.out.len();
            ("panic", failing(s, at).boxed())
        }
        33 if m.exact() => {
            // Every failing element is dropped.
            m.out.retain(|x| x % 7 != k);
            let f = move |x| async move {
                pause(x % 3).await;
                if x % 7 == k { Err("dropped") } else { Ok(x) }
            };
            let resume = Attributes::new().supervision(Supervision::resume());
            // On a flow: the attribute is for this operator alone.
            let flow = Flow::new().try_map_async(n, f).with_attributes(resume);
            ("try_map_async", s.via(flow).boxed())
        }
        34 if !m.fails => {
            let (other, v) = side(rng, log);
            if m.out.is_empty() {
                m.out = v;
            }
            ("or_else", s.or_else(other).boxed())
        }
        _ => ("jitter", s.jitter(seed).boxed()),
    }
}

/// Panics in place of the element at `at`.
fn failing(s: BoxSource<u64>, at: usize) -> BoxSource<u64> {
    let mut n = 0;
    s.map(move |x| {
        n += 1;
        if n == at + 1 { panic!("boom") } else { x }
    })
    .boxed()
}

fn windows(v: &[u64], n: usize, step: usize) -> Vec<&[u64]> {
    let mut out = Vec::new();
    let (mut at, mut seen) = (0, 0);
    while at < v.len() && seen < v.len() {
        let end = (at + n).min(v.len());
        out.push(&v[at..end]);
        seen = end;
        at += step;
    }
    out
}

fn one(seed: u64) {
    let mut rng = Rng::new(seed.wrapping_mul(7919) + 1);
    let mut rt = TestRuntime::new(seed);
    let budget = [1, 2, 3, 17, 4096][index(&mut rng, 5)];
    let mat = rt.materializer_with_budget(budget);
    let input: Vec<u64> = (0..rng.below(60)).map(|_| rng.below(100)).collect();
    let log = LingerLog::new();
    let mut line = root(input.clone(), &mut rng, &log).checked("root").boxed();
    let mut m = Model { out: input, ..Model::default() };
    for _ in 0..2 + rng.below(11) {
        let (name, grown) = grow(line, &mut m, &mut rng, &log);
        write!(m.ops, " {name}").unwrap();
        line = grown.checked(name).boxed();
    }
    let ending = rng.below(6);
    let what = format!("seed {seed}, budget {budget}, ending {ending}, ops{}", m.ops);
    let (switch, mut done) = line
        .kill_switch(Keep::right)
        .jitter(seed)
        .to_keep(Sink::collect(), Keep::both)
        .run_on(&mat)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let cut = ending >= 3;
    if cut {
        for _ in 0..rng.below(150) {
            rt.step();
        }
        match ending {
            3 => switch.shutdown(),
            4 => switch.abort(ErrorKind::NoElement { stage: "kill" }),
            _ => mat.abort(),
        }
    }
    rt.run();
    let end = done.try_get().unwrap_or_else(|| panic!("not ended: {what}"));
    match end {
        Ok(mut got) => {
            assert!(!m.fails || cut, "no failure: {what}");
            if m.bag {
                got.sort_unstable();
                m.out.sort_unstable();
            }
            if ending == 3 && m.bag {
                assert!(got.len() <= m.out.len(), "{what}");
            } else if ending == 3 {
                assert!(m.out.starts_with(&got), "{what}: {got:?} {:?}", m.out);
            } else {
                assert_eq!(got, m.out, "{what}");
            }
        }
        Err(error) => match error.kind() {
            ErrorKind::Panicked { message, .. } => assert!(m.fails && message == "boom", "{what}: {error}"),
            ErrorKind::Aborted => assert_eq!(ending, 5, "{what}"),
            ErrorKind::NoElement { stage: "kill" } => assert_eq!(ending, 4, "{what}"),
            _ => panic!("{what}: {error}"),
        },
    }
    assert_eq!(rt.live_tasks(), 0, "tasks left: {what}");
    assert_eq!(mat.running(), 0, "islands left: {what}");
    assert_eq!(log.opened(), log.dropped(), "sources left: {what}");
    // An abrupt stop drops; every other ending closes, and does so before the outcome is seen.
    assert!(log.closed() == log.opened() || ending == 5, "not closed: {what}");
}

#[test]
fn random_pipelines_agree_with_the_model() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |s| s.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
    };
    let (seeds, first) = (number("SEEDS", 3000), number("SEED", 0));
    println!("random pipelines: SEEDS={seeds} SEED={first}");
    std::panic::set_hook(Box::new(|info| {
        // The pipelines' own failures are part of the test.
        if info.payload().downcast_ref::<&str>() != Some(&"boom") {
            eprintln!("{info}");
        }
    }));
    for seed in first..first + seeds {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| one(seed))) {
            eprintln!("failed with SEED={seed} SEEDS=1");
            resume_unwind(payload);
        }
    }
}
