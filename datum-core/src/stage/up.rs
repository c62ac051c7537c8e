//! The slot in which every stage keeps an upstream, and which keeps the rules of its ending.

use super::{CancelCause, Driven, Progress, Push, Stage, StageCx};
use crate::blueprint::BoxStage;
use crate::error::StreamError;
use std::task::Poll;

/// An upstream and where it stands: live, closing (ended or cancelled), or closed and dropped.
///
/// It starts closing in the call that ended, cancels at most once, and drops the stage as soon as it has closed.
#[derive(Debug)]
pub struct Up<U> {
    stage: Option<U>,
    live: bool,
}

impl<U: Stage> Up<U> {
    /// A live upstream.
    pub fn new(stage: U) -> Self {
        Up { stage: Some(stage), live: true }
    }

    /// Live: neither ended nor cancelled.
    #[inline]
    #[must_use]
    pub fn live(&self) -> bool {
        self.live
    }

    /// Drives a live upstream.
    ///
    /// # Errors
    /// The upstream's failure. It has ended then: nothing is left to cancel.
    ///
    /// # Panics
    /// When it is not live.
    #[inline]
    pub fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, push: P) -> Driven {
        let answer = self.stage.as_mut().expect("a live upstream").drive(cx, push);
        if !matches!(answer, Ok(Progress::Pending | Progress::Stopped)) {
            self.ended(cx);
        }
        answer
    }

    /// Tends a live upstream.
    ///
    /// # Errors
    /// As for [`drive`](Up::drive).
    ///
    /// # Panics
    /// When it is not live.
    #[inline]
    pub fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        let answer = self.stage.as_mut().expect("a live upstream").tend(cx);
        if !matches!(answer, Ok(Progress::Pending)) {
            self.ended(cx);
        }
        answer
    }

    /// Cancels a live upstream; does nothing when it has ended or was cancelled before.
    pub fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        if self.live {
            self.live = false;
            if let Some(stage) = &mut self.stage {
                stage.cancel(cause, cx);
            }
        }
    }

    /// Fails the stage that owns this slot: cancels the upstream with the error and hands the error back.
    ///
    /// # Errors
    /// Always: the error given.
    #[cold]
    pub fn fail(&mut self, error: StreamError, cx: &mut StageCx<'_, '_>) -> Driven {
        self.cancel(CancelCause::Failure(error.clone()), cx);
        Err(error)
    }

    /// Completes the stage that owns this slot by its own decision: cancels the upstream.
    ///
    /// # Errors
    /// Never.
    #[cold]
    pub fn complete(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.cancel(CancelCause::StageCompleted, cx);
        Ok(Progress::Complete)
    }

    /// Ready once the ended upstream has closed; it is dropped then.
    pub fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        if let Some(stage) = &mut self.stage {
            debug_assert!(!self.live, "poll_closed of a live upstream");
            if stage.poll_closed(cx).is_pending() {
                return Poll::Pending;
            }
            self.stage = None;
        }
        Poll::Ready(())
    }

    /// Gives up the boxed stage that a live upstream only forwards to, if that is so. The owner is dropped next.
    pub(crate) fn take_tail(&mut self) -> Option<BoxStage<U::Out>> {
        if self.live { self.stage.as_mut()?.take_tail() } else { None }
    }

    /// Lets an ended upstream go on closing. A stage that outlives its upstream calls this in `drive` and `tend`.
    #[inline]
    pub fn settle(&mut self, cx: &mut StageCx<'_, '_>) {
        if !self.live {
            let _ = self.poll_closed(cx);
        }
    }

    #[cold]
    fn ended(&mut self, cx: &mut StageCx<'_, '_>) {
        self.live = false;
        let _ = self.poll_closed(cx);
    }
}

/// `poll_closed` over several upstreams: each is polled, and it is ready when all are.
#[macro_export]
#[doc(hidden)]
macro_rules! all_closed {
    ($cx:expr, $($up:expr),+) => {{
        let mut ready = true;
        $( ready &= $up.poll_closed($cx).is_ready(); )+
        if ready { ::std::task::Poll::Ready(()) } else { ::std::task::Poll::Pending }
    }};
}
