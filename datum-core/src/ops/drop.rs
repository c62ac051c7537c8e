//! `drop` and `drop_while`: without the first elements.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{Driven, Judge, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`drop`](DropOps::drop).
pub trait DropOps: StreamOps {
    /// Drops the first `n` elements. `drop(0)` changes nothing.
    ///
    /// - **Emits** once `n` elements have been dropped.
    /// - **Backpressures** when downstream does and `n` elements have been dropped.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::from_iter(1..=5).drop(3).run_with(Sink::collect())?.await?, [4, 5]);
    /// # Ok(())
    /// # }
    /// ```
    fn drop(self, n: u64) -> Self::Then<Drop, KeepLeft> {
        self.then(Drop(n))
    }
}

impl<S: StreamOps> DropOps for S {}

/// The operator of [`drop`](DropOps::drop).
#[derive(Clone, Debug)]
pub struct Drop(u64);

/// The stage of [`drop`](DropOps::drop).
#[derive(Debug)]
pub struct DropStage<U> {
    up: Up<U>,
    left: u64,
}

linear_operator!([In: Send + 'static] Drop, In => In, DropStage<>, |op, up, _m| DropStage { up: Up::new(up), left: op.0 });

impl<U: Stage> Stage for DropStage<U> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let left = &mut self.left;
        self.up.drive(cx, |x| {
            if *left == 0 {
                return push(x);
            }
            *left -= 1;
            Push::Continue(())
        })
    }

    forward!(tend cancel poll_closed);
}

/// Adds [`drop_while`](DropWhileOps::drop_while).
pub trait DropWhileOps: StreamOps {
    /// Drops elements as long as `skip` is true. From the first for which it is false on, everything passes and `skip`
    /// is not called again.
    ///
    /// A panic in `skip` is supervised: `Resume` and `Restart` drop the element and ask about the next.
    ///
    /// - **Emits** from the first element on for which `skip` was false.
    /// - **Backpressures** when downstream does and elements pass.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let rest = Source::from_iter([1, 2, 9, 1]).drop_while(|x| *x < 5).run_with(Sink::collect())?.await?;
    /// assert_eq!(rest, [9, 1]);
    /// # Ok(())
    /// # }
    /// ```
    fn drop_while<F>(self, skip: F) -> Self::Then<DropWhile<F>, KeepLeft>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        self.then(DropWhile(skip))
    }
}

impl<S: StreamOps> DropWhileOps for S {}

/// The operator of [`drop_while`](DropWhileOps::drop_while).
#[derive(Clone, Debug)]
pub struct DropWhile<F>(F);

/// The stage of [`drop_while`](DropWhileOps::drop_while).
#[derive(Debug)]
pub struct DropWhileStage<U, F> {
    up: Up<U>,
    skip: F,
    skipping: bool,
    supervision: Supervision,
}

linear_operator!([In: Send + 'static, F: FnMut(&In) -> bool + Send + 'static] DropWhile<F>, In => In, DropWhileStage<F>,
    |op, up, m| DropWhileStage { up: Up::new(up), skip: op.0, skipping: true, supervision: m.supervision() });

impl<U: Stage, F: FnMut(&U::Out) -> bool + Send + 'static> Stage for DropWhileStage<U, F> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (skip, skipping, mut judge) =
            (&mut self.skip, &mut self.skipping, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |x| {
            if !*skipping {
                return push(x);
            }
            match guard("drop_while", || skip(&x)) {
                Ok(true) => Push::Continue(()),
                Ok(false) => {
                    *skipping = false;
                    push(x)
                }
                Err(error) => judge.element_failed(error),
            }
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}
