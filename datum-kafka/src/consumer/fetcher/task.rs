//! The fetcher's task: what it holds, what it is told, and when it wakes.
//!
//! What it does about leaders, positions, requests and answers stands in the files of these names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use datum_net::Rng;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Command;
use super::asking::{Asked, Sent};
use super::partition::{Partition, Phase, Reaction};
use super::queue::{Item, Waiting};
use super::resolve::{Question, Resolved};
use crate::TopicPartition;
use crate::cluster::{Cluster, Metadata};
use crate::consumer::handle::PartitionHandle;
use crate::error::{KafkaError, Result};
use crate::settings::{ConsumerSettings, FetchSettings, Isolation, OffsetReset, StartAt};
use crate::wire::fetch::FetchResponse;
use crate::wire::topic::{TopicId, TopicRef};

pub(super) struct Task {
    pub(super) cluster: Cluster,
    pub(super) fetch: FetchSettings,
    pub(super) isolation: Isolation,
    pub(super) offset_reset: OffsetReset,
    pub(super) told: mpsc::UnboundedReceiver<Command>,
    pub(super) out: mpsc::UnboundedSender<Item>,
    pub(super) partitions: BTreeMap<TopicPartition, Partition>,
    pub(super) brokers: HashMap<i32, Asked>,
    pub(super) work: FuturesUnordered<BoxFuture<'static, Done>>,
    pub(super) waiting: Waiting,
    pub(super) metadata: watch::Receiver<Arc<Metadata>>,
    pub(super) refreshing: bool,
    pub(super) stale: bool,
    pub(super) rng: Rng,
}

pub(super) enum Done {
    Fetched { broker: i32, sent: Vec<Sent>, outcome: Result<FetchResponse> },
    Resolved { question: Question, outcome: Result<Resolved> },
    Refreshed { outcome: Result<Arc<Metadata>> },
}

impl Task {
    pub(super) fn new(
        cluster: Cluster,
        settings: &ConsumerSettings,
        told: mpsc::UnboundedReceiver<Command>,
        out: mpsc::UnboundedSender<Item>,
    ) -> Self {
        Self {
            metadata: cluster.watch_metadata(),
            cluster,
            fetch: settings.fetch.clone(),
            isolation: settings.isolation,
            offset_reset: settings.offset_reset,
            told,
            out,
            partitions: BTreeMap::new(),
            brokers: HashMap::new(),
            work: FuturesUnordered::new(),
            waiting: Waiting::default(),
            refreshing: false,
            stale: false,
            rng: Rng::from_entropy(),
        }
    }

    pub(super) async fn run(mut self) {
        let room = self.waiting.room().clone();
        loop {
            let now = Instant::now();
            self.partitions.retain(|_, partition| partition.handle.is_active());
            self.refresh();
            self.resolve(now);
            self.ask(now);
            let wake = self.next_wake(now);
            tokio::select! {
                command = self.told.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                Some(done) = self.work.next(), if !self.work.is_empty() => self.done(done),
                () = room.notified() => {}
                changed = self.metadata.changed() => {
                    if changed.is_ok() {
                        self.take_metadata();
                    }
                }
                () = sleep_until(wake) => {}
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Assign { handle, start, leader_epoch } => self.assign(handle, start, leader_epoch),
            Command::Release { handle } => {
                if self.owned(&handle).is_some() {
                    self.partitions.remove(handle.partition());
                }
            }
            Command::Seek { handle, generation, start } => {
                if let Some(partition) = self.owned(&handle) {
                    partition.start(generation, start);
                }
            }
            Command::Hold { handle, generation } => {
                if let Some(partition) = self.owned(&handle).filter(|p| p.generation == generation) {
                    partition.phase = Phase::Failed;
                }
            }
            Command::Resume => self.emit(Item::Resumed),
            Command::Refreshed => {}
        }
    }

    fn assign(&mut self, handle: PartitionHandle, start: StartAt, leader_epoch: i32) {
        let who = handle.partition().clone();
        let id = self.cluster.metadata().topic(&who.topic).map_or(TopicId::default(), |topic| topic.id);
        let topic = TopicRef::new(who.topic.clone(), id);
        let most = self.fetch.partition_max_bytes;
        self.stale |= self.cluster.metadata().leadership(&who).is_none();
        let mut partition = Partition::new(handle, topic, start, most, self.cluster.settings());
        partition.last_epoch = leader_epoch;
        self.partitions.insert(who, partition);
    }

    fn owned(&mut self, handle: &PartitionHandle) -> Option<&mut Partition> {
        self.partitions.get_mut(handle.partition()).filter(|partition| partition.handle == *handle)
    }

    pub(super) fn react(&mut self, who: &TopicPartition, reaction: Reaction, now: Instant) {
        match reaction {
            Reaction::Go => {}
            Reaction::Retry | Reaction::Refresh => {
                self.stale |= matches!(reaction, Reaction::Refresh);
                if let Some(partition) = self.partitions.get_mut(who) {
                    partition.back_off(now, &mut self.rng);
                }
            }
            Reaction::Fail(error) => self.fail(who, error),
        }
    }

    pub(super) fn fail(&mut self, who: &TopicPartition, error: KafkaError) {
        let Some(partition) = self.partitions.get_mut(who) else { return };
        partition.phase = Phase::Failed;
        let (handle, generation) = (partition.handle.clone(), partition.generation);
        self.emit(Item::Failed { handle, generation, error });
    }

    pub(super) fn emit(&self, item: Item) {
        // The receiving half is gone when the consumer is being dropped; the commands will end next.
        let _ = self.out.send(item);
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Fetched { broker, sent, outcome } => self.fetched(broker, &sent, outcome),
            Done::Resolved { question, outcome } => self.resolved(&question, outcome),
            Done::Refreshed { outcome } => {
                self.refreshing = false;
                if let Err(error) = outcome {
                    tracing::warn!(%error, "metadata could not be refreshed; will be tried again");
                    self.stale = true;
                }
                self.take_metadata();
            }
        }
    }

    fn next_wake(&self, now: Instant) -> Instant {
        let age = self.cluster.settings().metadata_max_age;
        let fresh = self.cluster.metadata_fresh_for(age).max(Duration::from_millis(10));
        let mut wake = now + if self.refreshing { age } else { fresh };
        let partitions = self.partitions.values().filter_map(|partition| partition.not_before);
        let brokers = self.brokers.values().filter_map(|asked| asked.not_before);
        for at in partitions.chain(brokers).filter(|at| *at > now) {
            wake = wake.min(at);
        }
        wake
    }
}
