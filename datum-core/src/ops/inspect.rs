//! `inspect`: a look at each element.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{Driven, Judge, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`inspect`](InspectOps::inspect).
pub trait InspectOps: StreamOps {
    /// Shows each element to `look` and lets it pass.
    ///
    /// A panic in `look` is supervised: `Resume` and `Restart` drop the element.
    ///
    /// - **Emits** when `look` has returned.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let sum = Source::from_iter(1..=3)
    ///     .inspect(|x| assert!(*x < 4))
    ///     .run_with(Sink::fold(0, |sum, x| sum + x))?
    ///     .await?;
    /// assert_eq!(sum, 6);
    /// # Ok(())
    /// # }
    /// ```
    fn inspect<F>(self, look: F) -> Self::Then<Inspect<F>, KeepLeft>
    where
        F: FnMut(&Self::Item) + Send + 'static,
    {
        self.then(Inspect(look))
    }
}

impl<S: StreamOps> InspectOps for S {}

/// The operator of [`inspect`](InspectOps::inspect).
#[derive(Clone, Debug)]
pub struct Inspect<F>(F);

/// The stage of [`inspect`](InspectOps::inspect).
#[derive(Debug)]
pub struct InspectStage<U, F> {
    up: Up<U>,
    look: F,
    supervision: Supervision,
}

linear_operator!([In: Send + 'static, F: FnMut(&In) + Send + 'static] Inspect<F>, In => In, InspectStage<F>,
    |op, up, m| InspectStage { up: Up::new(up), look: op.0, supervision: m.supervision() });

impl<U: Stage, F: FnMut(&U::Out) + Send + 'static> Stage for InspectStage<U, F> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (look, mut judge) = (&mut self.look, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |x| match guard("inspect", || look(&x)) {
            Ok(()) => push(x),
            Err(error) => judge.element_failed(error),
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}
