//! `Sink::kafka_transactional`: records and the offsets they were made from, visible together or not at all.
//!
//! # Delivery
//! What arrives within one interval (or up to a bound) becomes one transaction: the records, and for each partition they came from the
//! offset after the last of them, in the name of the group's member and generation (KIP-447). Read with `read_committed`, each record
//! from [`Source::kafka`](super::KafkaSources::kafka) has its results exactly once, provided that the stream between keeps the order
//! and makes one record of one. An element without acknowledgement takes part with its record alone.
//!
//! # Rebalances
//! A transaction in whose time the group formed another generation is committed under the new one, if all its partitions are still this
//! member's; else it is aborted and the stream fails. A stream that failed is run again and goes on where the last transaction
//! ended. Elements are acknowledged when their transaction is committed, so a partition is given up only between transactions.
//!
//! # Costs
//! One transaction per interval: a few round trips, and markers in every partition written to. Up to two intervals of records are held.

use std::{
    collections::BTreeMap, fmt, future::Future, marker::PhantomData, pin::Pin, task::Poll, time::Duration,
};

use datum_core::{
    Materializer, Sink, StreamError,
    blueprint::{Built, SinkBlueprint, Unset},
    clock::Timer,
    sinks::{Completion, Promise, SinkLogic, SinkRun},
    stage::{Progress, Push, Stage, StageCx, Up},
};

use super::Outgoing;
use crate::{
    ProducerSettings,
    consumer::{Acknowledgement, PartitionState},
    group::{CommitOffset, Group, Offsets},
    producer::ProducerRecord,
    transaction::{TransactionError, TransactionalProducer},
};

/// The most records of one transaction.
const MAX_RECORDS: usize = 10_000;

/// The constructor of the transactional sink, found as `Sink::kafka_transactional(..)`.
pub trait KafkaTransactionalSinks {
    /// Writes records in transactions. See [`kafka_transactional_sink`].
    fn kafka_transactional<T: Outgoing>(settings: ProducerSettings) -> Sink<KafkaTransactionalSink<T>>;
}

impl KafkaTransactionalSinks for Sink<Unset> {
    fn kafka_transactional<T: Outgoing>(settings: ProducerSettings) -> Sink<KafkaTransactionalSink<T>> {
        kafka_transactional_sink(settings)
    }
}

/// Writes records and their offsets in transactions, one every 100 ms in which something arrived; materialises the stream's
/// completion, which waits for the last transaction.
///
/// - **Cancels** when no broker answers at the start, or a transaction is not committed.
pub fn kafka_transactional_sink<T: Outgoing>(settings: ProducerSettings) -> Sink<KafkaTransactionalSink<T>> {
    Sink::from_blueprint(KafkaTransactionalSink {
        settings,
        interval: Duration::from_millis(100),
        takes: PhantomData,
    })
}

/// The blueprint of [`kafka_transactional_sink`].
pub struct KafkaTransactionalSink<T> {
    settings: ProducerSettings,
    interval: Duration,
    takes: PhantomData<fn(T)>,
}

impl<T> Clone for KafkaTransactionalSink<T> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), interval: self.interval, takes: PhantomData }
    }
}

impl<T> fmt::Debug for KafkaTransactionalSink<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaTransactionalSink").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<T: Outgoing> SinkBlueprint<T> for KafkaTransactionalSink<T> {
    type Mat = Completion<()>;
    type Run<U: Stage<Out = T>> = SinkRun<U, TransactionalLogic>;

    fn attach<U: Stage<Out = T>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        self.settings.validate().map_err(failed)?;
        let (promise, completion) = Completion::new();
        let settings = self.settings;
        let working: Working = Box::pin(async move {
            let mut producer = TransactionalProducer::connect(settings).await?;
            producer.init().await?;
            Ok(producer)
        });
        let logic = TransactionalLogic {
            state: State::Working(working),
            interval: self.interval,
            gathered: Vec::new(),
            due: None,
            timer: Timer::default(),
            promise,
        };
        Ok((SinkRun::new(up, logic), completion))
    }
}

type Part = (ProducerRecord, Option<Acknowledgement>);
type Working = Pin<Box<dyn Future<Output = Result<TransactionalProducer, TransactionError>> + Send>>;

/// The logic of [`kafka_transactional_sink`].
pub struct TransactionalLogic {
    state: State,
    interval: Duration,
    gathered: Vec<Part>,
    /// When what is gathered becomes a transaction.
    due: Option<Duration>,
    timer: Timer,
    promise: Promise<()>,
}

enum State {
    /// Connecting, or in a transaction.
    Working(Working),
    Idle(TransactionalProducer),
    Gone,
}

impl fmt::Debug for TransactionalLogic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionalLogic").field("gathered", &self.gathered.len()).finish_non_exhaustive()
    }
}

impl TransactionalLogic {
    fn work<U: Stage<Out: Outgoing>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Result<Progress, StreamError> {
        up.settle(cx);
        loop {
            if !cx.spend() {
                return Ok(Progress::Pending);
            }
            if let State::Working(working) = &mut self.state
                && let Poll::Ready(done) = working.as_mut().poll(cx.task())
            {
                self.state = State::Gone;
                self.state = State::Idle(done.map_err(failed)?);
            }
            self.begin(up.live(), cx);
            if up.live() && self.gathered.len() < MAX_RECORDS {
                let (gathered, due) = (&mut self.gathered, &mut self.due);
                let at = cx.clock().now() + self.interval;
                let answer = up.drive(cx, |element| {
                    gathered.push(element.into_parts());
                    due.get_or_insert(at);
                    if gathered.len() < MAX_RECORDS { Push::Continue(()) } else { Push::Break(()) }
                })?;
                if answer != Progress::Pending {
                    continue;
                }
                // What has just arrived may be due, and its timer has to be set.
                let before = matches!(self.state, State::Idle(_));
                self.begin(true, cx);
                if before && matches!(self.state, State::Working(_)) {
                    continue;
                }
                return Ok(Progress::Pending);
            }
            if up.live() {
                up.tend(cx)?;
                return Ok(Progress::Pending);
            }
            let over = self.gathered.is_empty() && matches!(self.state, State::Idle(_));
            if over {
                return Ok(Progress::Complete);
            }
            if let State::Working(working) = &mut self.state {
                // Just begun, it has to be polled to be woken.
                match working.as_mut().poll(cx.task()) {
                    Poll::Pending => return Ok(Progress::Pending),
                    Poll::Ready(done) => {
                        self.state = State::Gone;
                        self.state = State::Idle(done.map_err(failed)?);
                    }
                }
            }
        }
    }

    /// Makes what is gathered a transaction, if it is due and none is under way.
    fn begin(&mut self, live: bool, cx: &mut StageCx<'_, '_>) {
        let Some(due) = self.due else { return };
        let full = self.gathered.len() >= MAX_RECORDS;
        if !matches!(self.state, State::Idle(_))
            || (live && !full && self.timer.poll_until(due, cx).is_pending())
        {
            return;
        }
        if let State::Idle(producer) = std::mem::replace(&mut self.state, State::Gone) {
            self.due = None;
            let parts = std::mem::take(&mut self.gathered);
            self.state = State::Working(Box::pin(transact(producer, parts)));
        }
    }
}

impl<T: Outgoing> SinkLogic<T> for TransactionalLogic {
    fn poll<U: Stage<Out = T>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        match self.work(up, cx) {
            Ok(Progress::Complete) => Poll::Ready(Ok(())),
            Ok(Progress::Pending | Progress::Stopped) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        self.promise.resolve(outcome);
    }
}

/// One transaction. After an error that leaves it open it is aborted, and the error is what counts.
async fn transact(
    mut producer: TransactionalProducer,
    parts: Vec<Part>,
) -> Result<TransactionalProducer, TransactionError> {
    producer.begin().await?;
    let acks: Vec<Acknowledgement> = parts.iter().filter_map(|(_, ack)| ack.clone()).collect();
    if let Err(error) = fill(&mut producer, parts, &acks).await {
        if let Err(second) = producer.abort().await {
            tracing::warn!(%second, "a transaction could not be aborted; the coordinator will");
        }
        return Err(error);
    }
    for ack in &acks {
        ack.ack();
    }
    Ok(producer)
}

async fn fill(
    producer: &mut TransactionalProducer,
    parts: Vec<Part>,
    acks: &[Acknowledgement],
) -> Result<(), TransactionError> {
    for (record, _) in parts {
        drop(producer.send(record).await?);
    }
    let mut groups: BTreeMap<String, (Group, Offsets)> = BTreeMap::new();
    for ack in acks {
        let group = ack.group();
        let (_, offsets) =
            groups.entry(group.name().to_string()).or_insert_with(|| (group.clone(), Offsets::new()));
        let next = CommitOffset::new(ack.next_offset());
        let known = offsets.entry(ack.handle().partition().clone()).or_insert_with(|| next.clone());
        if next.offset > known.offset {
            *known = next;
        }
    }
    for (group, offsets) in groups.into_values() {
        send_offsets(producer, &group, &offsets, acks).await?;
    }
    producer.commit().await
}

/// Sends offsets in the member's present name, and again in its next one where the group went on meanwhile.
async fn send_offsets(
    producer: &mut TransactionalProducer,
    group: &Group,
    offsets: &Offsets,
    acks: &[Acknowledgement],
) -> Result<(), TransactionError> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let lost = || TransactionError::Generation {
        group: group.name().clone(),
        code: crate::ErrorCode::UnknownMemberId,
    };
    let mut than = -1;
    loop {
        let member = group.identity_after(than, PATIENCE).await.map_err(|_| lost())?;
        // Records of a partition that has gone meanwhile are its next owner's to process.
        if acks.iter().any(|ack| ack.handle().state() > PartitionState::Draining) {
            return Err(lost());
        }
        match producer.send_offsets(offsets, &member).await {
            Err(TransactionError::Generation { code: crate::ErrorCode::IllegalGeneration, .. }) => {
                than = member.generation;
            }
            other => return other,
        }
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StreamError {
    StreamError::failed("kafka transactional sink", error)
}
