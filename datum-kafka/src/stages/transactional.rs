//! `Sink::kafka_transactional`: records and the offsets they were made from, visible together or not at all.
//!
//! # Delivery
//! What arrives within one interval (or up to a bound) becomes one transaction: the records, and for each partition they came from the
//! offset after the last of them, in the name of the group's member and generation (KIP-447). Read with `read_committed`, each record
//! from [`Source::kafka`](super::KafkaSources::kafka) has its results exactly once, provided that the stream between keeps the order
//! and makes at most one record of one. An element without acknowledgement takes part with its record alone.
//!
//! From the first transaction on the offsets of a member that takes part are committed by transactions alone, those of records that were left
//! out and acknowledged on the way too: a plain commit that arrived while a transaction is open could take the place of its offsets. The
//! exception is a partition that is given up after its last transaction has ended.
//!
//! # The transactional id
//! It is taken over at the first transaction, not at the start: whoever takes part in one then has partitions assigned, so a process that
//! stands by throws nobody out. The source reads committed offsets only once no transaction holds them, so a process that takes
//! over after a crash waits for the transaction that was open then: up to its `transaction_timeout`.
//!
//! # Rebalances
//! A partition that is taken away is given up only after the transaction with its records has ended, since drains wait for that, up to
//! the group's `drain_timeout`. A transaction in whose time the group formed another generation is committed under the new one, if all
//! its partitions are still this member's; else it is aborted and the stream fails. A stream that failed is run again and goes on
//! where the last transaction ended.
//!
//! # Costs
//! One transaction per interval: a few round trips, and markers in every partition written to. Up to two intervals of records are held.

use std::{fmt, future::Future, marker::PhantomData, pin::Pin, task::Poll, time::Duration};

use datum_core::{
    Materializer, Sink, StreamError,
    blueprint::{Built, SinkBlueprint, Unset},
    clock::Timer,
    sinks::{Completion, Promise, SinkLogic, SinkRun},
    stage::{Driven, Progress, Push, Stage, StageCx, Up},
};

use super::{Outgoing, transact::transact};
use crate::{
    ProducerSettings,
    consumer::{Acknowledgement, Member},
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

/// Writes records and their offsets in transactions, one every
/// [`transaction_interval`](ProducerSettings#structfield.transaction_interval) in which something arrived; materialises the stream's
/// completion, which waits for the last transaction.
///
/// - **Cancels** when no broker answers at the start, the transactional id is refused, or a transaction is not committed. A stream that fails
///   above it ends the transaction under way first, and gives up what it has gathered since.
pub fn kafka_transactional_sink<T: Outgoing>(settings: ProducerSettings) -> Sink<KafkaTransactionalSink<T>> {
    Sink::from_blueprint(KafkaTransactionalSink { settings, takes: PhantomData })
}

/// The blueprint of [`kafka_transactional_sink`].
pub struct KafkaTransactionalSink<T> {
    settings: ProducerSettings,
    takes: PhantomData<fn(T)>,
}

impl<T> Clone for KafkaTransactionalSink<T> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), takes: PhantomData }
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
        let interval = settings.transaction_interval;
        let working: Working = Box::pin(TransactionalProducer::connect(settings));
        let logic = TransactionalLogic {
            state: State::Working(working),
            interval,
            gathered: Vec::new(),
            members: Vec::new(),
            due: None,
            timer: Timer::default(),
            failure: None,
            promise,
        };
        Ok((SinkRun::new(up, logic), completion))
    }
}

/// A record, and the acknowledgement of what it was made from.
pub(super) type Part = (ProducerRecord, Option<Acknowledgement>);
type Working = Pin<Box<dyn Future<Output = Result<TransactionalProducer, TransactionError>> + Send>>;

/// The logic of [`kafka_transactional_sink`].
pub struct TransactionalLogic {
    state: State,
    interval: Duration,
    gathered: Vec<Part>,
    /// The members that what came so far was from. Their offsets are committed here and nowhere else.
    members: Vec<Member>,
    /// When what is gathered becomes a transaction.
    due: Option<Duration>,
    timer: Timer,
    /// How the upstream failed; the transaction under way is ended first.
    failure: Option<StreamError>,
    promise: Promise<()>,
}

enum State {
    /// Connecting, or in a transaction.
    Working(Working),
    Idle(Box<TransactionalProducer>),
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
            self.poll_working(cx)?;
            if self.begin(up.live(), cx) {
                // Only what has been polled wakes us.
                continue;
            }
            let idle = matches!(self.state, State::Idle(_));
            if !up.live() {
                return match self.failure.take_if(|_| idle) {
                    Some(failure) => Err(failure),
                    None if idle && self.gathered.is_empty() => Ok(Progress::Complete),
                    None => Ok(Progress::Pending),
                };
            }
            let answer = if self.gathered.len() < MAX_RECORDS { self.gather(up, cx) } else { up.tend(cx) };
            match answer {
                Err(failure) => {
                    // What the failed stream had not finished is delivered again.
                    (self.gathered, self.due) = (Vec::new(), None);
                    self.failure = Some(failure);
                }
                Ok(Progress::Pending) => {
                    self.notice_filtered(cx);
                    // What has just arrived needs its timer.
                    if !self.begin(true, cx) {
                        return Ok(Progress::Pending);
                    }
                }
                Ok(_) => {}
            }
        }
    }

    /// Ends the connecting or the transaction under way, if it is done.
    fn poll_working(&mut self, cx: &mut StageCx<'_, '_>) -> Result<(), StreamError> {
        if let State::Working(working) = &mut self.state
            && let Poll::Ready(done) = working.as_mut().poll(cx.task())
        {
            self.state = State::Gone;
            match done {
                Ok(producer) => self.state = State::Idle(Box::new(producer)),
                Err(error) => return Err(self.failure.take().unwrap_or_else(|| failed(error))),
            }
        }
        Ok(())
    }

    /// Takes what there is, as far as it fits into one transaction.
    fn gather<U: Stage<Out: Outgoing>>(&mut self, up: &mut Up<U>, cx: &mut StageCx<'_, '_>) -> Driven {
        let (gathered, due, members) = (&mut self.gathered, &mut self.due, &mut self.members);
        let at = cx.clock().now() + self.interval;
        up.drive(cx, |element| {
            let part = element.into_parts();
            if let Some(member) = part.1.as_ref().map(Acknowledgement::member)
                && !members.contains(&member)
            {
                members.push(member);
            }
            gathered.push(part);
            due.get_or_insert(at);
            if gathered.len() < MAX_RECORDS { Push::Continue(()) } else { Push::Break(()) }
        })
    }

    /// Records that were left out on their way here have offsets, too, and nobody else commits them.
    fn notice_filtered(&mut self, cx: &mut StageCx<'_, '_>) {
        if self.due.is_none()
            && matches!(self.state, State::Idle(_))
            && self.members.iter().any(|member| member.group().ledger().is_dirty())
        {
            self.due = Some(cx.clock().now() + self.interval);
        }
    }

    /// Makes what is gathered a transaction, if it is due and none is under way. Whether it did.
    fn begin(&mut self, live: bool, cx: &mut StageCx<'_, '_>) -> bool {
        let Some(due) = self.due else { return false };
        let full = self.gathered.len() >= MAX_RECORDS;
        if !matches!(self.state, State::Idle(_))
            || (live && !full && self.timer.poll_until(due, cx).is_pending())
        {
            return false;
        }
        if let State::Idle(producer) = std::mem::replace(&mut self.state, State::Gone) {
            self.due = None;
            let parts = std::mem::take(&mut self.gathered);
            self.state = State::Working(Box::pin(transact(*producer, parts, self.members.clone())));
        }
        true
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
            Err(error) => {
                // The source that leaves now must not wait for what nobody will acknowledge.
                (self.gathered, self.state) = (Vec::new(), State::Gone);
                Poll::Ready(Err(error))
            }
        }
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        self.promise.resolve(outcome);
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StreamError {
    StreamError::failed("kafka transactional sink", error)
}
