//! The fetcher's task: which broker is asked for what, and where the answers go.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use datum_net::{Backoff, Rng};
use futures_util::FutureExt;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Command;
use super::partition::{Partition, Phase, Reaction};
use super::queue::{Fetched, Item, Waiting};
use super::resolve::{Question, Resolved, look_up};
use crate::TopicPartition;
use crate::cluster::{Broker, Cluster, Leadership, Metadata, Purpose};
use crate::connection::RawRequest;
use crate::consumer::handle::{FetchAnswer, PartitionHandle};
use crate::error::{ErrorCode, KafkaError, KafkaErrorKind, ProtocolFault, Result, Subject};
use crate::settings::{ConsumerSettings, FetchSettings, Isolation, OffsetReset, StartAt};
use crate::wire::batch::{AbortedTransactions, BatchSet};
use crate::wire::fetch::{self, FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchedPartition};
use crate::wire::leader::NodeEndpoint;
use crate::wire::topic::{TopicId, TopicRef};

pub(super) struct Task {
    cluster: Cluster,
    fetch: FetchSettings,
    isolation: Isolation,
    offset_reset: OffsetReset,
    told: mpsc::UnboundedReceiver<Command>,
    out: mpsc::UnboundedSender<Item>,
    partitions: BTreeMap<TopicPartition, Partition>,
    brokers: HashMap<i32, Asked>,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    waiting: Waiting,
    metadata: watch::Receiver<Arc<Metadata>>,
    refreshing: bool,
    stale: bool,
    rng: Rng,
}

/// A broker and what is open with it.
struct Asked {
    in_flight: bool,
    waiting: Waiting,
    backoff: Backoff,
    not_before: Option<Instant>,
    /// The partition the next request begins with, so that none starves when the size limit cuts answers short.
    first: usize,
}

/// What was asked of one partition.
struct Sent {
    partition: TopicPartition,
    topic: TopicRef,
    epoch: u64,
    generation: u64,
    position: i64,
}

enum Done {
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
            self.refresh(now);
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

    // -- metadata --------------------------------------------------------------------------------------------------------

    /// Fetches metadata if something failed for want of it, or it has become old.
    fn refresh(&mut self, _now: Instant) {
        let age = self.cluster.settings().metadata_max_age;
        let old = self.cluster.metadata_fresh_for(age).is_zero();
        if self.refreshing || !(self.stale || old) {
            return;
        }
        self.refreshing = true;
        self.stale = false;
        let cluster = self.cluster.clone();
        let topics: Vec<Arc<str>> = self.partitions.keys().map(|who| who.topic.clone()).collect();
        self.work.push(
            async move {
                cluster.add_topics(topics);
                Done::Refreshed { outcome: cluster.refresh().await }
            }
            .boxed(),
        );
    }

    fn take_metadata(&mut self) {
        let metadata = self.metadata.borrow_and_update().clone();
        let mut failed = Vec::new();
        for (who, partition) in &mut self.partitions {
            if partition.phase == Phase::Failed {
                continue;
            }
            let Some(topic) = metadata.topic(&who.topic) else { continue };
            if topic.id != TopicId::default() && topic.id != partition.topic.id {
                if partition.topic.has_id() {
                    failed.push((
                        who.clone(),
                        KafkaErrorKind::TopicRecreated { topic: who.topic.clone() }.into(),
                    ));
                }
                partition.topic.id = topic.id;
            }
            if let Err(error) = self.cluster.check_topic(&who.topic) {
                failed.push((who.clone(), error));
            }
        }
        for (who, error) in failed {
            self.fail(&who, error);
        }
    }

    // -- positions -------------------------------------------------------------------------------------------------------

    fn resolve(&mut self, now: Instant) {
        for (who, partition) in &mut self.partitions {
            let Phase::Resolve(resolve) = partition.phase else { continue };
            if !partition.due(now) {
                continue;
            }
            partition.phase = Phase::Resolving(resolve);
            let question = Question {
                partition: who.clone(),
                epoch: partition.handle.epoch(),
                generation: partition.generation,
                resolve,
            };
            let (cluster, isolation) = (self.cluster.clone(), self.isolation);
            self.work.push(
                async move {
                    let outcome = look_up(&cluster, &question, isolation).await;
                    Done::Resolved { question, outcome }
                }
                .boxed(),
            );
        }
    }

    fn resolved(&mut self, question: &Question, outcome: Result<Resolved>) {
        let now = Instant::now();
        let policy = self.offset_reset;
        let Some(partition) = self.partitions.get_mut(&question.partition) else { return };
        let current =
            partition.handle.epoch() == question.epoch && partition.generation == question.generation;
        if !current || partition.phase != Phase::Resolving(question.resolve) {
            return;
        }
        let reaction = match outcome {
            Ok(Resolved::Position { offset }) => {
                partition.position = offset;
                partition.phase = Phase::Fetch;
                partition.succeeded();
                return;
            }
            Ok(Resolved::Ends { log_start, end }) => partition.out_of_range(log_start, end, policy),
            Err(error) if error.is_retriable() => {
                tracing::warn!(partition = %question.partition, %error, "position not found yet");
                partition.phase = Phase::Resolve(question.resolve);
                Reaction::Refresh
            }
            Err(error) => Reaction::Fail(error),
        };
        self.react(&question.partition, reaction, now);
    }

    fn react(&mut self, who: &TopicPartition, reaction: Reaction, now: Instant) {
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

    fn fail(&mut self, who: &TopicPartition, error: KafkaError) {
        let Some(partition) = self.partitions.get_mut(who) else { return };
        partition.phase = Phase::Failed;
        let (handle, generation) = (partition.handle.clone(), partition.generation);
        self.emit(Item::Failed { handle, generation, error });
    }

    fn emit(&self, item: Item) {
        // The receiving half is gone when the consumer is being dropped; the commands will end next.
        let _ = self.out.send(item);
    }

    // -- asking ----------------------------------------------------------------------------------------------------------

    /// Sends a fetch to every broker that has none in flight and may have one.
    fn ask(&mut self, now: Instant) {
        let mut by_broker: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        let metadata = self.cluster.metadata();
        for (who, partition) in &self.partitions {
            if !partition.ready(now) {
                continue;
            }
            match metadata.leadership(who).and_then(|known| known.leader) {
                Some(leader) => by_broker.entry(leader).or_default().push(who.clone()),
                None => self.stale = true,
            }
        }
        if self.stale && !self.refreshing {
            self.refresh(now);
        }
        for (broker, ready) in by_broker {
            let settings = self.cluster.settings();
            let asked = self.brokers.entry(broker).or_insert_with(|| Asked {
                in_flight: false,
                waiting: self.waiting.another_broker(),
                backoff: Backoff::new(settings.reconnect_backoff),
                not_before: None,
                first: 0,
            });
            let turn = asked.not_before.is_none_or(|at| at <= now);
            let room = asked.waiting.of_broker() < self.fetch.partition_max_bytes
                && asked.waiting.total() < self.fetch.buffer_bytes;
            if asked.in_flight || !turn || !room {
                continue;
            }
            asked.in_flight = true;
            asked.first = (asked.first + 1) % ready.len();
            let first = asked.first;
            self.send(broker, &ready, first, &metadata);
        }
    }

    fn send(&mut self, broker: i32, ready: &[TopicPartition], first: usize, metadata: &Metadata) {
        let mut sent: Vec<Sent> = Vec::with_capacity(ready.len());
        let mut topics: Vec<FetchTopic> = Vec::new();
        for who in ready[first..].iter().chain(&ready[..first]) {
            let Some(partition) = self.partitions.get(who) else { continue };
            let asked = FetchPartition {
                partition: who.partition,
                current_leader_epoch: metadata.leadership(who).map_or(-1, |known| known.epoch),
                fetch_offset: partition.position,
                last_fetched_epoch: partition.last_epoch,
                max_bytes: i32::try_from(partition.max_bytes).unwrap_or(i32::MAX),
            };
            match topics.last_mut().filter(|topic| topic.topic.name == who.topic) {
                Some(topic) => topic.partitions.push(asked),
                None => topics.push(FetchTopic { topic: partition.topic.clone(), partitions: vec![asked] }),
            }
            sent.push(Sent {
                partition: who.clone(),
                topic: partition.topic.clone(),
                epoch: partition.handle.epoch(),
                generation: partition.generation,
                position: partition.position,
            });
        }
        let request = FetchRequest {
            max_wait_ms: i32::try_from(self.fetch.max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: i32::try_from(self.fetch.min_bytes).unwrap_or(i32::MAX),
            max_bytes: i32::try_from(self.fetch.max_bytes).unwrap_or(i32::MAX),
            read_committed: self.isolation == Isolation::ReadCommitted,
            topics,
            ..FetchRequest::default()
        };
        let (cluster, waits) = (self.cluster.clone(), self.fetch.max_wait);
        self.work.push(
            async move {
                let outcome = exchange(&cluster, broker, &request, waits).await;
                Done::Fetched { broker, sent, outcome }
            }
            .boxed(),
        );
    }

    // -- answers ---------------------------------------------------------------------------------------------------------

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

    fn fetched(&mut self, broker: i32, sent: &[Sent], outcome: Result<FetchResponse>) {
        let now = Instant::now();
        let outcome = outcome.and_then(|response| match response.error {
            ErrorCode::None => Ok(response),
            code => Err(KafkaError::broker(code, fetch::NAME, Subject::Broker(broker))),
        });
        let Some(asked) = self.brokers.get_mut(&broker) else { return };
        asked.in_flight = false;
        match outcome {
            Ok(response) => {
                asked.backoff.reset();
                asked.not_before = None;
                let waiting = asked.waiting.clone();
                self.answered(sent, response, &waiting, now);
            }
            Err(error) if error.is_retriable() => {
                tracing::debug!(broker, %error, "fetch failed");
                asked.not_before = Some(now + asked.backoff.next_delay(&mut self.rng));
                self.stale = true;
            }
            Err(error) => {
                for sent in sent.iter().filter(|sent| self.is_current(sent)).collect::<Vec<_>>() {
                    self.fail(&sent.partition, error.clone());
                }
            }
        }
    }

    fn is_current(&self, sent: &Sent) -> bool {
        self.partitions.get(&sent.partition).is_some_and(|partition| {
            partition.handle.epoch() == sent.epoch
                && partition.handle.is_active()
                && partition.generation == sent.generation
                && partition.position == sent.position
                && partition.phase == Phase::Fetch
        })
    }

    fn answered(&mut self, sent: &[Sent], response: FetchResponse, waiting: &Waiting, now: Instant) {
        for topic in response.topics {
            for answer in topic.partitions {
                let asked = sent
                    .iter()
                    .find(|sent| sent.partition.partition == answer.partition && topic.topic.is(&sent.topic));
                // What was not asked for, or belongs to an assignment or a position of the past, has no effect.
                if let Some(asked) = asked.filter(|sent| self.is_current(sent)) {
                    self.take(&asked.partition, answer, &response.endpoints, waiting, now);
                }
            }
        }
    }

    fn take(
        &mut self,
        who: &TopicPartition,
        answer: FetchedPartition,
        endpoints: &[NodeEndpoint],
        waiting: &Waiting,
        now: Instant,
    ) {
        let policy = self.offset_reset;
        let most = self.cluster.settings().max_response_bytes;
        let Some(partition) = self.partitions.get_mut(who) else { return };
        if let Some(diverging) = answer.diverging {
            let reaction = partition.truncated(diverging.end_offset, policy);
            self.react(who, reaction, now);
            return;
        }
        if !answer.error.is_ok() {
            let reaction = partition.react(answer.error);
            let hinted = self.hint(who, &answer, endpoints);
            if !(hinted && matches!(reaction, Reaction::Refresh)) {
                self.react(who, reaction, now);
            }
            return;
        }
        let info = (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset);
        let item = partition.advance(answer, waiting, most);
        partition.handle.note_answer(FetchAnswer {
            position: partition.position,
            high_watermark: info.0,
            last_stable_offset: if info.1 < 0 { info.0 } else { info.1 },
            log_start: info.2,
            at: now,
        });
        match item {
            Ok(Some(item)) => self.emit(Item::Fetched(item)),
            Ok(None) => {}
            Err(reaction) => self.react(who, reaction, now),
        }
    }

    /// Takes up what the answer says about the partition's leader. Whether it was news.
    fn hint(&self, who: &TopicPartition, answer: &FetchedPartition, endpoints: &[NodeEndpoint]) -> bool {
        let Some(current) = answer.current_leader.filter(|current| current.leader >= 0) else { return false };
        let endpoint = endpoints.iter().find(|endpoint| endpoint.node == current.leader);
        let broker = endpoint.and_then(|endpoint| {
            Some(Broker {
                id: endpoint.node,
                address: datum_net::Address::new(&endpoint.host, u16::try_from(endpoint.port).ok()?),
                rack: endpoint.rack.as_deref().map(Into::into),
            })
        });
        self.cluster.hint_leader(
            who,
            Leadership { leader: Some(current.leader), epoch: current.epoch },
            broker,
        )
    }

    // -- time ------------------------------------------------------------------------------------------------------------

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

impl Partition {
    /// Moves the position over an answer without an error, and makes an item of its records if it has any.
    fn advance(
        &mut self,
        answer: FetchedPartition,
        waiting: &Waiting,
        most: usize,
    ) -> Result<Option<Fetched>, Reaction> {
        let size = answer.records.len();
        if size == 0 {
            self.succeeded();
            return Ok(None);
        }
        let set = BatchSet::new(answer.records);
        let mut headers = set.clone();
        let from = self.position;
        let mut readable = true;
        let mut batches = 0;
        for batch in headers.by_ref() {
            match batch {
                Ok(batch) if batch.header.next_offset() > self.position => {
                    self.position = batch.header.next_offset();
                    self.last_epoch = batch.header.leader_epoch;
                    batches += 1;
                }
                Ok(_) => {}
                Err(_) => readable = false,
            }
        }
        if !readable {
            // The consumer meets it in its turn, after what is good before it, and says what to do.
            self.phase = Phase::Held;
        } else if batches == 0 {
            return self.nothing_whole(headers.tail().and_then(|tail| tail.needed), most);
        } else {
            self.succeeded();
        }
        Ok(Some(Fetched {
            handle: self.handle.clone(),
            generation: self.generation,
            position: from,
            set,
            aborted: AbortedTransactions::new(answer.aborted),
            weight: Some(waiting.add(size)),
        }))
    }

    /// Not one batch came whole: asks for as much as the first needs.
    fn nothing_whole(&mut self, needed: Option<usize>, most: usize) -> Result<Option<Fetched>, Reaction> {
        let ask = needed.unwrap_or(self.max_bytes.saturating_mul(2));
        if ask > most {
            let partition = self.handle.partition().clone();
            return Err(Reaction::Fail(
                KafkaErrorKind::BatchTooLarge { partition, offset: self.position, size: ask, limit: most }
                    .into(),
            ));
        }
        let grown = ask > self.max_bytes;
        self.max_bytes = self.max_bytes.max(ask);
        // A broker that answers a larger request with nothing whole again must not make us spin.
        if grown { Ok(None) } else { Err(Reaction::Retry) }
    }
}

async fn exchange(
    cluster: &Cluster,
    broker: i32,
    request: &FetchRequest,
    waits: Duration,
) -> Result<FetchResponse> {
    let connection = cluster.connection(broker, Purpose::Data).await?;
    let by_id = request.topics.iter().all(|topic| topic.topic.has_id());
    let highest = if by_id { fetch::MAX_VERSION } else { fetch::FIRST_VERSION_BY_ID - 1 };
    let version = connection.version_between(fetch::KEY, fetch::NAME, fetch::MIN_VERSION, highest)?;
    let mut body = Vec::new();
    request.encode(version, &mut body).map_err(|error| {
        KafkaError::from(KafkaErrorKind::Encode { api: fetch::NAME, reason: error.to_string().into() })
    })?;
    let answer = connection
        .send_raw(RawRequest {
            key: fetch::KEY,
            name: fetch::NAME,
            version,
            flexible: fetch::flexible(version),
            body: vec![body.into()],
            waits,
        })
        .await?;
    FetchResponse::decode(version, &answer).map_err(|error| {
        KafkaError::protocol(connection.peer().clone(), fetch::NAME, ProtocolFault::Wire(error))
    })
}
