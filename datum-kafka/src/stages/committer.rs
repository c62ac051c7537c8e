//! `Committer`: commits as a step of the stream, in batches.
//!
//! A stream that acknowledges its records leaves the committing to the background, every
//! [`commit_interval`](crate::GroupSettings#structfield.commit_interval). With a committer at its end the commit is a part of the stream:
//! it says when it is done, it can be followed by more, and it fails the stream when it is refused.
//!
//! # Delivery
//! What arrives is acknowledged when its batch is committed, not before: a stream that fails or is cancelled commits nothing of what the
//! committer has gathered. What is committed is the end of the unbroken run of acknowledged records, so one that was dropped on the way
//! without an acknowledgement holds back all behind it; see [`CommittableOps`](super::CommittableOps).
//!
//! # Costs
//! One request per batch and group; up to two batches of acknowledgements are held, and one more for each commit under way.

use std::time::Duration;

use datum_core::{
    blueprint::{BoxFlow, BoxSink},
    prelude::*,
    sinks::Completion,
};

use super::Committable;
use crate::{consumer::Acknowledgement, group::CommitError};

/// How a [`Committer`] gathers and commits. The defaults suit streams of thousands of records per second.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitterSettings {
    /// A batch is committed when it has this many records. Default 1,000; at least 1, which commits each record by itself.
    pub max_batch: usize,
    /// A batch that is not full is committed after this long. Default 1 s: it bounds what is delivered twice after a crash, at the price of
    /// a small request each time.
    pub max_interval: Duration,
    /// How many commits may be under way. Default 1. A member sends one commit at a time, and the next batch is gathered meanwhile, so more
    /// pays only in streams of several groups.
    pub parallelism: usize,
    /// How long one commit may take, rebalances that it has to wait for included. Default 30 s.
    pub commit_timeout: Duration,
}

impl Default for CommitterSettings {
    fn default() -> Self {
        Self {
            max_batch: 1_000,
            max_interval: Duration::from_secs(1),
            parallelism: 1,
            commit_timeout: Duration::from_secs(30),
        }
    }
}

impl CommitterSettings {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`max_batch`](Self#structfield.max_batch).
    #[must_use]
    pub fn max_batch(mut self, records: usize) -> Self {
        self.max_batch = records;
        self
    }

    /// Sets [`max_interval`](Self#structfield.max_interval).
    #[must_use]
    pub fn max_interval(mut self, interval: Duration) -> Self {
        self.max_interval = interval;
        self
    }

    /// Sets [`parallelism`](Self#structfield.parallelism).
    #[must_use]
    pub fn parallelism(mut self, commits: usize) -> Self {
        self.parallelism = commits;
        self
    }

    /// Sets [`commit_timeout`](Self#structfield.commit_timeout).
    #[must_use]
    pub fn commit_timeout(mut self, limit: Duration) -> Self {
        self.commit_timeout = limit;
        self
    }
}

/// What a committer takes: something that knows the record it came from.
pub trait Committing: Send + 'static {
    /// The acknowledgement to commit.
    fn into_acknowledgement(self) -> Acknowledgement;
}

impl Committing for Acknowledgement {
    fn into_acknowledgement(self) -> Acknowledgement {
        self
    }
}

impl<T: Send + 'static> Committing for Committable<T> {
    fn into_acknowledgement(self) -> Acknowledgement {
        self.acknowledgement().clone()
    }
}

/// A batch that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// How many records it had.
    pub records: usize,
}

/// Commits in batches, as a flow or at the end of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Committer;

impl Committer {
    /// Commits what arrives, batch by batch, and emits each batch when it is committed. Boxed, so that it can be named.
    ///
    /// - **Emits** when a batch is committed, in the order of the batches.
    /// - **Backpressures** when downstream does, and when all commits are under way and a batch is full.
    /// - **Completes** when upstream completes and the last batch is committed.
    /// - **Cancels** when downstream cancels, and when a commit is refused, with the [`CommitError`].
    pub fn flow<C: Committing>(settings: &CommitterSettings) -> BoxFlow<C, Committed> {
        let limit = settings.commit_timeout;
        Flow::<C>::new()
            .map(Committing::into_acknowledgement)
            .grouped_within(settings.max_batch.max(1), settings.max_interval)
            .try_map_async(settings.parallelism.max(1), move |batch| commit(batch, limit))
            .boxed()
    }

    /// Commits what arrives, batch by batch; materialises the stream's completion, which waits for the last commit.
    ///
    /// ```no_run
    /// use datum_core::prelude::*;
    /// use datum_kafka::ConsumerSettings;
    /// use datum_kafka::stages::{CommittableRecord, Committer, CommitterSettings, KafkaSources};
    /// # async fn store(_: &CommittableRecord) {}
    /// # async fn run() -> Result<(), StreamError> {
    /// let settings = ConsumerSettings::new("localhost:9092").group("store").topic("orders");
    /// Source::kafka(settings)
    ///     .map_async(4, |record: CommittableRecord| async move {
    ///         store(&record).await;
    ///         record
    ///     })
    ///     .run_with(Committer::sink(&CommitterSettings::new().max_batch(500)))?
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sink<C: Committing>(settings: &CommitterSettings) -> BoxSink<C, Completion<()>> {
        Self::flow(settings).to(Sink::ignore()).boxed()
    }
}

/// Acknowledges a batch and commits it, for each member that it is of.
async fn commit(batch: Vec<Acknowledgement>, limit: Duration) -> Result<Committed, CommitError> {
    let mut members = Vec::new();
    for ack in &batch {
        ack.ack();
        let member = ack.member();
        if !members.contains(&member) {
            members.push(member);
        }
    }
    for member in members {
        // Asked for in the same breath as the acknowledgement, so before whatever a drain that waited for it does next.
        member.group().commit_dirty(None, limit).await?;
    }
    Ok(Committed { records: batch.len() })
}
