//! `grouped_within`: elements in vectors, by size or by time.

use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::clock::{Clock, Timer};
use crate::error::ErrorKind;
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use std::fmt;
use std::time::Duration;

/// Adds [`grouped_within`](GroupedWithinOps::grouped_within).
pub trait GroupedWithinOps: StreamOps {
    /// Collects elements into vectors: of `n` elements, or fewer when `every` has passed. Groups are never empty.
    ///
    /// Time is counted from the last group (at first from the start of the run), in steps of `every`; a step in which
    /// no element came gives no group and wakes nobody. A group that becomes full starts the count anew. Elements are
    /// collected ahead of demand, one group of them. A failure drops them.
    ///
    /// - **Emits** when `n` elements are there, when a step ends with elements there, or at the end.
    /// - **Backpressures** when a group is closed and downstream does not ask.
    /// - **Completes** when upstream completes and the last group was emitted.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when `n` or `every` is 0.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let groups = Source::from_iter(1..=5)
    ///     .grouped_within(2, Duration::from_secs(1))
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(groups, [vec![1, 2], vec![3, 4], vec![5]]);
    /// # Ok(())
    /// # }
    /// ```
    fn grouped_within(self, n: usize, every: Duration) -> Self::Then<GroupedWithin, KeepLeft> {
        self.then(GroupedWithin { n, every })
    }
}

impl<S: StreamOps> GroupedWithinOps for S {}

/// The operator of [`grouped_within`](GroupedWithinOps::grouped_within).
#[derive(Clone, Debug)]
pub struct GroupedWithin {
    n: usize,
    every: Duration,
}

impl<In: Send + 'static> Operator<In> for GroupedWithin {
    type Out = Vec<In>;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = GroupedWithinStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<Self::Stage<U>, ()> {
        let GroupedWithin { n, every } = self;
        if n == 0 || every.is_zero() {
            let reason = "a group needs a size of at least 1 and a time above zero";
            return Err(ErrorKind::InvalidArgument { stage: "grouped_within", reason }.into());
        }
        let clock = materializer.clock().clone();
        let group = Group { elements: Vec::new(), n, every, since: clock.now(), due: Duration::ZERO, clock };
        Ok((GroupedWithinStage { up: Up::new(up), group, closed: false, timer: Timer::default() }, ()))
    }
}

/// The stage of [`grouped_within`](GroupedWithinOps::grouped_within).
pub struct GroupedWithinStage<U: Stage> {
    up: Up<U>,
    group: Group<U::Out>,
    /// The group waits for demand and takes no more.
    closed: bool,
    timer: Timer,
}

struct Group<T> {
    elements: Vec<T>,
    n: usize,
    every: Duration,
    /// The last group, or the start.
    since: Duration,
    /// When the open group's step ends. Means something only while there are elements.
    due: Duration,
    clock: Clock,
}

impl<T> Group<T> {
    /// Takes an element. True: the group is full.
    #[inline]
    fn add(&mut self, element: T) -> bool {
        if self.elements.is_empty() {
            self.due = self.end_of_step();
        }
        self.elements.push(element);
        self.elements.len() == self.n
    }

    fn take(&mut self) -> Vec<T> {
        self.since = self.clock.now();
        std::mem::take(&mut self.elements)
    }

    fn end_of_step(&self) -> Duration {
        let (now, every) = (self.clock.now().as_nanos(), self.every.as_nanos());
        let since = self.since.as_nanos();
        let end = since + (now.saturating_sub(since) / every + 1) * every;
        Duration::from_nanos(u64::try_from(end).unwrap_or(u64::MAX))
    }
}

impl<U: Stage> GroupedWithinStage<U> {
    /// Whether the open group's time is over; registers the waker otherwise.
    fn timed_out(&mut self, cx: &mut StageCx<'_, '_>) -> bool {
        !self.group.elements.is_empty() && self.timer.poll_until(self.group.due, cx).is_ready()
    }

    fn resting(&self, otherwise: Progress) -> Progress {
        if self.group.elements.is_empty() && !self.up.live() { Progress::Complete } else { otherwise }
    }
}

impl<U: Stage> fmt::Debug for GroupedWithinStage<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupedWithinStage").field("held", &self.group.elements.len()).finish_non_exhaustive()
    }
}

impl<U: Stage> Stage for GroupedWithinStage<U> {
    type Out = Vec<U::Out>;

    fn drive<P: FnMut(Vec<U::Out>) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        loop {
            let ending = !self.up.live();
            if (self.closed || ending) && !self.group.elements.is_empty() {
                self.closed = false;
                if push(self.group.take()).is_break() {
                    return Ok(self.resting(Progress::Stopped));
                }
            }
            if ending {
                return Ok(Progress::Complete);
            }
            let (group, mut broke) = (&mut self.group, false);
            let answer = self.up.drive(cx, |x| {
                if !group.add(x) {
                    return Push::Continue(());
                }
                let flow = push(group.take());
                broke = flow.is_break();
                flow
            });
            match answer {
                Err(error) => {
                    self.group.elements.clear();
                    return Err(error);
                }
                Ok(_) if broke => return Ok(self.resting(Progress::Stopped)),
                Ok(Progress::Pending) if self.timed_out(cx) => self.closed = true,
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
    }

    /// Collects the next group.
    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        while self.up.live() {
            let (group, closed) = (&mut self.group, &mut self.closed);
            let answer = if *closed {
                self.up.tend(cx)
            } else {
                self.up.drive(cx, |x| {
                    *closed = group.add(x);
                    if *closed { Push::Break(()) } else { Push::Continue(()) }
                })
            };
            match answer {
                Err(error) => {
                    self.group.elements.clear();
                    return Err(error);
                }
                Ok(Progress::Pending) if !self.closed && self.timed_out(cx) => self.closed = true,
                Ok(Progress::Pending) => break,
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
        Ok(self.resting(Progress::Pending))
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.group.elements.clear();
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}
