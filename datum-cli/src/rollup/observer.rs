//! What the command sees of its job: how many records it has read and, for the kill run, the points at which to crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datum::job::run::{JobObserver, JobPoint, Progress};

#[cfg(feature = "crash-points")]
use super::crash_points::CrashPoint;
use crate::error::UsageError;

/// Keeps the number of records read so far; a few times a second it is brought up to date.
pub(super) struct Observer {
    read: Arc<AtomicU64>,
    #[cfg(feature = "crash-points")]
    crash: Option<CrashPoint>,
}

impl Observer {
    /// An observer of a job that begins, and the number.
    #[cfg_attr(
        not(feature = "crash-points"),
        expect(clippy::unnecessary_wraps, reason = "crash points may be misspelt")
    )]
    pub(super) fn new() -> Result<(Arc<Self>, Arc<AtomicU64>), UsageError> {
        let read = Arc::<AtomicU64>::default();
        let observer = Self {
            read: Arc::clone(&read),
            #[cfg(feature = "crash-points")]
            crash: CrashPoint::asked_for()?,
        };
        Ok((Arc::new(observer), read))
    }
}

impl JobObserver for Observer {
    fn at(&self, point: JobPoint) {
        #[cfg(feature = "crash-points")]
        if let Some(crash) = &self.crash {
            crash.passed(point);
        }
        let _ = point;
    }

    fn progress(&self, progress: &Progress) {
        self.read.store(progress.counters.records(), Ordering::Relaxed);
    }
}
