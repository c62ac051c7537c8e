//! `scan`: every state of a running fold.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{Driven, Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`scan`](ScanOps::scan).
pub trait ScanOps: StreamOps {
    /// Emits `zero`, then after each element the state that `f` makes of the last state and the element.
    ///
    /// A panic in `f` (or in the state's `clone`) is supervised: `Resume` drops the element and keeps the state;
    /// `Restart` drops it, goes back to `zero`, and emits `zero` again.
    ///
    /// - **Emits** `zero` at the first demand, then once per element.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when upstream completes and `zero` was emitted.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let sums = Source::from_iter(1..=3).scan(0, |sum, x| sum + x).run_with(Sink::collect())?.await?;
    /// assert_eq!(sums, [0, 1, 3, 6]);
    /// # Ok(())
    /// # }
    /// ```
    fn scan<A, F>(self, zero: A, f: F) -> Self::Then<Scan<A, F>, KeepLeft>
    where
        A: Clone + Send + 'static,
        F: FnMut(&A, Self::Item) -> A + Send + 'static,
    {
        self.then(Scan { zero, f })
    }
}

impl<S: StreamOps> ScanOps for S {}

/// The operator of [`scan`](ScanOps::scan).
#[derive(Clone, Debug)]
pub struct Scan<A, F> {
    zero: A,
    f: F,
}

/// The stage of [`scan`](ScanOps::scan).
#[derive(Debug)]
pub struct ScanStage<U, A, F> {
    up: Up<U>,
    zero: A,
    /// `None` before `zero` was emitted.
    state: Option<A>,
    f: F,
    supervision: Supervision,
}

linear_operator!(
    [In: Send + 'static, A: Clone + Send + 'static, F: FnMut(&A, In) -> A + Send + 'static]
    Scan<A, F>, In => A, ScanStage<A, F>,
    |op, up, m| ScanStage {
        up: Up::new(up), zero: op.zero, state: None, f: op.f, supervision: m.supervision() });

impl<U, A, F> Stage for ScanStage<U, A, F>
where
    U: Stage,
    A: Clone + Send + 'static,
    F: FnMut(&A, U::Out) -> A + Send + 'static,
{
    type Out = A;

    fn drive<P: FnMut(A) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let ScanStage { up, zero, state, f, supervision } = self;
        if state.is_none() {
            let (kept, first) = match guard("scan", || (zero.clone(), zero.clone())) {
                Ok(both) => both,
                Err(error) => return up.fail(error, cx),
            };
            *state = Some(kept);
            up.settle(cx);
            if push(first).is_break() {
                return Ok(if up.live() { Progress::Stopped } else { Progress::Complete });
            }
        }
        if !up.live() {
            return Ok(Progress::Complete);
        }
        let state = state.as_mut().expect("set above");
        let mut judge = Judge::new(supervision);
        let answer = up.drive(cx, |x| {
            let next = guard("scan", || {
                let next = f(state, x);
                (next.clone(), next)
            });
            match next {
                Ok((kept, next)) => {
                    *state = kept;
                    push(next)
                }
                Err(error) => {
                    let mut restarted = None;
                    let flow = judge.state_failed(error, || {
                        restarted = guard("scan", || (zero.clone(), zero.clone())).ok();
                    });
                    match restarted {
                        Some((kept, again)) => {
                            *state = kept;
                            push(again)
                        }
                        None => flow,
                    }
                }
            }
        });
        judge.conclude(answer, up, cx)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            self.up.tend(cx)?;
        }
        let over = self.state.is_some() && !self.up.live();
        Ok(if over { Progress::Complete } else { Progress::Pending })
    }

    forward!(cancel poll_closed);
}
