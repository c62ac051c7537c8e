//! One drive's worth of supervision: asks about each failure of user code, remembers the one that stops.

use super::{Directive, Driven, Push, Stage, StageCx, Supervision, Up};
use crate::error::StreamError;

/// What an operator that calls user code keeps on the stack while it drives its upstream.
///
/// ```text
/// let mut judge = Judge::new(&self.supervision);
/// let answer = self.up.drive(cx, |x| match guard("map", || f(x)) {
///     Ok(y) => push(y),
///     Err(error) => judge.element_failed(error),
/// });
/// judge.conclude(answer, &mut self.up, cx)
/// ```
#[derive(Debug)]
pub struct Judge<'a> {
    supervision: &'a Supervision,
    stopped_by: Option<StreamError>,
}

impl<'a> Judge<'a> {
    /// Nothing has failed yet.
    #[inline]
    #[must_use]
    pub fn new(supervision: &'a Supervision) -> Self {
        Judge { supervision, stopped_by: None }
    }

    /// User code failed on an element. `Continue`: drop that element and go on; for operators without state, where
    /// `Resume` and `Restart` are the same.
    #[cold]
    pub fn element_failed(&mut self, error: StreamError) -> Push {
        self.state_failed(error, || {})
    }

    /// As [`element_failed`](Judge::element_failed), for an operator with state: `restart` resets it.
    #[cold]
    pub fn state_failed(&mut self, error: StreamError, restart: impl FnOnce()) -> Push {
        match self.supervision.directive(&error) {
            Directive::Stop => {
                self.stopped_by = Some(error);
                Push::Break(())
            }
            Directive::Resume => Push::Continue(()),
            Directive::Restart => {
                restart();
                Push::Continue(())
            }
        }
    }

    /// The failure that stops the stream, if any.
    #[inline]
    #[must_use]
    pub fn stopped_by(self) -> Option<StreamError> {
        self.stopped_by
    }

    /// The answer of a drive: the failure that stopped it, with the upstream cancelled, or the upstream's own.
    ///
    /// # Errors
    /// The failure.
    #[inline]
    pub fn conclude<U: Stage>(self, answer: Driven, up: &mut Up<U>, cx: &mut StageCx<'_, '_>) -> Driven {
        match self.stopped_by {
            None => answer,
            Some(error) => up.fail(error, cx),
        }
    }
}
