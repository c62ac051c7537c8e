//! Seeing a job at work.

use std::fmt;

use crate::machine::{Counters, Lag};

/// A point on the way of a cut at which a crash would matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobPoint {
    /// A cut was made; its transaction has not begun.
    BeforeTransaction,
    /// The output is written; the transaction has not ended.
    OutputWritten,
    /// The transaction has ended; the job does not know it yet.
    TransactionEnded,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What became of the records so far.
    pub counters: Counters,
    /// What is not processed, and what a restart would read again.
    pub lag: Lag,
    /// Windows open now.
    pub open_windows: u64,
    /// Windows published so far.
    pub windows: u64,
}

/// Is told of points and progress, in the task of the job: it must be quick.
pub trait JobObserver: Send + Sync {
    /// A point is passed.
    fn at(&self, point: JobPoint) {
        let _ = point;
    }

    /// Some records further; called a few times a second.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// This member has begun to own, or has recovered: how often so far.
    fn started(&self, times: u64) {
        let _ = times;
    }
}

impl fmt::Debug for dyn JobObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobObserver")
    }
}

/// The observer that looks away.
pub(super) struct Unobserved;

impl JobObserver for Unobserved {}
