//! `take_while`: elements up to the first that ends them, without or with it.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{Driven, Judge, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`take_while`](TakeWhileOps::take_while) and [`take_while_inclusive`](TakeWhileOps::take_while_inclusive).
pub trait TakeWhileOps: StreamOps {
    /// Lets elements pass as long as `keep` is true; completes at the first for which it is false, without it.
    ///
    /// A panic in `keep` is supervised: `Resume` and `Restart` drop the element.
    ///
    /// - **Emits** while `keep` is true.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when `keep` is false for the first time, or when upstream completes.
    /// - **Cancels** when `keep` is false for the first time, or when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let small = Source::from_iter(1..).take_while(|x| *x < 4).run_with(Sink::collect())?.await?;
    /// assert_eq!(small, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn take_while<F>(self, keep: F) -> Self::Then<TakeWhile<F>, KeepLeft>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        self.then(TakeWhile { keep, inclusive: false })
    }

    /// As [`take_while`](TakeWhileOps::take_while), and the first element for which `keep` is false passes too, as the
    /// last one.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let until = Source::from_iter(1..).take_while_inclusive(|x| *x < 4).run_with(Sink::collect())?.await?;
    /// assert_eq!(until, [1, 2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    fn take_while_inclusive<F>(self, keep: F) -> Self::Then<TakeWhile<F>, KeepLeft>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        self.then(TakeWhile { keep, inclusive: true })
    }
}

impl<S: StreamOps> TakeWhileOps for S {}

/// The operator of [`take_while`](TakeWhileOps::take_while).
#[derive(Clone, Debug)]
pub struct TakeWhile<F> {
    keep: F,
    inclusive: bool,
}

/// The stage of [`take_while`](TakeWhileOps::take_while).
#[derive(Debug)]
pub struct TakeWhileStage<U, F> {
    up: Up<U>,
    keep: F,
    inclusive: bool,
    supervision: Supervision,
}

linear_operator!([In: Send + 'static, F: FnMut(&In) -> bool + Send + 'static] TakeWhile<F>, In => In, TakeWhileStage<F>,
    |op, up, m| TakeWhileStage {
        up: Up::new(up), keep: op.keep, inclusive: op.inclusive, supervision: m.supervision() });

impl<U: Stage, F: FnMut(&U::Out) -> bool + Send + 'static> Stage for TakeWhileStage<U, F> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (keep, inclusive, mut judge) = (&mut self.keep, self.inclusive, Judge::new(&self.supervision));
        let mut over = false;
        let answer = self.up.drive(cx, |x| match guard("take_while", || keep(&x)) {
            Ok(true) => push(x),
            Ok(false) => {
                over = true;
                if inclusive {
                    // The last one: what downstream answers changes nothing.
                    let _ = push(x);
                }
                Push::Break(())
            }
            Err(error) => judge.element_failed(error),
        });
        // A failure that came with the last element is not wanted any more either.
        if over { self.up.complete(cx) } else { judge.conclude(answer, &mut self.up, cx) }
    }

    forward!(tend cancel poll_closed);
}
