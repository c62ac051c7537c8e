//! The loop: group events, answers, batches, time.

mod growth;
mod ownership;
mod tasks;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use datum_core::clock::Clock;
use datum_kafka::cluster::Cluster;
use datum_kafka::consumer::{Consumer, RecordsBatch};
use datum_kafka::group::{Group, GroupEvent, GroupEvents};
use datum_kafka::producer::Producer;
use datum_kafka::{Isolation, KafkaError, KafkaErrorKind, OffsetReset, TopicPartition};
use datum_window::Millis;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{MissedTickBehavior, interval};

use super::gauges::Gauges;
use super::group::JobAssignor;
use super::requests::{Finished, Outcome};
use super::unit::Unit;
use super::{JobError, JobLogic, JobObserver, JobReport, Progress, RunSettings};
use crate::machine::MachineError;
use crate::protocol::{Answer, Delivery, DriverSettings, Ended, Lost, Next, Request, Ticket};
use crate::settings::{JobSettings, Mode};

/// How often fetch answers are looked at when nothing else happens.
const TICK: Duration = Duration::from_millis(50);
/// How many ticks pass between two reports of progress.
const TICKS_PER_PROGRESS: u32 = 4;
/// The first wait before the group is asked to form again after a loss; it doubles, up to the longest.
const REJOIN_PAUSE: Millis = 50;
const LONGEST_REJOIN_PAUSE: Millis = 5_000;

/// Units by partition; the exclusive owner's has none.
type Key = Option<u32>;
type Task = Pin<Box<dyn Future<Output = Done> + Send>>;

enum Done {
    Request {
        key: Key,
        ticket: Ticket,
        request: Request,
        finished: Box<Finished>,
    },
    /// How many partitions the topic has.
    Counted(Result<u32, KafkaError>),
    /// Where the logs of partitions that have appeared begin.
    Grown(Result<Vec<(u32, i64)>, KafkaError>),
}

pub(super) struct Work<L: JobLogic> {
    run: RunSettings,
    driver: DriverSettings,
    logic: L,
    observer: Arc<dyn JobObserver>,
    topic: Arc<str>,
    cluster: Cluster,
    group: Group,
    events: GroupEvents,
    assignor: JobAssignor,
    consumer: Consumer,
    /// Writes output outside of transactions.
    plain: Option<Arc<Producer>>,
    units: BTreeMap<Key, Unit<L>>,
    tasks: FuturesUnordered<Task>,
    clock: Clock,
    gauges: Gauges,
    report: JobReport,
    counting: bool,
    counted_at: Millis,
    ticks: u32,
    stopping: bool,
}

impl<L: JobLogic> Work<L> {
    pub(super) async fn start(
        run: RunSettings,
        job: JobSettings,
        logic: L,
        observer: Arc<dyn JobObserver>,
    ) -> Result<Self, JobError> {
        let topic = run.topic()?;
        let cluster = Cluster::connect(run.input.client.clone()).await?;
        let mut input = run.input.clone();
        input.topics.clear();
        input.isolation = Isolation::ReadCommitted;
        input.offset_reset = OffsetReset::None;
        let consumer = Consumer::on(cluster.clone(), &input)?;
        let plain = match run.delivery {
            Delivery::ExactlyOnce => None,
            Delivery::AtLeastOnce => Some(Arc::new(Producer::connect(run.output.clone()).await?)),
        };
        let assignor = JobAssignor::new(topic.clone(), job.mode, job.hash);
        let (group, events) = Group::join(cluster.clone(), ownership::membership(&run, &topic, &assignor));
        let gauges = Gauges::new(&run.group(), &topic);
        let driver =
            DriverSettings { delivery: run.delivery, ending: run.ending, ..DriverSettings::new(job) };
        Ok(Self {
            run,
            driver,
            logic,
            observer,
            topic,
            cluster,
            group,
            events,
            assignor,
            consumer,
            plain,
            units: BTreeMap::new(),
            tasks: FuturesUnordered::new(),
            clock: Clock::real(),
            gauges,
            report: JobReport::default(),
            counting: false,
            counted_at: 0,
            ticks: 0,
            stopping: false,
        })
    }

    pub(super) async fn run(mut self, stop: impl Future<Output = ()> + Send) -> Result<JobReport, JobError> {
        let mut stop = pin!(stop);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wake = self.advance()?;
            if self.is_over() {
                break;
            }
            let reading = self.units.values().any(|unit| unit.driver.wants_input());
            tokio::select! {
                biased;
                event = self.events.next() => {
                    if let Err(error) = self.heard(event) {
                        return Err(self.explained(error).await);
                    }
                }
                Some(done) = self.tasks.next(), if !self.tasks.is_empty() => self.done(done)?,
                () = &mut stop, if !self.stopping => self.stop(),
                _ = tick.tick() => self.look(),
                () = tokio::time::sleep(wake.unwrap_or(TICK)), if wake.is_some() => {}
                batch = self.consumer.next(), if reading => {
                    if let Err(error) = self.fold(batch) {
                        return Err(self.explained(error).await);
                    }
                }
            }
        }
        self.leave().await
    }

    fn now(&self) -> Millis {
        Millis::try_from(self.clock.unix().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Lets every driver go as far as it can. Gives how long until one wants to go on by itself, if that is sooner than
    /// the next look.
    fn advance(&mut self) -> Result<Option<Duration>, JobError> {
        let now = self.now();
        let mut wake = None;
        let keys: Vec<Key> = self.units.keys().copied().collect();
        for key in keys {
            wake = earlier(wake, self.advance_unit(key, now)?);
        }
        let wait = wake.map(|at| Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0)));
        Ok(wait.filter(|wait| *wait < TICK))
    }

    fn advance_unit(&mut self, key: Key, now: Millis) -> Result<Option<Millis>, JobError> {
        loop {
            let Some(unit) = self.units.get_mut(&key) else { return Ok(None) };
            if unit.ended.is_some() {
                return Ok(None);
            }
            unit.note();
            let next = unit.driver.poll(now);
            unit.follow(&mut self.consumer, &self.topic);
            match next {
                Next::Send(ticket, request) => self.request(key, ticket, request),
                Next::Wait(at) => return Ok(at),
                Next::Rejoin(lost) => return self.rejoin(key, lost, now),
                Next::Ended(ended) => {
                    unit.producer = None;
                    unit.ended = Some(ended);
                    return Ok(None);
                }
            }
        }
    }

    /// Asks the group to form again after a loss, with a pause that grows while nothing is committed.
    fn rejoin(&mut self, key: Key, lost: Lost, now: Millis) -> Result<Option<Millis>, JobError> {
        if let Lost::Input(error @ MachineError::CountChanged { .. }) = lost {
            return Err(JobError::Machine(error));
        }
        let Some(unit) = self.units.get_mut(&key) else { return Ok(None) };
        if unit.rejoining {
            return Ok(None);
        }
        let at = *unit.rejoin_at.get_or_insert_with(|| {
            tracing::warn!(topic = %self.topic, partition = ?key, reason = %lost, "recovers from what is committed");
            let pause = REJOIN_PAUSE.saturating_mul(1 << unit.losses.min(10)).min(LONGEST_REJOIN_PAUSE);
            now.saturating_add(pause)
        });
        if now < at {
            return Ok(Some(at));
        }
        unit.rejoin_at = None;
        unit.rejoining = true;
        unit.losses = unit.losses.saturating_add(1);
        unit.producer = None;
        self.report.recoveries += 1;
        self.gauges.recovered();
        self.assignor.owns_since(None);
        self.group.rejoin("a job's owner recovers from what is committed");
        Ok(None)
    }

    fn done(&mut self, done: Done) -> Result<(), JobError> {
        match done {
            Done::Request { key, ticket, request, finished } => {
                self.answered(key, ticket, request, *finished)
            }
            Done::Counted(count) => {
                self.counting = false;
                match count {
                    Ok(count) => self.counted(count),
                    Err(error) => {
                        tracing::warn!(%error, topic = %self.topic, "metadata could not be fetched");
                        Ok(())
                    }
                }
            }
            Done::Grown(Ok(starts)) => self.grown(&starts),
            Done::Grown(Err(error)) => {
                // It is asked for again with the next count.
                tracing::warn!(%error, topic = %self.topic, "the start of a new partition could not be had");
                Ok(())
            }
        }
    }

    fn answered(
        &mut self,
        key: Key,
        ticket: Ticket,
        request: Request,
        finished: Finished,
    ) -> Result<(), JobError> {
        let now = self.now();
        let Some(unit) = self.units.get_mut(&key).filter(|unit| unit.driver.awaits(ticket)) else {
            // An assignment or a loss came in between: whatever it was about is decided elsewhere.
            return Ok(());
        };
        let answer = match finished.outcome {
            Outcome::Answer(answer) => answer,
            Outcome::Fatal(error) => return Err(error),
        };
        if finished.producer.is_some() {
            unit.producer = finished.producer;
        }
        let last = match self.run.delivery {
            Delivery::ExactlyOnce => matches!(request, Request::EndTransaction),
            Delivery::AtLeastOnce => matches!(request, Request::CommitOffsets { .. }),
        };
        if last
            && matches!(answer, Answer::Done)
            && let Some(cut) = unit.driver.cut()
        {
            self.report.commits += 1;
            self.report.windows += u64::try_from(cut.closed.len()).unwrap_or(0);
            unit.losses = 0;
            self.logic.committed(cut);
        }
        unit.note();
        let starts = unit.starts;
        unit.driver.answer(ticket, answer, now);
        unit.follow(&mut self.consumer, &self.topic);
        if unit.starts != starts {
            self.observer.started(unit.starts);
        }
        Ok(())
    }

    fn follow_all(&mut self) {
        for unit in self.units.values_mut() {
            unit.follow(&mut self.consumer, &self.topic);
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        for unit in self.units.values_mut() {
            unit.driver.stop();
        }
    }

    fn fold(&mut self, batch: Result<RecordsBatch, KafkaError>) -> Result<(), JobError> {
        let now = self.now();
        match batch {
            Ok(batch) => {
                let key = self.key_of(batch.partition());
                match self.units.get_mut(&key) {
                    Some(unit) => unit.fold(&mut self.logic, &batch, now),
                    None => Ok(()),
                }
            }
            Err(error) => match error.kind() {
                KafkaErrorKind::OffsetOutOfRange { partition, position, log_start, .. } => {
                    let key = self.key_of(partition);
                    let number = u32::try_from(partition.partition).unwrap_or(u32::MAX);
                    let lost = MachineError::BelowLogStart {
                        partition: number,
                        position: *position,
                        log_start: *log_start,
                    };
                    if let Some(unit) = self.units.get_mut(&key) {
                        unit.driver.input_failed(lost);
                        unit.follow(&mut self.consumer, &self.topic);
                    }
                    Ok(())
                }
                _ => Err(error.into()),
            },
        }
    }

    fn key_of(&self, tp: &TopicPartition) -> Key {
        match self.driver.job.mode {
            Mode::Exclusive => None,
            Mode::CoPartitioned => u32::try_from(tp.partition).ok(),
        }
    }

    /// Looks at fetch answers, counts partitions, reports progress.
    fn look(&mut self) {
        let now = self.now();
        for unit in self.units.values_mut() {
            unit.look(now);
            unit.follow(&mut self.consumer, &self.topic);
        }
        let interval = Millis::try_from(self.run.metadata_interval.as_millis()).unwrap_or(Millis::MAX);
        let reading = self.units.values().any(Unit::is_reading);
        if reading && !self.counting && now.saturating_sub(self.counted_at) >= interval {
            self.counting = true;
            self.counted_at = now;
            let (cluster, topic) = (self.cluster.clone(), self.topic.clone());
            self.tasks.push(Box::pin(async move {
                let metadata = cluster.refresh().await;
                Done::Counted(
                    metadata
                        .map(|m| u32::try_from(m.partition_count(&topic).unwrap_or(0)).unwrap_or(u32::MAX)),
                )
            }));
        }
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS_PER_PROGRESS) {
            self.tell_progress();
        }
    }

    fn tell_progress(&self) -> Progress {
        let progress = self.progress();
        self.gauges.show(&progress);
        self.observer.progress(&progress);
        progress
    }

    fn progress(&self) -> Progress {
        let mut progress = Progress { windows: self.report.windows, ..Progress::default() };
        for unit in self.units.values() {
            progress.counters.add(unit.counters());
            let seen = unit.seen();
            progress.lag.behind += seen.lag.behind;
            progress.lag.replay += seen.lag.replay;
            progress.open_windows += u64::try_from(seen.open_windows).unwrap_or(0);
        }
        progress
    }

    fn is_over(&self) -> bool {
        // A part that does not start has to be seen, however well the others of a co-partitioned job run.
        if self.units.values().any(|unit| matches!(unit.ended, Some(Ended::Refused(_)))) {
            return true;
        }
        let ended = self.units.values().filter(|unit| unit.ended.is_some()).count();
        let running = self
            .units
            .values()
            .any(|unit| unit.ended.is_none() && (unit.driver.generation().is_some() || unit.rejoining));
        !running && (self.stopping || ended > 0)
    }

    async fn leave(mut self) -> Result<JobReport, JobError> {
        let limit = self.run.leave_limit;
        let (group, goodbye) = (self.group.clone(), self.group.clone());
        let events = &mut self.events;
        let served = async {
            while let Some(event) = events.next().await {
                match event {
                    GroupEvent::Revoke(revoke) => group.drained(revoke.drain),
                    GroupEvent::Left | GroupEvent::Failed(_) => break,
                    _ => {}
                }
            }
        };
        let left = async {
            if let Err(error) = goodbye.leave(limit).await {
                tracing::debug!(%error, "the group was left with an error");
            }
        };
        // The session would end by itself: a goodbye that takes too long is not waited for.
        let _ = tokio::time::timeout(limit * 2, async { tokio::join!(served, left) }).await;
        for unit in self.units.values_mut() {
            match unit.ended.take() {
                Some(Ended::Refused(refusal)) => return Err(refusal.into()),
                Some(Ended::Blocked(partitions)) => self.report.blocked.extend(partitions),
                Some(Ended::Finished) | None => {}
            }
        }
        let progress = self.tell_progress();
        self.report.counters = progress.counters;
        self.report.open_windows = progress.open_windows;
        Ok(self.report)
    }
}

fn earlier(a: Option<Millis>, b: Option<Millis>) -> Option<Millis> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
