//! `take`: the first elements only.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{Driven, Push, Stage, StageCx, Up};
use crate::{forward, linear_operator};

/// Adds [`take`](TakeOps::take).
pub trait TakeOps: StreamOps {
    /// Lets the first `n` elements pass, then completes, in the call that let the last one pass. `take(0)` completes
    /// without asking its upstream for anything.
    ///
    /// - **Emits** while fewer than `n` have passed.
    /// - **Backpressures** when downstream does.
    /// - **Completes** after the `n`th element, or when upstream completes.
    /// - **Cancels** after the `n`th element, or when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let first = Source::from_iter(1..).take(3).run_with(Sink::collect())?.await?;
    /// assert_eq!(first, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn take(self, n: u64) -> Self::Then<Take, KeepLeft> {
        self.then(Take(n))
    }
}

impl<S: StreamOps> TakeOps for S {}

/// The operator of [`take`](TakeOps::take).
#[derive(Clone, Debug)]
pub struct Take(u64);

/// The stage of [`take`](TakeOps::take).
#[derive(Debug)]
pub struct TakeStage<U> {
    up: Up<U>,
    left: u64,
}

linear_operator!([In: Send + 'static] Take, In => In, TakeStage<>, |op, up, _m| TakeStage { up: Up::new(up), left: op.0 });

impl<U: Stage> Stage for TakeStage<U> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if self.left == 0 {
            return self.up.complete(cx);
        }
        let left = &mut self.left;
        let answer = self.up.drive(cx, |x| {
            *left -= 1;
            let flow = push(x);
            if *left == 0 { Push::Break(()) } else { flow }
        });
        // A failure that came with the last element is not wanted any more either.
        if self.left == 0 { self.up.complete(cx) } else { answer }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if self.left == 0 { self.up.complete(cx) } else { self.up.tend(cx) }
    }

    forward!(cancel poll_closed);
}
