//! A consumer that is a member of a group: the group's decisions become assignments of the fetcher, and what is acknowledged is committed.
//!
//! [`GroupConsumer::join`] starts a task that serves the group's events whether or not anybody polls for batches, so a slow downstream does
//! not hold a rebalance up longer than its drain may take:
//! - *assigned*: the group's committed offsets of the new partitions are fetched (stable ones only) and fetching starts there; partitions kept
//!   keep their position. Without a committed offset the [`OffsetReset`] policy decides, but a partition that appeared while we were running starts
//!   at its beginning whatever the policy: what was written before it was met must not be lost;
//! - *revoked*: emission of exactly these partitions stops, what was emitted may be acknowledged until the drain's deadline, what is
//!   acknowledged is committed, then they are given up;
//! - *lost*: they are dropped at once and nothing of them is committed.
//!
//! Between rebalances what is acknowledged is committed every [`commit_interval`](crate::GroupSettings#structfield.commit_interval).
//!
//! # When it ends
//! After [`GroupConsumer::leave`], or when it is dropped: then without a drain, so what was not committed yet is delivered again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::batches::Batches;
use super::fetcher::Fetcher;
use super::handle::PartitionHandle;
use super::records::RecordsBatch;
use crate::TopicPartition;
use crate::cluster::Cluster;
use crate::error::{KafkaError, KafkaErrorKind, Result};
use crate::group::CooperativeSticky;
use crate::group::membership::{Assigned, MembershipConfig, Revoke};
use crate::group::{Group, GroupEvent, GroupEvents};
use crate::settings::{ConsumerSettings, OffsetReset, StartAt};

/// A member of a group that reads its partitions.
#[derive(Debug)]
pub struct GroupConsumer {
    batches: Batches,
    shared: Arc<Shared>,
    failures: mpsc::UnboundedReceiver<KafkaError>,
    task: JoinHandle<()>,
}

/// What the consumer and its task share.
#[derive(Debug)]
struct Shared {
    group: Group,
    cluster: Cluster,
    owned: Mutex<HashMap<TopicPartition, Owned>>,
    /// Something was acknowledged or a partition's state changed.
    acked: Notify,
}

/// A partition that is ours, and the ledger's epoch of it.
#[derive(Clone, Debug)]
struct Owned {
    handle: PartitionHandle,
    epoch: u64,
}

/// A run of records to be acknowledged once it is done. Clones acknowledge the same run.
///
/// Acknowledgements come in any order; what is committed is the end of the unbroken run from the beginning. One that comes after the
/// partition was taken away has no effect.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    of: Arc<Run>,
    first: i64,
    next: i64,
}

/// The member that acknowledgements belong to, for whoever commits in its name. Keeps neither records nor the place in the group.
#[derive(Clone, Debug)]
pub(crate) struct Member(Arc<Shared>);

impl Member {
    pub(crate) fn group(&self) -> &Group {
        &self.0.group
    }

    /// Says that the ledger has changed: a drain may wait for that.
    pub(crate) fn ledger_changed(&self) {
        self.0.acked.notify_waiters();
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What all runs of a batch have in common.
#[derive(Debug)]
struct Run {
    shared: Arc<Shared>,
    owned: Owned,
    first: i64,
    next: i64,
}

/// The last acknowledgement of a batch is gone: what was not acknowledged never will be, and no drain has to wait for it.
impl Drop for Run {
    fn drop(&mut self) {
        let Owned { handle, epoch } = &self.owned;
        self.shared.group.ledger().abandoned(handle.partition(), *epoch, self.first, self.next);
        if !handle.is_active() {
            self.shared.acked.notify_waiters();
        }
    }
}

impl Acknowledgement {
    /// Acknowledges the run. False if it had no effect: acknowledged before, or the partition is no longer ours.
    pub fn ack(&self) -> bool {
        let Run { shared, owned: Owned { handle, epoch }, .. } = &*self.of;
        let changed = handle
            .if_committable(|| shared.group.ledger().acked(handle.partition(), *epoch, self.first))
            .unwrap_or(false);
        if changed && !handle.is_active() {
            // A drain may wait for this one.
            shared.acked.notify_waiters();
        }
        changed
    }

    /// Takes back this run and those of its partition that were noted after it. For a batch that is dropped half-way: its other records
    /// have been shown to nobody, so that no drain has to wait for them.
    pub(crate) fn withdraw(&self) {
        let Run { shared, owned: Owned { handle, epoch }, .. } = &*self.of;
        shared.group.ledger().withdrawn(handle.partition(), *epoch, self.first);
        shared.acked.notify_waiters();
    }

    /// The partition and the assignment.
    pub fn handle(&self) -> &PartitionHandle {
        &self.of.owned.handle
    }

    /// The group it belongs to: whose identity a transaction names when it commits the offset itself.
    pub fn group(&self) -> &Group {
        &self.of.shared.group
    }

    /// Which assignment of the partition, as the ledger counts them.
    pub(crate) fn epoch(&self) -> u64 {
        self.of.owned.epoch
    }

    /// The member it belongs to.
    pub(crate) fn member(&self) -> Member {
        Member(self.of.shared.clone())
    }

    /// The offset to be committed once everything before is acknowledged too.
    pub fn next_offset(&self) -> i64 {
        self.next
    }
}

impl GroupConsumer {
    /// Connects, and joins the group of the settings.
    ///
    /// # Errors
    /// [`Settings`](KafkaErrorKind::Settings), a topic that does not exist, or no bootstrap address answers.
    ///
    /// # Cancel safety
    /// Safe; nothing was joined before it is ready.
    pub async fn join(settings: &ConsumerSettings) -> Result<Self> {
        settings.validate()?;
        let cluster = Cluster::connect(settings.client.clone()).await?;
        cluster.require_topics(settings.topics.iter().cloned()).await?;
        let (fetcher, batches) = Fetcher::start(cluster.clone(), settings)?;
        let (group, events) = Group::join(cluster.clone(), membership(settings));
        let shared = Arc::new(Shared { group, cluster, owned: Mutex::default(), acked: Notify::new() });
        let (failed, failures) = mpsc::unbounded_channel();
        let counts = settings.topics.iter().map(|topic| (topic.clone(), None)).collect();
        let task = Task { shared: shared.clone(), fetcher, settings: settings.clone(), counts, failed };
        let task = tokio::spawn(task.run(events));
        Ok(Self { batches, shared, failures, task })
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// The place in the group, for commits of one's own and for transactions.
    pub fn group(&self) -> &Group {
        &self.shared.group
    }

    /// The partitions owned at this moment.
    pub fn handles(&self) -> Vec<PartitionHandle> {
        self.shared.owned().values().map(|owned| owned.handle.clone()).collect()
    }

    /// The next batch and its acknowledgement, all its records in one.
    ///
    /// # Errors
    /// What befell a partition; after it the others go on. What ended the place in the group; nothing follows then but the same error kind
    /// [`Shutdown`](KafkaErrorKind::Shutdown).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&mut self) -> Result<(RecordsBatch, Acknowledgement)> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`next`](Self::next), for stages.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<(RecordsBatch, Acknowledgement)>> {
        loop {
            let batch = std::task::ready!(self.poll_batch(cx))?;
            let next = batch.next_offset();
            if let Some(mut runs) = self.shared.emitted(&batch, std::iter::empty())
                && let Some(run) = runs.pop()
            {
                debug_assert_eq!(run.next, next);
                return Poll::Ready(Ok((batch, run)));
            }
        }
    }

    /// As [`poll_next`](Self::poll_next), with an acknowledgement for each record. A batch without records is acknowledged on the spot.
    pub fn poll_next_by_record(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(RecordsBatch, Vec<Acknowledgement>)>> {
        loop {
            let batch = std::task::ready!(self.poll_batch(cx))?;
            let Some(runs) = self.shared.emitted(&batch, batch.records().map(|record| record.offset()))
            else {
                continue;
            };
            if batch.is_empty() {
                runs.iter().for_each(|run| {
                    run.ack();
                });
                continue;
            }
            return Poll::Ready(Ok((batch, runs)));
        }
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecordsBatch>> {
        if let Poll::Ready(failed) = self.failures.poll_recv(cx) {
            return Poll::Ready(Err(failed.unwrap_or_else(|| KafkaErrorKind::Shutdown.into())));
        }
        self.batches.poll_next(cx)
    }

    /// Stops emitting, waits for what was emitted to be acknowledged, commits, and leaves the group, all within `limit`.
    ///
    /// # Errors
    /// What ended the place in the group before.
    ///
    /// # Cancel safety
    /// Dropping the future does not keep the member from leaving.
    pub async fn leave(self, limit: Duration) -> Result<()> {
        let left = self.leaving(limit).await;
        drop(self);
        left
    }

    /// As [`leave`](Self::leave), without borrowing the consumer: for stages that are polled while they close.
    pub fn leaving(&self, limit: Duration) -> impl Future<Output = Result<()>> + Send + use<> {
        let group = self.shared.group.clone();
        async move { group.leave(limit).await.map_err(KafkaError::from) }
    }
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        self.task.abort();
        // Acknowledgements still out there must not keep the member in the group.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(self.leaving(Duration::ZERO));
        }
    }
}

impl Shared {
    fn owned(&self) -> MutexGuard<'_, HashMap<TopicPartition, Owned>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a batch in the ledger, in runs that begin at these offsets (one run if there are none). `None`: it is not ours any more.
    fn emitted(
        self: &Arc<Self>,
        batch: &RecordsBatch,
        offsets: impl Iterator<Item = i64>,
    ) -> Option<Vec<Acknowledgement>> {
        let owned =
            self.owned().get(batch.partition()).filter(|owned| owned.handle == *batch.handle()).cloned()?;
        let mut starts: Vec<i64> = offsets.collect();
        if starts.is_empty() {
            starts.push(batch.first_offset());
        }
        let ends = starts.iter().skip(1).copied().chain([batch.next_offset()]);
        let of = Arc::new(Run {
            shared: self.clone(),
            owned: owned.clone(),
            first: starts[0],
            next: batch.next_offset(),
        });
        let mut ledger = self.group.ledger();
        let run = |(first, next)| {
            ledger.emitted(batch.partition(), owned.epoch, first, next, batch.leader_epoch());
            Acknowledgement { of: of.clone(), first, next }
        };
        Some(starts.iter().copied().zip(ends).map(run).collect())
    }
}

/// Serves the group's events.
struct Task {
    shared: Arc<Shared>,
    fetcher: Fetcher,
    settings: ConsumerSettings,
    /// How many partitions each topic had when its partitions were first assigned.
    counts: BTreeMap<Arc<str>, Option<i32>>,
    failed: mpsc::UnboundedSender<KafkaError>,
}

impl Task {
    async fn run(mut self, mut events: GroupEvents) {
        let mut commit = tokio::time::interval(self.settings.group.commit_interval);
        commit.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Beside the events, since a commit waits through a rebalance that waits for us.
        let mut committing = FuturesUnordered::new();
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => {
                        if self.serve(event).await {
                            return;
                        }
                    }
                    None => return,
                },
                _ = commit.tick(), if committing.is_empty() => committing.push(self.committing(None)),
                Some(()) = committing.next(), if !committing.is_empty() => {}
            }
        }
    }

    /// Whether nothing follows.
    async fn serve(&mut self, event: GroupEvent) -> bool {
        match event {
            GroupEvent::Assigned { assigned, epoch } => {
                if let Err(error) = self.assign(&assigned, epoch).await {
                    if error.is_retriable() {
                        tracing::warn!(%error, "committed offsets not found; the member joins again");
                        self.shared.group.rejoin("the committed offsets could not be fetched");
                    } else {
                        let _ = self.failed.send(error);
                    }
                }
            }
            GroupEvent::Revoke(revoke) => self.drain(&revoke).await,
            GroupEvent::Revoked { partitions } => self.give_up(&partitions, PartitionHandle::revoke),
            GroupEvent::Lost { partitions, reason } => {
                tracing::warn!(
                    ?partitions,
                    ?reason,
                    "partitions lost; what was not committed is delivered again"
                );
                self.give_up(&partitions, PartitionHandle::lose);
            }
            GroupEvent::Left => return true,
            GroupEvent::Failed(error) => {
                let all: BTreeSet<TopicPartition> = self.shared.owned().keys().cloned().collect();
                self.give_up(&all, PartitionHandle::lose);
                let _ = self.failed.send(error.into());
                return true;
            }
        }
        false
    }

    async fn assign(&mut self, assigned: &Assigned, epoch: u64) -> Result<()> {
        let added: Vec<TopicPartition> = assigned.added.iter().cloned().collect();
        let cluster = &self.shared.cluster;
        let group = &self.settings.group.group;
        let committed = cluster.committed_offsets(group, &added).await?;
        for partition in added {
            let handle = PartitionHandle::new(partition.clone());
            let own =
                || self.shared.owned().insert(partition.clone(), Owned { handle: handle.clone(), epoch });
            if let Some(committed) = committed.get(&partition) {
                own();
                self.fetcher.assign_committed(&handle, committed.offset, committed.leader_epoch);
            } else {
                let start = self.start(&partition)?;
                own();
                self.fetcher.assign(&handle, start);
            }
        }
        for topic in self.counts.clone().into_keys() {
            let count = self.partition_count(&topic);
            self.counts.entry(topic).and_modify(|known| *known = known.or(count));
        }
        Ok(())
    }

    /// Where a partition without a committed offset starts.
    fn start(&self, partition: &TopicPartition) -> Result<StartAt> {
        let appeared = self
            .counts
            .get(&partition.topic)
            .copied()
            .flatten()
            .is_some_and(|count| partition.partition >= count);
        match self.settings.offset_reset {
            _ if appeared => Ok(StartAt::Beginning),
            OffsetReset::Earliest => Ok(StartAt::Beginning),
            OffsetReset::Latest => Ok(StartAt::End),
            OffsetReset::None => {
                Err(KafkaErrorKind::NoCommittedOffset { partition: partition.clone() }.into())
            }
        }
    }

    fn partition_count(&self, topic: &str) -> Option<i32> {
        i32::try_from(self.shared.cluster.metadata().partition_count(topic)?).ok()
    }

    /// Stops emission, waits for the acknowledgements of what was emitted, commits.
    async fn drain(&self, revoke: &Revoke) {
        let partitions: Vec<TopicPartition> = revoke.partitions.iter().cloned().collect();
        let draining: Vec<Owned> =
            partitions.iter().filter_map(|partition| self.shared.owned().get(partition).cloned()).collect();
        for owned in &draining {
            owned.handle.drain();
            self.fetcher.release(&owned.handle);
        }
        // A little is left of the time for the commit itself.
        let deadline = Instant::from_std(revoke.deadline);
        let left = deadline.saturating_duration_since(Instant::now());
        let done = tokio::time::timeout(left.mul_f64(0.8), self.settled(&draining)).await;
        if done.is_err() {
            tracing::warn!(
                ?partitions,
                "not everything emitted was acknowledged in time; the rest is delivered again"
            );
        }
        self.committing(Some(partitions)).await;
        self.shared.group.drained(revoke.drain);
    }

    /// Until everything emitted of these is acknowledged.
    async fn settled(&self, draining: &[Owned]) {
        loop {
            let changed = self.shared.acked.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on no notification is missed, so looking after this is safe.
            changed.as_mut().enable();
            let open = {
                let ledger = self.shared.group.ledger();
                draining.iter().any(|owned| ledger.outstanding(owned.handle.partition()) > 0)
            };
            if !open {
                return;
            }
            changed.await;
        }
    }

    /// Commits what is acknowledged, of all partitions or of some.
    fn committing(&self, only: Option<Vec<TopicPartition>>) -> impl Future<Output = ()> + Send + use<> {
        let (shared, limit) = (self.shared.clone(), self.settings.client.request_timeout);
        async move {
            if !shared.group.ledger().is_dirty() {
                return;
            }
            if let Err(error) = shared.group.commit_dirty(only, limit).await {
                // What was not accepted is still dirty and goes with the next commit, if the partition stays ours.
                tracing::debug!(%error, "commit not accepted");
            }
        }
    }

    fn give_up(&self, partitions: &BTreeSet<TopicPartition>, end: fn(&PartitionHandle) -> Option<i64>) {
        for partition in partitions {
            let owned = self.shared.owned().remove(partition);
            if let Some(owned) = owned {
                end(&owned.handle);
                self.fetcher.release(&owned.handle);
            }
        }
        self.shared.acked.notify_waiters();
    }
}

/// The settings as the membership machine wants them.
fn membership(settings: &ConsumerSettings) -> MembershipConfig {
    let group = &settings.group;
    let mut config = MembershipConfig::new(&*group.group, settings.topics.iter().cloned());
    if group.cooperative {
        config.assignors = vec![Arc::new(CooperativeSticky)];
    }
    config.instance_id = group.instance_id.as_deref().map(Into::into);
    config.session_timeout = group.session_timeout;
    config.heartbeat_interval = group.heartbeat_interval;
    config.rebalance_timeout = group.rebalance_timeout;
    config.drain_timeout = group.drain_timeout;
    config.retry_min = settings.client.retry_backoff.initial;
    config.retry_max = settings.client.retry_backoff.max;
    config.seed = datum_net::Rng::from_entropy().bits();
    config
}
