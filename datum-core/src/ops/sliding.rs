//! `sliding`: overlapping (or spaced) windows over the elements.

use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::error::{ErrorKind, StreamError};
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up, guard};
use std::fmt;

/// Adds [`sliding`](SlidingOps::sliding).
pub trait SlidingOps: StreamOps {
    /// Emits windows of `n` elements, each `step` elements after the one before. A `step` above `n` skips the elements
    /// between windows.
    ///
    /// A shorter window comes at the end when elements have arrived since the last one that fill no window. An element
    /// is cloned for each window but the last that it is part of.
    ///
    /// - **Emits** when `n` elements are there, or at the end.
    /// - **Backpressures** when downstream does and a window is full.
    /// - **Completes** when upstream completes and the last window was emitted.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when `n` or `step` is 0.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let windows = Source::from_iter(1..=4).sliding(3, 2).run_with(Sink::collect())?.await?;
    /// assert_eq!(windows, [vec![1, 2, 3], vec![3, 4]]);
    /// # Ok(())
    /// # }
    /// ```
    fn sliding(self, n: usize, step: usize) -> Self::Then<Sliding, KeepLeft>
    where
        Self::Item: Clone,
    {
        self.then(Sliding { n, step })
    }
}

impl<S: StreamOps> SlidingOps for S {}

/// The operator of [`sliding`](SlidingOps::sliding).
#[derive(Clone, Debug)]
pub struct Sliding {
    n: usize,
    step: usize,
}

impl<In: Clone + Send + 'static> Operator<In> for Sliding {
    type Out = Vec<In>;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = SlidingStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<SlidingStage<U>, ()> {
        let Sliding { n, step } = self;
        if n == 0 || step == 0 {
            let reason = "a window needs a size and a step of at least 1";
            return Err(ErrorKind::InvalidArgument { stage: STAGE, reason }.into());
        }
        let window = Window { elements: Vec::new(), fresh: 0, skip: 0, n, step };
        Ok((SlidingStage { up: Up::new(up), window }, ()))
    }
}

/// The stage of [`sliding`](SlidingOps::sliding).
pub struct SlidingStage<U: Stage> {
    up: Up<U>,
    window: Window<U::Out>,
}

struct Window<T> {
    elements: Vec<T>,
    /// How many of them came since the last window.
    fresh: usize,
    /// How many elements to skip before the next window.
    skip: usize,
    n: usize,
    step: usize,
}

impl<T: Clone> Window<T> {
    /// Takes an element; gives the window that it fills.
    fn add(&mut self, element: T) -> Result<Option<Vec<T>>, StreamError> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(None);
        }
        self.elements.push(element);
        self.fresh += 1;
        if self.elements.len() < self.n {
            return Ok(None);
        }
        self.fresh = 0;
        if self.step >= self.n {
            self.skip = self.step - self.n;
            return Ok(Some(std::mem::take(&mut self.elements)));
        }
        let kept = guard(STAGE, || self.elements[self.step..].to_vec())?;
        Ok(Some(std::mem::replace(&mut self.elements, kept)))
    }

    /// The short window at the end.
    fn rest(&mut self) -> Option<Vec<T>> {
        (std::mem::take(&mut self.fresh) > 0).then(|| std::mem::take(&mut self.elements))
    }

    fn clear(&mut self) {
        self.elements.clear();
        self.fresh = 0;
    }
}

impl<U: Stage> SlidingStage<U> {
    fn resting(&self, otherwise: Progress) -> Progress {
        if self.window.fresh == 0 && !self.up.live() { Progress::Complete } else { otherwise }
    }
}

impl<U: Stage> fmt::Debug for SlidingStage<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlidingStage").field("n", &self.window.n).field("step", &self.window.step).finish_non_exhaustive()
    }
}

impl<U: Stage<Out: Clone>> Stage for SlidingStage<U> {
    type Out = Vec<U::Out>;

    fn drive<P: FnMut(Vec<U::Out>) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            let (window, mut broke, mut failed) = (&mut self.window, false, None);
            let answer = self.up.drive(cx, |x| match window.add(x) {
                Ok(None) => Push::Continue(()),
                Ok(Some(full)) => {
                    let flow = push(full);
                    broke = flow.is_break();
                    flow
                }
                Err(error) => {
                    failed = Some(error);
                    Push::Break(())
                }
            });
            if let Some(error) = failed {
                self.window.clear();
                return self.up.fail(error, cx);
            }
            match answer {
                Err(error) => {
                    self.window.clear();
                    return Err(error);
                }
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(_) if broke => return Ok(self.resting(Progress::Stopped)),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
        if let Some(rest) = self.window.rest() {
            // The last one: what downstream answers changes nothing.
            let _ = push(rest);
        }
        Ok(Progress::Complete)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live()
            && let Err(error) = self.up.tend(cx)
        {
            self.window.clear();
            return Err(error);
        }
        Ok(self.resting(Progress::Pending))
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.window.clear();
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}

const STAGE: &str = "sliding";
