//! `Source::kafka`: the records of a group member's partitions, each with its acknowledgement.
//!
//! What is acknowledged ([`CommittableRecord::ack`]) is committed in the background, in any order and never past a record that is not
//! acknowledged. So a stream that acknowledges each record when its effect is safe processes every record at least once. What a stream leaves
//! out has to be acknowledged, too; [`CommittableOps`](super::CommittableOps) has operators that do.
//!
//! # Rebalances
//! They are served beside the stream, also while it is busy. Records of a partition that is taken away stop at once; those already emitted
//! may be acknowledged until the drain is over, and after that their acknowledgement has no effect.
//!
//! # Ending
//! At a graceful shutdown the source completes and the member then leaves the group: it waits up to
//! [`drain_timeout`](crate::GroupSettings#structfield.drain_timeout) for what was emitted to be acknowledged, and commits. A cancellation does the
//! same. When the stream is dropped the member leaves without waiting, and what was not committed is delivered again.
//!
//! # Costs
//! A record shares the batch it came in: a few reference counts, no copy.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use datum_codec::stages::Payload;
use datum_core::blueprint::{Blueprint, Built, Unset};
use datum_core::error::StreamError;
use datum_core::materializer::Materializer;
use datum_core::prelude::Source;
use datum_core::stage::{CancelCause, Driven, Leaf, Progress, Push, Stage, StageCx};

use crate::consumer::{Acknowledgement, GroupConsumer, PartitionHandle, RecordsBatch};
use crate::error::Result;
use crate::settings::ConsumerSettings;
use crate::wire::batch::Record;

/// The constructors of Kafka sources, found as `Source::kafka(..)`.
pub trait KafkaSources {
    /// The records of a member's partitions, each with its acknowledgement. See [`kafka_source`].
    fn kafka(settings: ConsumerSettings) -> Source<KafkaSource>;
}

impl KafkaSources for Source<Unset> {
    fn kafka(settings: ConsumerSettings) -> Source<KafkaSource> {
        kafka_source(settings)
    }
}

/// Joins the group of `settings` and emits the records of the partitions it is given; of each partition in offset order.
///
/// - **Emits** when records of one of its partitions have been fetched.
/// - **Completes** at a graceful shutdown only.
/// - **Fails** when settings are refused, no broker answers at the start, or something befalls a partition that waiting does not mend.
///
/// ```no_run
/// use datum_core::prelude::*;
/// use datum_kafka::ConsumerSettings;
/// use datum_kafka::stages::{CommittableRecord, KafkaSources};
/// # async fn run() -> Result<(), StreamError> {
/// let settings = ConsumerSettings::new("localhost:9092").group("audit").topic("orders");
/// Source::kafka(settings)
///     .run_with(Sink::foreach(|record: CommittableRecord| {
///         println!("{:?} at {}", record.record().key(), record.record().offset());
///         record.ack();
///     }))?
///     .await?;
/// # Ok(())
/// # }
/// ```
pub fn kafka_source(settings: ConsumerSettings) -> Source<KafkaSource> {
    Source::from_blueprint(KafkaSource { settings })
}

/// A record's value, or what was made of it, together with the record's key, place and acknowledgement.
#[derive(Clone)]
pub struct Committable<T> {
    value: T,
    batch: Arc<RecordsBatch>,
    position: usize,
    ack: Acknowledgement,
}

/// A record as it came. The value of a tombstone is empty; [`is_tombstone`](Committable::is_tombstone) tells it from an empty value.
pub type CommittableRecord = Committable<Bytes>;

impl<T> Committable<T> {
    /// The record's value, or what was made of it.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The value alone. The record is not acknowledged by that: take [`acknowledgement`](Self::acknowledgement) before.
    pub fn into_value(self) -> T {
        self.value
    }

    /// The same record with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Committable<U> {
        Committable { value: f(self.value), batch: self.batch, position: self.position, ack: self.ack }
    }

    /// The same record with another value; or none, if `f` leaves it out: then it is acknowledged, since nothing remains to be done for it.
    pub fn filter_map<U>(self, f: impl FnOnce(T) -> Option<U>) -> Option<Committable<U>> {
        let Self { value, batch, position, ack } = self;
        match f(value) {
            Some(value) => Some(Committable { value, batch, position, ack }),
            None => {
                ack.ack();
                None
            }
        }
    }

    /// The record it came from, with key, timestamp, offset and headers.
    ///
    /// # Panics
    /// Never: the position was taken from the batch.
    pub fn record(&self) -> Record<'_> {
        self.batch.get(self.position).expect("a position of the batch")
    }

    /// The record's offset.
    pub fn offset(&self) -> i64 {
        self.record().offset()
    }

    /// Whether the record had no value.
    pub fn is_tombstone(&self) -> bool {
        self.record().value().is_none()
    }

    /// The partition and the assignment it came under.
    pub fn handle(&self) -> &PartitionHandle {
        self.ack.handle()
    }

    /// Its acknowledgement, to be carried on without the record.
    pub fn acknowledgement(&self) -> &Acknowledgement {
        &self.ack
    }

    /// Says that the record is done. False if that had no effect: it was done before, or the partition is no longer ours.
    pub fn ack(&self) -> bool {
        self.ack.ack()
    }
}

/// So `.decode(..)` reads the value and keeps the record's place and acknowledgement beside what it made of it.
impl Payload for CommittableRecord {
    type With<T: Send + 'static> = Committable<T>;

    fn payload(&self) -> &Bytes {
        &self.value
    }

    fn with<T: Send + 'static>(self, value: T) -> Committable<T> {
        self.map(|_| value)
    }

    /// It is done: nothing will be made of it.
    fn left_out(self) {
        self.ack();
    }
}

impl<T> fmt::Debug for Committable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.batch.partition(), self.offset())
    }
}

/// The blueprint of [`kafka_source`]. Each run joins the group as a member of its own.
#[derive(Clone, Debug)]
pub struct KafkaSource {
    settings: ConsumerSettings,
}

/// The stage of [`kafka_source`].
pub struct KafkaSourceStage {
    settings: ConsumerSettings,
    state: State,
    /// What is left of the batch being emitted.
    batch: Option<(Arc<RecordsBatch>, VecDeque<Acknowledgement>, usize)>,
}

type Joining = Pin<Box<dyn Future<Output = Result<GroupConsumer>> + Send>>;
type Leaving = Pin<Box<dyn Future<Output = ()> + Send>>;

enum State {
    Joining(Joining),
    Running(Box<GroupConsumer>),
    Leaving(Leaving),
    Closed,
}

impl Blueprint for KafkaSource {
    type Out = CommittableRecord;
    type Mat = ();
    type Stage = Leaf<KafkaSourceStage>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        self.settings.validate().map_err(failed)?;
        let settings = self.settings.clone();
        let joining: Joining = Box::pin(async move { GroupConsumer::join(&settings).await });
        let stage = KafkaSourceStage { settings: self.settings, state: State::Joining(joining), batch: None };
        Ok((Leaf::new(stage, materializer), ()))
    }
}

impl KafkaSourceStage {
    /// Joins if it has not yet. Whether it is a member's turn to be polled.
    fn poll_joined(&mut self, cx: &mut StageCx<'_, '_>) -> std::result::Result<Poll<()>, StreamError> {
        if let State::Joining(joining) = &mut self.state {
            match joining.as_mut().poll(cx.task()) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(consumer)) => self.state = State::Running(Box::new(consumer)),
                Poll::Ready(Err(error)) => {
                    self.state = State::Closed;
                    return Err(failed(error));
                }
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Fetches the next batch if none is held. Ready when one is.
    fn poll_batch(&mut self, cx: &mut StageCx<'_, '_>) -> std::result::Result<Poll<()>, StreamError> {
        if self.poll_joined(cx)?.is_pending() {
            return Ok(Poll::Pending);
        }
        let State::Running(consumer) = &mut self.state else { return Ok(Poll::Pending) };
        match consumer.poll_next_by_record(cx.task()) {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(Ok((batch, acks))) => {
                self.batch = Some((Arc::new(batch), acks.into(), 0));
                Ok(Poll::Ready(()))
            }
            Poll::Ready(Err(error)) => {
                self.leave();
                Err(failed(error))
            }
        }
    }

    /// The next record of the batch held, if its partition is still ours.
    fn next_record(&mut self) -> Option<CommittableRecord> {
        let (batch, acks, position) = self.batch.as_mut()?;
        let active = batch.handle().is_active();
        let Some(ack) = acks.pop_front_if(|_| active) else {
            self.drop_batch();
            return None;
        };
        let value = batch.get(*position).and_then(|record| record.value_bytes()).unwrap_or_default();
        let record = Committable { value, batch: batch.clone(), position: *position, ack };
        *position += 1;
        Some(record)
    }

    /// Drops what is left of the batch; nobody will acknowledge it.
    fn drop_batch(&mut self) {
        if let Some((_, acks, _)) = self.batch.take()
            && let Some(next) = acks.front()
        {
            next.withdraw();
        }
    }

    fn leave(&mut self) {
        self.drop_batch();
        let limit = self.settings.group.drain_timeout;
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Running(consumer) => State::Leaving(Box::pin(async move {
                if let Err(error) = consumer.leave(limit).await {
                    tracing::warn!(%error, "the group was not left in order");
                }
            })),
            State::Leaving(leaving) => State::Leaving(leaving),
            State::Joining(_) | State::Closed => State::Closed,
        };
    }
}

impl Stage for KafkaSourceStage {
    type Out = CommittableRecord;

    fn drive<P: FnMut(CommittableRecord) -> Push>(
        &mut self,
        cx: &mut StageCx<'_, '_>,
        mut push: P,
    ) -> Driven {
        loop {
            while let Some(record) = self.batch.is_some().then(|| self.next_record()).flatten() {
                if push(record).is_break() {
                    return Ok(Progress::Stopped);
                }
                if !cx.spend() {
                    return Ok(Progress::Pending);
                }
            }
            if self.poll_batch(cx)?.is_pending() {
                return Ok(Progress::Pending);
            }
        }
    }

    /// Joins, and notices a failure, also before the first demand; fetches at most one batch ahead.
    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if self.batch.is_none() {
            let _ = self.poll_batch(cx)?;
        }
        Ok(Progress::Pending)
    }

    fn cancel(&mut self, _: CancelCause, _: &mut StageCx<'_, '_>) {
        self.leave();
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        // A graceful shutdown ends the source without a cancellation.
        if matches!(self.state, State::Running(_) | State::Joining(_)) {
            self.leave();
        }
        if let State::Leaving(leaving) = &mut self.state {
            std::task::ready!(leaving.as_mut().poll(cx.task()));
            self.state = State::Closed;
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for KafkaSourceStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSourceStage").field("topics", &self.settings.topics).finish_non_exhaustive()
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StreamError {
    StreamError::failed("kafka", error)
}
