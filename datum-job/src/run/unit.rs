//! One owner at work: the whole topic, or one partition of a co-partitioned job.

use datum_kafka::consumer::{Consumer, FetchAnswer, PartitionHandle, RecordsBatch};
use datum_kafka::transaction::TransactionalProducer;
use datum_kafka::wire::murmur2;
use datum_kafka::{StartAt, TopicPartition};
use datum_window::{Millis, RecordPosition};
use tokio::time::Instant;

use super::facts::partition;
use super::{JobError, JobLogic};
use crate::machine::{Content, Counters, Fate, Lag, MachineError, Observation};
use crate::protocol::{Driver, DriverSettings, Ended};

/// Makes an empty payload at each start.
pub(super) type MakePayload<L> = Box<dyn FnMut() -> <L as JobLogic>::Payload + Send>;

pub(super) struct Unit<L: JobLogic> {
    /// The partition of a co-partitioned job.
    pub(super) only: Option<u32>,
    pub(super) driver: Driver<L::Payload, MakePayload<L>>,
    /// Between two requests; a request has it meanwhile.
    pub(super) producer: Option<TransactionalProducer>,
    pub(super) ended: Option<Ended>,
    /// When to ask the group to form again, after a loss.
    pub(super) rejoin_at: Option<Millis>,
    /// The group was asked.
    pub(super) rejoining: bool,
    /// Losses since the last commit: each waits longer.
    pub(super) losses: u32,
    pub(super) starts: u64,
    reading: Vec<Reading>,
    /// What the present machine has come to, as last seen.
    seen: Seen,
    /// What machines that are gone had come to.
    before: Counters,
}

/// How far a machine had come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) counters: Counters,
    pub(super) open_windows: usize,
    pub(super) lag: Lag,
}

struct Reading {
    partition: u32,
    handle: PartitionHandle,
    /// When the last answer that was observed had come.
    observed: Option<Instant>,
}

impl<L: JobLogic> Unit<L> {
    pub(super) fn new(only: Option<u32>, settings: DriverSettings, make: MakePayload<L>) -> Self {
        Self {
            only,
            driver: Driver::new(settings, make),
            producer: None,
            ended: None,
            rejoin_at: None,
            rejoining: false,
            losses: 0,
            starts: 0,
            reading: Vec::new(),
            seen: Seen::default(),
            before: Counters::default(),
        }
    }

    /// Takes note of how far the machine is: to be called before the driver is asked or told anything that may end it.
    pub(super) fn note(&mut self) {
        if let Some(machine) = self.driver.machine() {
            self.seen = Seen {
                counters: machine.counters(),
                open_windows: machine.open_windows(),
                lag: machine.lag(),
            };
        }
    }

    /// How far it is; after its end, how far it was.
    pub(super) fn seen(&self) -> Seen {
        self.seen
    }

    /// What became of the records over all its starts.
    pub(super) fn counters(&self) -> Counters {
        let mut all = self.before;
        all.add(self.seen.counters);
        all
    }

    pub(super) fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    /// Reads from where the machine stands, or not at all when there is none. To be called after the driver was told
    /// anything.
    pub(super) fn follow(&mut self, consumer: &mut Consumer, topic: &std::sync::Arc<str>) {
        match self.driver.machine() {
            Some(machine) if self.reading.is_empty() => {
                self.starts += 1;
                self.before.add(std::mem::take(&mut self.seen).counters);
                for number in machine.partitions() {
                    let position = machine.position(number).unwrap_or(0);
                    let handle = consumer.assign(partition(topic, number), StartAt::Offset(position));
                    self.reading.push(Reading { partition: number, handle, observed: None });
                }
            }
            Some(_) => {}
            None => {
                for reading in self.reading.drain(..) {
                    consumer.unassign(reading.handle.partition());
                }
            }
        }
    }

    /// A partition has appeared, whose log begins at `offset`.
    pub(super) fn grow(
        &mut self,
        tp: &TopicPartition,
        number: u32,
        offset: i64,
        consumer: &mut Consumer,
    ) -> Result<(), MachineError> {
        let Some(machine) = self.driver.machine_mut() else { return Ok(()) };
        if machine.position(number).is_none() {
            machine.add_partition(number, offset)?;
            let handle = consumer.assign(tp.clone(), StartAt::Offset(offset));
            self.reading.push(Reading { partition: number, handle, observed: None });
        }
        Ok(())
    }

    /// Tells the machine of fetch answers that have come since the last call, and closes what is ripe.
    pub(super) fn look(&mut self, now: Millis) {
        let Some(machine) = self.driver.machine_mut() else { return };
        let mut failed = None;
        for reading in &mut self.reading {
            let Some(answer) = reading.handle.answer() else { continue };
            let fresh = reading.observed.is_none_or(|at| at < answer.at);
            // An answer is looked at again while its records are being worked on: it proves the end once they are done.
            let proves = machine.position(reading.partition).is_some_and(|p| p >= answer.high_watermark);
            if !fresh && !proves {
                continue;
            }
            reading.observed = Some(answer.at);
            let at = now.saturating_sub(millis_since(answer.at));
            if let Err(error) = machine.observe(reading.partition, observation(&answer), at) {
                failed = Some(error);
            }
        }
        machine.close(now);
        if let Some(error) = failed {
            self.driver.input_failed(error);
        }
    }

    /// Folds a batch into the machine.
    pub(super) fn fold(&mut self, logic: &mut L, batch: &RecordsBatch, now: Millis) -> Result<(), JobError> {
        let tp = batch.partition();
        let Ok(number) = u32::try_from(tp.partition) else { return Ok(()) };
        let current = self.reading.iter().any(|r| r.handle == *batch.handle());
        let Some(machine) = self.driver.machine_mut().filter(|_| current) else { return Ok(()) };
        let checked = self.only.map(|_| i32::try_from(machine.partition_count()).unwrap_or(i32::MAX));
        // Errors leave the loop beside its answer, which stays in registers that way.
        let mut failed = None;
        for record in batch.records() {
            let at = RecordPosition::new(number, record.offset(), record.timestamp());
            let read = logic.read(at, &record, |content| {
                if let (Some(count), Content::Record(input)) = (checked, &content)
                    && let Err(error) = check_key(L::key_bytes(input), count, tp, at.offset)
                {
                    failed = Some(error);
                    return None;
                }
                match machine.apply(at, content, now, || L::side(&record)) {
                    Ok(fate) => Some(fate),
                    Err(error) => {
                        failed = Some(JobError::Machine(error));
                        None
                    }
                }
            });
            match read {
                Ok(Some(Fate::PastEnd) | None) => break,
                Ok(Some(_)) => {}
                Err(source) => {
                    let (topic, source) = (tp.topic.to_string(), source.into());
                    return Err(JobError::Unreadable { topic, at, source });
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        machine.advance_to(number, batch.next_offset()).map_err(JobError::Machine)?;
        machine.close(now);
        Ok(())
    }
}

fn check_key(key: Option<&[u8]>, count: i32, tp: &TopicPartition, offset: i64) -> Result<(), JobError> {
    let Some(key) = key else { return Ok(()) };
    match murmur2::partition_of(key, count) {
        Some(belongs) if belongs != tp.partition => Err(JobError::KeyNotCoPartitioned {
            key: String::from_utf8_lossy(key).into_owned(),
            partition: tp.clone(),
            offset,
            belongs,
        }),
        _ => Ok(()),
    }
}

fn observation(answer: &FetchAnswer) -> Observation {
    Observation {
        log_start: answer.log_start.max(0),
        high_watermark: answer.high_watermark,
        last_stable: answer.last_stable_offset,
    }
}

fn millis_since(at: Instant) -> Millis {
    Millis::try_from(at.elapsed().as_millis()).unwrap_or(Millis::MAX)
}
