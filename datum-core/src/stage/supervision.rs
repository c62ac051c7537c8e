//! Supervision: what an operator does when the user code it called fails.

use super::guard;
use crate::error::StreamError;
use std::fmt;
use std::sync::Arc;

/// The decision about one failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Fail the stream (the default).
    Stop,
    /// Drop the element that failed and go on, keeping the operator's state.
    Resume,
    /// Drop the element that failed and go on from a fresh state.
    Restart,
}

/// The decider that operators ask, once per failure. An [attribute](crate::attributes::Attributes): the innermost one
/// around an operator counts.
///
/// Only operators that call user code ask, and each says in its docs what `Resume` and `Restart` mean for its state.
/// A decider that panics counts as `Stop`.
#[derive(Clone, Default)]
pub struct Supervision(Option<Arc<dyn Fn(&StreamError) -> Directive + Send + Sync>>);

impl Supervision {
    /// Fails the stream at the first failure. The default.
    #[must_use]
    pub fn stop() -> Self {
        Supervision(None)
    }

    /// Drops whatever failed and goes on.
    #[must_use]
    pub fn resume() -> Self {
        Supervision::decide(|_| Directive::Resume)
    }

    /// Drops whatever failed and goes on from a fresh state.
    #[must_use]
    pub fn restart() -> Self {
        Supervision::decide(|_| Directive::Restart)
    }

    /// Asks `decider` about each failure.
    #[must_use]
    pub fn decide(decider: impl Fn(&StreamError) -> Directive + Send + Sync + 'static) -> Self {
        Supervision(Some(Arc::new(decider)))
    }

    /// Whether there is a decider at all: an operator whose state moves through user code keeps a copy only then.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.0.is_some()
    }

    /// The decision about `error`. An operator asks once per failure.
    #[cold]
    #[must_use]
    pub fn directive(&self, error: &StreamError) -> Directive {
        match &self.0 {
            None => Directive::Stop,
            Some(decider) => guard("supervision", || decider(error)).unwrap_or(Directive::Stop),
        }
    }
}

impl fmt::Debug for Supervision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Supervision(decider)" } else { "Supervision(stop)" })
    }
}
