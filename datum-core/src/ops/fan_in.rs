//! What stages over two upstreams share.

use crate::error::StreamError;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};

/// Reads one element ahead, or tends when it is there. `Complete`: the input has ended.
///
/// # Errors
/// The input's failure.
pub(super) fn prefetch<U: Stage>(
    up: &mut Up<U>,
    held: &mut Option<U::Out>,
    cx: &mut StageCx<'_, '_>,
) -> Driven {
    up.settle(cx);
    while up.live() {
        let answer = if held.is_some() {
            up.tend(cx)
        } else {
            up.drive(cx, |x| {
                *held = Some(x);
                Push::Break(())
            })
        };
        if answer? == Progress::Pending {
            return Ok(Progress::Pending);
        }
    }
    Ok(Progress::Complete)
}

/// Fails a stage with two upstreams: cancels those that are live with the error.
///
/// # Errors
/// Always: the error given.
#[cold]
pub(super) fn fail_both<A: Stage, B: Stage>(
    a: &mut Up<A>,
    b: &mut Up<B>,
    error: StreamError,
    cx: &mut StageCx<'_, '_>,
) -> Driven {
    a.cancel(CancelCause::Failure(error.clone()), cx);
    b.fail(error, cx)
}

/// Completes a stage with two upstreams by its own decision: cancels those that are live.
///
/// # Errors
/// Never.
#[cold]
pub(super) fn complete_both<A: Stage, B: Stage>(
    a: &mut Up<A>,
    b: &mut Up<B>,
    cx: &mut StageCx<'_, '_>,
) -> Driven {
    a.cancel(CancelCause::StageCompleted, cx);
    b.complete(cx)
}
