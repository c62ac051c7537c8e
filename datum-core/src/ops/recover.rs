//! `recover`: a failure becomes one last element.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::error::StreamError;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up, guard};
use crate::{forward, linear_operator};
use std::fmt;

/// Adds [`recover`](RecoverOps::recover).
pub trait RecoverOps: StreamOps {
    /// Turns a failure of the upstream into one last element; `f` may also let it pass by giving `None`.
    ///
    /// A panic in `f` is not supervised: it fails the stream in place of the failure that `f` was given.
    ///
    /// - **Emits** when upstream does, and the last element when downstream asks after the failure.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when upstream completes, or after the last element.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let all = Source::from_iter(["1", "x", "3"])
    ///     .try_map(|s| s.parse::<i32>())
    ///     .recover(|_| Some(-1))
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(all, [1, -1]);
    /// # Ok(())
    /// # }
    /// ```
    fn recover<F>(self, f: F) -> Self::Then<Recover<F>, KeepLeft>
    where
        F: FnOnce(StreamError) -> Option<Self::Item> + Send + 'static,
    {
        self.then(Recover(f))
    }
}

impl<S: StreamOps> RecoverOps for S {}

/// The operator of [`recover`](RecoverOps::recover).
#[derive(Clone, Debug)]
pub struct Recover<F>(F);

/// The stage of [`recover`](RecoverOps::recover).
pub struct RecoverStage<U: Stage, F> {
    up: Up<U>,
    f: Option<F>,
    last: Option<U::Out>,
}

impl<U: Stage, F> fmt::Debug for RecoverStage<U, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoverStage").field("recovered", &self.last.is_some()).finish_non_exhaustive()
    }
}

linear_operator!([In: Send + 'static, F: FnOnce(StreamError) -> Option<In> + Send + 'static] Recover<F>, In => In,
    RecoverStage<F>, |op, up, _m| RecoverStage { up: Up::new(up), f: Some(op.0), last: None });

impl<U: Stage, F: FnOnce(StreamError) -> Option<U::Out> + Send + 'static> RecoverStage<U, F> {
    /// The upstream has failed: its last element, or the failure after all.
    #[cold]
    fn recover(&mut self, error: StreamError) -> Result<(), StreamError> {
        let Some(f) = self.f.take() else {
            return Err(error);
        };
        let kept = error.clone();
        self.last = guard("recover", || f(error))?;
        if self.last.is_some() { Ok(()) } else { Err(kept) }
    }
}

impl<U: Stage, F: FnOnce(StreamError) -> Option<U::Out> + Send + 'static> Stage for RecoverStage<U, F> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if self.up.live() {
            let mut broke = false;
            let answer = self.up.drive(cx, |x| {
                let flow = push(x);
                broke = flow.is_break();
                flow
            });
            match answer {
                Err(error) => self.recover(error)?,
                answer => return answer,
            }
            if broke {
                return Ok(Progress::Stopped);
            }
        }
        self.up.settle(cx);
        if let Some(last) = self.last.take() {
            // The last one: what downstream answers changes nothing.
            let _ = push(last);
        }
        Ok(Progress::Complete)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            match self.up.tend(cx) {
                Err(error) => self.recover(error)?,
                answer => return answer,
            }
        }
        Ok(Progress::Pending)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.last = None;
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}
