//! The job at work: the machines of this room over a real cluster.
//!
//! [`WindowJob::run`] joins the group, owns what it is given to own, and works until it is stopped, has come to its end, or
//! cannot go on. Everything happens in the task that runs it: records are decoded and folded there, while requests to
//! coordinators and producers are under way beside it. Heartbeats have a task of their own in the group, so a slow fold
//! does not cost the membership.
//!
//! - [`JobLogic`] is what differs between jobs: how a record is read, what windows hold, what a cut writes.
//! - [`JobSettings`] is what the machine is told, [`RunSettings`] the rest.
//! - [`JobObserver`] sees the points at which a crash would matter, and progress.
//!
//! # When it ends
//! With a [`JobReport`] after a stop or at the end that was asked for; with a [`JobError`] when the start is refused, the
//! ownership is broken, a record cannot be read under a policy that fails, or the cluster forbids something. Lost
//! connections, fenced producers, changed generations and transactions of unknown outcome do not end it: it joins again
//! and recovers from what is committed, and each of these is logged and counted (`datum_job_recoveries_total`).
//!
//! # Cancel safety
//! Dropping the future is a crash: nothing is published that was not, and the next owner recovers. To end in order,
//! resolve the `stop` future.

mod error;
mod facts;
mod gauges;
mod group;
mod logic;
mod observer;
mod requests;
mod settings;
mod unit;
mod work;

pub use error::JobError;
pub use logic::{JobLogic, LogicCut};
pub use observer::{JobObserver, JobPoint, Progress};
pub use settings::{RunSettings, transactional_id};

use std::future::Future;
use std::sync::Arc;

use crate::machine::Counters;
use crate::settings::JobSettings;
use work::Work;

/// A keyed, windowed job: settings and logic, ready to run.
#[derive(Debug)]
pub struct WindowJob<L> {
    run: RunSettings,
    job: JobSettings,
    logic: L,
    observer: Arc<dyn JobObserver>,
}

/// What a job has done, as far as it ran here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobReport {
    /// What became of the records.
    pub counters: Counters,
    /// Windows published.
    pub windows: u64,
    /// Output records published, side records included.
    pub output: u64,
    /// Windows left open at the end, for the next run.
    pub open_windows: u64,
    /// Commits that took effect.
    pub commits: u64,
    /// How often it joined again and recovered.
    pub recoveries: u64,
    /// Partitions whose end could not be reached for somebody's open transaction.
    pub blocked: Vec<u32>,
}

impl<L: JobLogic> WindowJob<L> {
    /// A job that nobody observes.
    pub fn new(run: RunSettings, job: JobSettings, logic: L) -> Self {
        Self { run, job, logic, observer: Arc::new(observer::Unobserved) }
    }

    /// Tells `observer` of points and progress.
    #[must_use]
    pub fn observed(mut self, observer: Arc<dyn JobObserver>) -> Self {
        self.observer = observer;
        self
    }

    /// Runs until `stop` resolves, the end is reached, or it cannot go on; see the [module page](self).
    ///
    /// # Errors
    /// [`JobError`].
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<JobReport, JobError> {
        self.run.check()?;
        self.job.check()?;
        Work::start(self.run, self.job, self.logic, self.observer).await?.run(stop).await
    }
}
