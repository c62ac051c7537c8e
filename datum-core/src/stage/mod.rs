//! The contract between stages: what an operator becomes when its blueprint runs.
//!
//! A stage is *driven* from downstream and pushes its elements into a closure. While nobody asks, it is *tended*.
//!
//! # The rules
//! 1. [`drive`](Stage::drive) pushes until `push` breaks, nothing more can be made now, or the input has ended. `push`
//!    always takes the element it is given; `Break` means "no more after this one".
//! 2. [`Stopped`](Progress::Stopped) if and only if `push` broke in this call and the stage has not ended. It has
//!    registered nothing: drive again, or tend.
//! 3. [`Pending`](Progress::Pending) never after a `Break`, and only when the last answer of each live upstream *in
//!    this call* was `Pending` and nothing deliverable is held. A stage that tended checks again, since tending may
//!    have made the missing element. `Pending` from `tend` does not excuse from driving at the next demand.
//! 4. [`Complete`](Progress::Complete) or an error may be returned in the call that pushed or broke, and a stage that
//!    knows it is done must.
//! 5. After `Complete`, an error or [`cancel`](Stage::cancel), none of `drive`, `tend` and `cancel` is called again;
//!    [`poll_closed`](Stage::poll_closed) follows until `Ready`, then the stage is dropped. A stage that outlives an
//!    ended upstream polls that upstream's `poll_closed` in its own `drive` and `tend`. [`Up`] keeps these rules.
//! 6. **Whoever is polled while not driving its upstream must tend it.** Otherwise what may run ahead of demand
//!    (filling a buffer, feeding substreams, firing timers, noticing a failure) stands still behind a busy stage.
//! 7. Every error goes out through the stage's own failing path, which cancels its upstreams with
//!    [`CancelCause::Failure`] first ([`Up::fail`]): a bare `?` would leak an upstream.
//! 8. User code is called through [`guard`] only. A panic becomes that stage's error; the supervision decider is asked
//!    once.
//! 9. Each leaf that can be always ready spends the [budget](StageCx::spend) per element, and so does every loop whose
//!    turns no leaf's spending bounds. Whoever finds it spent wakes itself and returns `Pending`.
//! 10. Wakes may be spurious. `push` cannot reach the context: clone the clock or the materializer at attach.
//!
//! The test kit's `checked()` operator asserts rules 1 to 5 between any two stages.

mod cx;
mod guard;
mod judge;
mod leaf;
mod supervision;
mod up;

pub use cx::{DEFAULT_BUDGET, StageCx};
pub use guard::guard;
pub use judge::Judge;
pub use leaf::Leaf;
pub use supervision::{Directive, Supervision};
pub use up::Up;

use crate::blueprint::BoxStage;
use crate::error::StreamError;
use std::ops::ControlFlow;
use std::task::Poll;

/// What `push` answers: go on, or no more after this one.
pub type Push = ControlFlow<()>;

/// The answer of [`Stage::drive`] and [`Stage::tend`].
pub type Driven = Result<Progress, StreamError>;

/// How a call to a stage ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing can be made now; a waker is registered.
    Pending,
    /// `push` broke, and there may be more.
    Stopped,
    /// No element will follow.
    Complete,
}

/// Why a stage is told that nobody wants more.
#[derive(Clone, Debug)]
pub enum CancelCause {
    /// The consumer had what it wanted.
    Finished,
    /// A stage on the way completed by itself (`take`, a zip whose other side ended, a kill switch).
    StageCompleted,
    /// Something downstream failed.
    Failure(StreamError),
}

impl CancelCause {
    /// What the cancellation means for a stage that reports an end: a failure stays one, the rest is a clean end.
    ///
    /// # Errors
    /// The failure that caused the cancellation.
    pub fn into_result(self) -> Result<(), StreamError> {
        match self {
            CancelCause::Finished | CancelCause::StageCompleted => Ok(()),
            CancelCause::Failure(error) => Err(error),
        }
    }
}

/// A running operator. The [module page](self) is its contract.
pub trait Stage: Send + 'static {
    /// What it pushes.
    type Out: Send + 'static;

    /// Demand: pushes elements until `push` breaks, nothing more can be made now, or the input has ended.
    ///
    /// # Errors
    /// The stream's failure; the stage has cancelled its upstreams by then.
    fn drive<P: FnMut(Self::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, push: P) -> Driven;

    /// No demand: downstream lives but wants nothing now. Does only what the operator's contract lets run ahead,
    /// forwards to its upstreams, notices an end or a failure, registers wakers; never pushes, never answers
    /// [`Stopped`](Progress::Stopped). `Complete`: no element will follow.
    ///
    /// # Errors
    /// As for [`drive`](Stage::drive).
    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven;

    /// Downstream has gone, and why. Told at most once, and only while live.
    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>);

    /// Follows every ending until `Ready`; asynchronous closing (a pending read, a connection's goodbye, substreams
    /// still alive) is what it waits for.
    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()>;

    /// Whether the stage is a [`BoxStage`], which can be put in another box's place.
    #[doc(hidden)]
    const BOXED: bool = false;

    /// A stage that has become nothing but a forwarder to a live boxed stage gives that one up, and is dropped: so a
    /// recursion of lazily made tails stays one stage deep. Others have none to give.
    #[doc(hidden)]
    fn take_tail(&mut self) -> Option<BoxStage<Self::Out>> {
        None
    }
}
