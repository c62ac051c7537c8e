//! Running one line in every form that must make no difference.

use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime};

/// Runs `line` over every source form (plain, boxed, across a boundary, jittered) with several budgets and seeds, and
/// demands that each gives `want`, leaves no task behind and ends by itself.
#[allow(dead_code, reason = "not every test file needs every helper")]
#[track_caller]
pub(crate) fn same_everywhere<T, O>(
    input: &[u64],
    line: impl Fn() -> Flow<u64, O>,
    want: Result<&[T], fn(&StreamError) -> bool>,
) where
    T: PartialEq + std::fmt::Debug + Send + Clone + 'static,
    O: Operator<u64, Out = T>,
{
    for seed in 0..24 {
        for budget in [1, 2, 5, 4096] {
            let mut rt = TestRuntime::new(seed);
            let m = rt.materializer_with_budget(budget);
            let source = || Source::from_iter(input.to_vec()).checked("source");
            let done = match seed % 4 {
                0 => source().via(line()).checked("line").run_with_on(Sink::collect(), &m),
                1 => {
                    let s = source().jitter(seed).boxed().via(line()).boxed();
                    s.checked("line").jitter(seed + 1).run_with_on(Sink::collect(), &m)
                }
                2 => {
                    let s = source().async_boundary().checked("cut").via(line()).checked("line");
                    s.async_boundary().jitter(seed).run_with_on(Sink::collect(), &m)
                }
                _ => {
                    let s = source().jitter(seed).checked("jitter").via(line().boxed()).checked("line");
                    s.jitter(seed + 7).run_with_on(Sink::collect(), &m)
                }
            };
            let got = rt.outcome(done.expect("builds"));
            match (&got, &want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "seed {seed}, budget {budget}"),
                (Err(error), Err(expected)) => {
                    assert!(expected(error), "seed {seed}, budget {budget}: {error}");
                }
                _ => panic!("seed {seed}, budget {budget}: {got:?}"),
            }
            assert_eq!(rt.live_tasks(), 0, "seed {seed}, budget {budget}: tasks left");
        }
    }
}

/// A panic of the given stage.
#[allow(dead_code, reason = "not every test file needs every helper")]
pub(crate) fn panicked(error: &StreamError) -> bool {
    matches!(error.kind(), ErrorKind::Panicked { .. })
}
