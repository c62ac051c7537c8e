//! Calling user code: a panic becomes the error of the stage that called.

use crate::error::StreamError;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls user code and turns a panic into an error that names `stage`.
///
/// The catch is around the one call, never around a whole `drive`: that would also catch what panics downstream, and
/// unwind through stages that were half-way. On the path without a panic it costs nothing measurable.
///
/// # Errors
/// [`Panicked`](crate::ErrorKind::Panicked), with the message if there was one.
#[inline(always)]
pub fn guard<R>(stage: &'static str, f: impl FnOnce() -> R) -> Result<R, StreamError> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Ok(value),
        Err(payload) => Err(caught(stage, payload)),
    }
}

#[cold]
fn caught(stage: &'static str, payload: Box<dyn Any + Send>) -> StreamError {
    let error = StreamError::panicked(stage, &*payload);
    // The payload's destructor is user code too: one that panics must not take the stream's task with it.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    error
}
