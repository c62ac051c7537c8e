//! A job ready to run.

use std::fmt;
use std::future::{Future, IntoFuture, pending};
use std::pin::Pin;

use crate::run::{JobError, JobLogic, JobReport, WindowJob};

/// A job ready to run: await it, or say with [`until`](JobRun::until) when it is to stop.
///
/// # Cancel safety
/// Dropping the future is a crash: nothing is published that was not, and the next owner recovers from what is committed.
#[must_use = "a job does nothing until it is awaited"]
pub struct JobRun<L> {
    job: Result<WindowJob<L>, JobError>,
}

impl<L: JobLogic> JobRun<L> {
    pub(super) const fn new(job: Result<WindowJob<L>, JobError>) -> Self {
        Self { job }
    }

    /// Runs until `stop` resolves, the end is reached, or it cannot go on. A stop is graceful: what is processed is
    /// committed, and the group is left, before this resolves.
    ///
    /// # Errors
    /// [`JobError`], of the chain's own checks too: nothing is asked of the cluster then.
    pub async fn until(self, stop: impl Future<Output = ()> + Send) -> Result<JobReport, JobError> {
        self.job?.run(stop).await
    }
}

impl<L: JobLogic> IntoFuture for JobRun<L> {
    type Output = Result<JobReport, JobError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.until(pending()))
    }
}

impl<L> fmt::Debug for JobRun<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRun").field("refused", &self.job.as_ref().err()).finish_non_exhaustive()
    }
}
