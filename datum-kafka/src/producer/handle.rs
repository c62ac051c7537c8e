//! The producer as its user sees it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use datum_net::Rng;
use tokio::{
    sync::{Notify, Semaphore, mpsc, oneshot, watch},
    time::{Instant, timeout},
};

use super::{
    Delivered, Delivery, Failure, ProducerIdentity, ProducerRecord, SendError, SendFault,
    accumulator::Accumulator,
    broker::Terms,
    sender::{Command, Sender},
};
use crate::{
    TopicPartition,
    cluster::Cluster,
    error::Result,
    settings::{Acks, ProducerSettings},
    wire::produce,
};

/// Sends records. Clones share batches, connection and buffer.
///
/// Records of one partition are written in the order they were given to [`send`](Self::send), each once, as long as none of them
/// fails; see [`Lane`](super::Lane) for what happens then. The last clone that is dropped leaves the sending of what was
/// accepted to a task of its own; [`close`](Self::close) waits for it.
#[derive(Clone, Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    cluster: Cluster,
    commands: mpsc::UnboundedSender<Command>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: ProducerSettings,
    accumulator: Mutex<Accumulator>,
    pub(super) wake: Notify,
    /// Bytes that may still be accepted.
    pub(super) buffer: Semaphore,
    /// How many callers wait for everything to be sent.
    flushes: std::sync::atomic::AtomicUsize,
    /// The oldest batch whose fate is open.
    oldest: watch::Sender<u64>,
    /// The first failure since it was last asked for.
    failure: Mutex<Option<Failure>>,
}

impl Producer {
    /// Connects to the cluster of the settings.
    ///
    /// # Errors
    /// Settings that do not hold, or no bootstrap address answers.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connect(settings: ProducerSettings) -> Result<Self> {
        settings.validate()?;
        let cluster = Cluster::connect(settings.client.clone()).await?;
        Ok(Self::start(cluster, settings))
    }

    /// A producer on a cluster that others use too. Their requests share its connections, so a consumer's long poll or join may
    /// hold up a request of this producer; where that matters, use [`connect`](Self::connect).
    ///
    /// # Errors
    /// Settings that do not hold.
    pub fn new(cluster: Cluster, settings: ProducerSettings) -> Result<Self> {
        settings.validate()?;
        Ok(Self::start(cluster, settings))
    }

    fn start(cluster: Cluster, settings: ProducerSettings) -> Self {
        let terms = Terms {
            transactional_id: settings.transactional_id.clone(),
            acks: if settings.acks == Acks::All { -1 } else { 1 },
            timeout: settings.client.request_timeout,
            // Writing to a transaction must not add the partition to it by itself unless that was agreed on.
            max_version: if settings.transactional_id.is_some() {
                produce::FIRST_VERSION_IMPLICIT_TRANSACTION - 1
            } else {
                produce::MAX_VERSION
            },
        };
        let shared = Arc::new(Shared {
            accumulator: Mutex::new(Accumulator::new(Rng::from_entropy())),
            wake: Notify::new(),
            buffer: Semaphore::new(settings.buffer_bytes.min(Semaphore::MAX_PERMITS)),
            flushes: 0.into(),
            oldest: watch::Sender::new(u64::MAX),
            failure: Mutex::new(None),
            settings,
        });
        let (commands, inbox) = mpsc::unbounded_channel();
        tokio::spawn(Sender::new(shared.clone(), cluster.clone(), inbox, terms).run());
        Self { shared, cluster, commands }
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &ProducerSettings {
        &self.shared.settings
    }

    /// The cluster it sends to.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Accepts a record. Waits while the buffer is full (`buffer_bytes`), and for the topic's partitions the first time. The
    /// [`Delivery`] is the record's fate.
    ///
    /// # Errors
    /// [`SendFault::TooLarge`], [`SendFault::NoSuchPartition`], [`SendFault::Topic`], [`SendFault::Closed`]; the record was not written.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, nothing was accepted.
    pub async fn send(&self, record: ProducerRecord) -> Result<Delivery, SendError> {
        let settings = &self.shared.settings;
        let fail = |why| SendError { subject: record.topic.clone(), why, possibly_written: false };
        let size = record.size();
        if size > settings.max_request_bytes {
            return Err(fail(SendFault::TooLarge { size, limit: settings.max_request_bytes }));
        }
        let count = match self.cluster.metadata().partition_count(&record.topic) {
            Some(count) => count,
            None => {
                self.partition_count(&record.topic).await.map_err(|error| fail(SendFault::Topic(error)))?
            }
        };
        if let Some(partition) = record.partition
            && usize::try_from(partition).map_or(true, |partition| partition >= count)
        {
            return Err(fail(SendFault::NoSuchPartition { partition, count }));
        }
        let permits = u32::try_from(size).unwrap_or(u32::MAX);
        let room = match self.shared.buffer.try_acquire_many(permits) {
            Ok(room) => room,
            Err(_) => {
                self.shared.wake.notify_one();
                let room = self.shared.buffer.acquire_many(permits).await;
                room.map_err(|_| fail(SendFault::Closed))?
            }
        };
        let mut accumulator = self.shared.lock();
        if accumulator.closed {
            return Err(fail(SendFault::Closed));
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let partition = accumulator.partition(&record, count, settings.batch_bytes);
        let tp = TopicPartition::new(record.topic.clone(), partition);
        let now = Instant::now().into_std();
        let appended = accumulator.append(tp, &record, now, wall_clock_ms(), settings.batch_bytes);
        drop(accumulator);
        let (delivery, wake) =
            appended.map_err(|_| fail(SendFault::TooLarge { size, limit: settings.max_request_bytes }))?;
        room.forget();
        if wake {
            self.shared.wake.notify_one();
        }
        Ok(delivery)
    }

    /// Accepts a record and waits for its fate.
    ///
    /// # Errors
    /// As [`send`](Self::send), and what befalls its batch.
    ///
    /// # Cancel safety
    /// Once accepted, the record is sent whether or not the future is dropped.
    pub async fn send_and_wait(&self, record: ProducerRecord) -> Result<Delivered, SendError> {
        self.send(record).await?.await
    }

    /// Sends everything accepted so far without lingering, and waits until its fate is decided.
    ///
    /// # Cancel safety
    /// Safe; the sending goes on.
    pub async fn flush(&self) {
        let _flushing = Flushing::new(&self.shared);
        let mut oldest = self.shared.oldest.subscribe();
        let newest = self.shared.lock().newest();
        self.shared.announce();
        self.shared.wake.notify_one();
        // The sender ends only after everything is decided.
        let _ = oldest.wait_for(|oldest| *oldest > newest).await;
    }

    /// Accepts nothing more, and waits until what was accepted is decided, at most for `limit`.
    ///
    /// # Errors
    /// The number of bytes that are still undecided after `limit`; they go on being sent.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn close(self, limit: Duration) -> Result<(), usize> {
        self.shared.lock().closed = true;
        if timeout(limit, self.flush()).await.is_ok() {
            return Ok(());
        }
        let all = self.shared.settings.buffer_bytes.min(Semaphore::MAX_PERMITS);
        Err(all.saturating_sub(self.shared.buffer.available_permits()))
    }

    /// The first failure of a record since the last call.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the identity a transaction coordinator gave.
    pub(crate) fn adopt(&self, identity: ProducerIdentity) {
        let _ = self.commands.send(Command::Adopt(identity));
    }

    /// Whether writing adds partitions to the transaction by itself, from now on.
    pub(crate) fn implicit_partitions(&self, implicit: bool) {
        let version =
            if implicit { produce::MAX_VERSION } else { produce::FIRST_VERSION_IMPLICIT_TRANSACTION - 1 };
        let _ = self.commands.send(Command::Version(version));
    }

    /// Gives up what has not been sent, and waits for what has been.
    pub(crate) async fn abort(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Abort(reply)).is_ok() {
            let _ = done.await;
        }
        self.flush().await;
    }

    /// Which partition a record would go to; fixes it in the record.
    pub(crate) async fn place(&self, record: &mut ProducerRecord) -> Result<TopicPartition, SendError> {
        let fail = |why| SendError { subject: record.topic.clone(), why, possibly_written: false };
        let count = match self.cluster.metadata().partition_count(&record.topic) {
            Some(count) => count,
            None => {
                self.partition_count(&record.topic).await.map_err(|error| fail(SendFault::Topic(error)))?
            }
        };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let partition = self.shared.lock().partition(record, count, self.shared.settings.batch_bytes);
        record.partition = Some(partition);
        Ok(TopicPartition::new(record.topic.clone(), partition))
    }

    async fn partition_count(&self, topic: &Arc<str>) -> Result<usize> {
        let grace = Instant::now() + self.cluster.settings().unknown_topic_grace;
        loop {
            self.cluster.require_topics([topic.clone()]).await?;
            if let Some(count) = self.cluster.metadata().partition_count(topic) {
                return Ok(count);
            }
            self.cluster.check_topic(topic)?;
            if Instant::now() >= grace {
                let waited = self.cluster.settings().unknown_topic_grace;
                return Err(crate::KafkaErrorKind::UnknownTopic { topic: topic.clone(), waited }.into());
            }
            self.cluster.refresh().await?;
        }
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Accumulator> {
        self.accumulator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn flushing(&self) -> bool {
        self.flushes.load(std::sync::atomic::Ordering::Acquire) > 0
    }

    /// Tells those who flush which batch is the oldest undecided. Under the lock, so that no older news overtakes it.
    pub(super) fn announce(&self) -> u64 {
        let accumulator = self.lock();
        let oldest = accumulator.oldest();
        self.oldest.send_if_modified(|known| std::mem::replace(known, oldest) != oldest);
        oldest
    }

    pub(super) fn note_failure(&self, why: Failure) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(why);
    }
}

/// Counts a caller of [`Producer::flush`] for as long as it waits.
struct Flushing<'a>(&'a Shared);

impl<'a> Flushing<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.flushes.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        Self(shared)
    }
}

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.0.flushes.fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
    }
}

/// The time a record without a timestamp gets.
fn wall_clock_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
