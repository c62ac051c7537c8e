//! `Sink::kafka`: records into topics, each acknowledged to where it came from once it is written.
//!
//! # Order and delivery
//! Records of one partition are written in the order they arrive. An element that carries an acknowledgement ([`Committable`] of a
//! record) is acknowledged when its record is written, so a stream from [`Source::kafka`](super::KafkaSources::kafka) into this sink
//! processes each record at least once.
//!
//! # Costs
//! Up to 10,000 records are written at once, and at most `buffer_bytes` of them; then the sink asks for no more.

use std::{collections::VecDeque, fmt, future::Future, marker::PhantomData, pin::Pin, task::Poll};

use datum_core::{
    Materializer, Sink, StreamError,
    blueprint::{Built, SinkBlueprint, Unset},
    sinks::{Completion, Promise, SinkLogic, SinkRun},
    stage::{Progress, Push, Stage, StageCx, Up},
};

use super::Committable;
use crate::{
    ProducerSettings,
    consumer::Acknowledgement,
    error::Result,
    producer::{Delivery, Producer, ProducerRecord, SendError},
};

/// The most records that are written and undecided at once.
const MAX_UNDECIDED: usize = 10_000;

/// The constructors of Kafka sinks, found as `Sink::kafka(..)`.
pub trait KafkaSinks {
    /// Writes records. See [`kafka_sink`].
    fn kafka<T: Outgoing>(settings: ProducerSettings) -> Sink<KafkaSink<T>>;
}

impl KafkaSinks for Sink<Unset> {
    fn kafka<T: Outgoing>(settings: ProducerSettings) -> Sink<KafkaSink<T>> {
        kafka_sink(settings)
    }
}

/// What a Kafka sink takes: a record, with or without the acknowledgement of what it was made from.
pub trait Outgoing: Send + 'static {
    /// The record, and what is to be acknowledged when it is written.
    fn into_parts(self) -> (ProducerRecord, Option<Acknowledgement>);
}

impl Outgoing for ProducerRecord {
    fn into_parts(self) -> (ProducerRecord, Option<Acknowledgement>) {
        (self, None)
    }
}

impl Outgoing for Committable<ProducerRecord> {
    fn into_parts(self) -> (ProducerRecord, Option<Acknowledgement>) {
        let ack = self.acknowledgement().clone();
        (self.into_value(), Some(ack))
    }
}

/// Writes records to Kafka; materialises the stream's completion, which waits until the last record is written.
///
/// - **Cancels** when no broker answers at the start, or a record is not delivered.
///
/// ```no_run
/// use datum_core::prelude::*;
/// use datum_kafka::{ConsumerSettings, ProducerSettings, producer::ProducerRecord};
/// use datum_kafka::stages::{KafkaSinks, KafkaSources};
/// # async fn run() -> Result<(), StreamError> {
/// let input = ConsumerSettings::new("localhost:9092").group("copy").topic("orders");
/// Source::kafka(input)
///     .map(|record| record.map(|value| ProducerRecord::new("orders-copy", value)))
///     .run_with(Sink::kafka(ProducerSettings::new("localhost:9092")))?
///     .await?;
/// # Ok(())
/// # }
/// ```
pub fn kafka_sink<T: Outgoing>(settings: ProducerSettings) -> Sink<KafkaSink<T>> {
    Sink::from_blueprint(KafkaSink { settings, takes: PhantomData })
}

/// The blueprint of [`kafka_sink`]. Each run has a producer of its own.
pub struct KafkaSink<T> {
    settings: ProducerSettings,
    takes: PhantomData<fn(T)>,
}

impl<T> Clone for KafkaSink<T> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), takes: PhantomData }
    }
}

impl<T> fmt::Debug for KafkaSink<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink").field("settings", &self.settings).finish()
    }
}

impl<T: Outgoing> SinkBlueprint<T> for KafkaSink<T> {
    type Mat = Completion<()>;
    type Run<U: Stage<Out = T>> = SinkRun<U, KafkaSinkLogic>;

    fn attach<U: Stage<Out = T>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        self.settings.validate().map_err(failed)?;
        let (promise, completion) = Completion::new();
        let connecting: Connecting = Box::pin(Producer::connect(self.settings));
        let logic = KafkaSinkLogic {
            state: State::Connecting(connecting),
            sending: None,
            undecided: VecDeque::new(),
            promise,
        };
        Ok((SinkRun::new(up, logic), completion))
    }
}

type Connecting = Pin<Box<dyn Future<Output = Result<Producer>> + Send>>;
type Accepted = (Delivery, Option<Acknowledgement>);
type Sending = Pin<Box<dyn Future<Output = std::result::Result<Accepted, SendError>> + Send>>;

/// The logic of [`kafka_sink`].
pub struct KafkaSinkLogic {
    state: State,
    /// A record that waits for room in the producer's buffer.
    sending: Option<Sending>,
    /// Records in the order they were accepted.
    undecided: VecDeque<Accepted>,
    promise: Promise<()>,
}

enum State {
    Connecting(Connecting),
    Running(Producer),
}

impl fmt::Debug for KafkaSinkLogic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSinkLogic").field("undecided", &self.undecided.len()).finish_non_exhaustive()
    }
}

impl KafkaSinkLogic {
    /// The producer, once it is connected.
    fn poll_producer(
        &mut self,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<std::result::Result<Producer, StreamError>> {
        if let State::Connecting(connecting) = &mut self.state {
            match std::task::ready!(connecting.as_mut().poll(cx.task())) {
                Ok(producer) => self.state = State::Running(producer),
                Err(error) => return Poll::Ready(Err(failed(error))),
            }
        }
        match &self.state {
            State::Running(producer) => Poll::Ready(Ok(producer.clone())),
            State::Connecting(_) => Poll::Pending,
        }
    }

    /// Acknowledges what is written. The oldest first: what is behind it is not older.
    fn settle(&mut self, cx: &mut StageCx<'_, '_>) -> std::result::Result<(), StreamError> {
        while let Some((delivery, ack)) = self.undecided.front_mut() {
            match Pin::new(delivery).poll(cx.task()) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => return Err(failed(error)),
                Poll::Ready(Ok(_)) => {
                    if let Some(ack) = ack {
                        ack.ack();
                    }
                    self.undecided.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Whether a record still waits for room.
    fn poll_sending(&mut self, cx: &mut StageCx<'_, '_>) -> std::result::Result<bool, StreamError> {
        let Some(sending) = &mut self.sending else { return Ok(false) };
        match sending.as_mut().poll(cx.task()) {
            Poll::Pending => Ok(true),
            Poll::Ready(Err(error)) => Err(failed(error)),
            Poll::Ready(Ok(accepted)) => {
                self.sending = None;
                self.undecided.push_back(accepted);
                Ok(false)
            }
        }
    }

    fn work<U: Stage<Out: Outgoing>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> std::result::Result<Progress, StreamError> {
        up.settle(cx);
        let producer = match self.poll_producer(cx) {
            Poll::Ready(producer) => producer?,
            Poll::Pending => {
                if up.live() {
                    up.tend(cx)?;
                }
                return Ok(Progress::Pending);
            }
        };
        loop {
            if !cx.spend() {
                return Ok(Progress::Pending);
            }
            let waits = self.poll_sending(cx)?;
            self.settle(cx)?;
            if waits || self.undecided.len() >= MAX_UNDECIDED || !up.live() {
                if up.live() {
                    up.tend(cx)?;
                }
                let over = !up.live() && !waits && self.undecided.is_empty();
                return Ok(if over { Progress::Complete } else { Progress::Pending });
            }
            let sending = &mut self.sending;
            let answer = up.drive(cx, |element| {
                let (record, ack) = element.into_parts();
                let producer = producer.clone();
                *sending = Some(Box::pin(async move { Ok((producer.send(record).await?, ack)) }));
                Push::Break(())
            });
            if answer? == Progress::Pending {
                return Ok(Progress::Pending);
            }
        }
    }
}

impl<T: Outgoing> SinkLogic<T> for KafkaSinkLogic {
    fn poll<U: Stage<Out = T>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<std::result::Result<(), StreamError>> {
        match self.work(up, cx) {
            Ok(Progress::Complete) => Poll::Ready(Ok(())),
            Ok(Progress::Pending | Progress::Stopped) => Poll::Pending,
            Err(error) => {
                // Nothing will be acknowledged any more, and the source that leaves now must not wait for it.
                self.sending = None;
                self.undecided.clear();
                Poll::Ready(Err(error))
            }
        }
    }

    fn finish(&mut self, outcome: std::result::Result<(), StreamError>) {
        self.promise.resolve(outcome);
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StreamError {
    StreamError::failed("kafka sink", error)
}
