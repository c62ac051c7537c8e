//! `grouped`: elements in vectors of a size.

use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::error::ErrorKind;
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use std::fmt;

/// Adds [`grouped`](GroupedOps::grouped).
pub trait GroupedOps: StreamOps {
    /// Collects elements into vectors of `n`. The last one is shorter when the number of elements is no multiple of
    /// `n`; it is never empty. A failure drops the elements that are waiting for the rest of their group.
    ///
    /// - **Emits** when `n` elements are there, or at the end.
    /// - **Backpressures** when downstream does and a group is full.
    /// - **Completes** when upstream completes and the last group was emitted.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when `n` is 0.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let groups = Source::from_iter(1..=5).grouped(2).run_with(Sink::collect())?.await?;
    /// assert_eq!(groups, [vec![1, 2], vec![3, 4], vec![5]]);
    /// # Ok(())
    /// # }
    /// ```
    fn grouped(self, n: usize) -> Self::Then<Grouped, KeepLeft> {
        self.then(Grouped(n))
    }
}

impl<S: StreamOps> GroupedOps for S {}

/// The operator of [`grouped`](GroupedOps::grouped).
#[derive(Clone, Debug)]
pub struct Grouped(usize);

impl<In: Send + 'static> Operator<In> for Grouped {
    type Out = Vec<In>;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = GroupedStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<GroupedStage<U>, ()> {
        if self.0 == 0 {
            let reason = "a group of 0 elements is never full; give at least 1";
            return Err(ErrorKind::InvalidArgument { stage: "grouped", reason }.into());
        }
        Ok((GroupedStage { up: Up::new(up), n: self.0, group: Vec::new() }, ()))
    }
}

/// The stage of [`grouped`](GroupedOps::grouped).
pub struct GroupedStage<U: Stage> {
    up: Up<U>,
    n: usize,
    group: Vec<U::Out>,
}

impl<U: Stage> fmt::Debug for GroupedStage<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupedStage").field("n", &self.n).field("held", &self.group.len()).finish_non_exhaustive()
    }
}

impl<U: Stage> GroupedStage<U> {
    fn resting(&self, otherwise: Progress) -> Progress {
        if self.group.is_empty() && !self.up.live() { Progress::Complete } else { otherwise }
    }
}

impl<U: Stage> Stage for GroupedStage<U> {
    type Out = Vec<U::Out>;

    #[inline]
    fn drive<P: FnMut(Vec<U::Out>) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            let (n, group, mut broke) = (self.n, &mut self.group, false);
            let answer = self.up.drive(cx, |x| {
                group.push(x);
                if group.len() < n {
                    return Push::Continue(());
                }
                // The next group grows by itself as this one did, up to a size that is worth one allocation.
                let next = Vec::with_capacity(n.min(MAX_RESERVED));
                let flow = push(std::mem::replace(group, next));
                broke = flow.is_break();
                flow
            });
            match answer {
                Err(error) => {
                    self.group.clear();
                    return Err(error);
                }
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(_) if broke => return Ok(self.resting(Progress::Stopped)),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
        if !self.group.is_empty() {
            // The last one: what downstream answers changes nothing.
            let _ = push(std::mem::take(&mut self.group));
        }
        Ok(Progress::Complete)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live()
            && let Err(error) = self.up.tend(cx)
        {
            self.group.clear();
            return Err(error);
        }
        Ok(self.resting(Progress::Pending))
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.group.clear();
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}

const MAX_RESERVED: usize = 1024;
