//! The one error of a stream: cheap to clone, one pointer wide, and still telling who failed and why.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Any error a user's closure or a connector may bring.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Why a stream failed.
///
/// `Clone`, because a failure goes to everybody: the materialised values downstream, and every upstream as the cause
/// of its cancellation. One pointer wide on purpose: the answers of stages then return in registers.
///
/// The stage's name and the reason are in [`kind`](StreamError::kind); an error that user code brought is found with
/// [`downcast_ref`](StreamError::downcast_ref).
#[derive(Clone)]
pub struct StreamError(Arc<ErrorKind>);

/// The kinds of [`StreamError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// User code or a connector returned an error.
    #[error("stage `{stage}` failed: {source}")]
    Failed {
        /// The operator that reports it.
        stage: &'static str,
        /// What it was given.
        source: BoxError,
    },
    /// User code panicked. The panic stopped at the operator that called it; the process goes on.
    #[error("user code in stage `{stage}` panicked: {message}")]
    Panicked {
        /// The operator that called it.
        stage: &'static str,
        /// The panic's message, if it had one.
        message: String,
    },
    /// The stream was stopped abruptly: its materializer was aborted or dropped with the runtime.
    #[error("the stream was stopped abruptly before it ended")]
    Aborted,
    /// The materializer was shut down before this run began.
    #[error("the materializer has been shut down; run the stream on a new one")]
    Stopped,
    /// No tokio runtime is running here.
    #[error("no tokio runtime here; run the stream inside one, or give it a materializer made in one")]
    NoRuntime,
    /// A timeout operator saw nothing for too long.
    #[error("stage `{stage}`: nothing for {after:?}")]
    Timeout {
        /// Which timeout.
        stage: &'static str,
        /// Its limit.
        after: Duration,
    },
    /// A buffer with the `Fail` strategy was full.
    #[error(
        "stage `{stage}`: the buffer of {capacity} elements overflowed; slow the source, enlarge it, or choose a dropping strategy"
    )]
    BufferOverflow {
        /// Which buffer.
        stage: &'static str,
        /// Its size in elements.
        capacity: usize,
    },
    /// Elements came faster than an enforcing `throttle` allows.
    #[error(
        "stage `{stage}`: more than {elements} elements per {per:?}; slow the source, allow a larger burst, or shape instead of enforcing"
    )]
    RateExceeded {
        /// Which operator.
        stage: &'static str,
        /// How many elements are allowed,
        elements: u64,
        /// in what time.
        per: Duration,
    },
    /// A sink or operator that needs an element saw the stream complete without one.
    #[error("stage `{stage}`: the stream completed without an element")]
    NoElement {
        /// Which one.
        stage: &'static str,
    },
    /// A part that is built on demand never was: nobody asked for an element.
    #[error("stage `{stage}`: never materialized, since nothing was demanded of it")]
    NeverMaterialized {
        /// Which one.
        stage: &'static str,
    },
    /// The other half of a connection between tasks went away without an end.
    #[error("stage `{stage}`: the other side went away without ending the stream")]
    Disconnected {
        /// Which one.
        stage: &'static str,
    },
    /// An operator was given an argument that makes no sense.
    #[error("stage `{stage}`: {reason}")]
    InvalidArgument {
        /// Which one.
        stage: &'static str,
        /// What is wrong and what would be right.
        reason: &'static str,
    },
}

impl StreamError {
    /// An error brought by user code or a connector. A [`StreamError`] inside stays what it is.
    #[cold]
    pub fn failed(stage: &'static str, source: impl Into<BoxError>) -> Self {
        match source.into().downcast::<StreamError>() {
            Ok(same) => *same,
            Err(source) => ErrorKind::Failed { stage, source }.into(),
        }
    }

    /// What a caught panic becomes.
    #[cold]
    pub fn panicked(stage: &'static str, payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "(no message)".to_owned());
        ErrorKind::Panicked { stage, message }.into()
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The error that user code brought, if it is an `E`.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        match self.kind() {
            ErrorKind::Failed { source, .. } => source.downcast_ref(),
            _ => None,
        }
    }

    /// Whether both came from the very same failure.
    #[must_use]
    pub fn same(&self, other: &StreamError) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<ErrorKind> for StreamError {
    #[cold]
    fn from(kind: ErrorKind) -> Self {
        StreamError(Arc::new(kind))
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Error for StreamError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
