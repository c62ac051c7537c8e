//! Records on their way into batches: one open batch per partition, the full ones behind it.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use datum_net::Rng;

use super::{
    Delivery, ProducerRecord,
    lane::BatchId,
    partitioner::{Sticky, partition_of_key},
    ticket::Tickets,
};
use crate::{
    TopicPartition,
    wire::batch::{BatchBuilder, BatchError, NewHeader, NewRecord},
};

/// A batch that is to be closed and sent.
#[derive(Debug)]
pub(super) struct Full {
    pub(super) id: BatchId,
    pub(super) partition: TopicPartition,
    pub(super) builder: BatchBuilder,
    pub(super) tickets: Tickets,
    /// What it holds of the producer's buffer.
    pub(super) permits: usize,
    pub(super) since: Instant,
}

#[derive(Debug)]
pub(super) struct Accumulator {
    open: HashMap<TopicPartition, Full>,
    full: VecDeque<Full>,
    sticky: HashMap<Arc<str>, Sticky>,
    rng: Rng,
    next_id: u64,
    /// Batches whose fate is open, the open ones included, and in how many parts.
    live: BTreeMap<BatchId, usize>,
    pub(super) closed: bool,
}

impl Accumulator {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            open: HashMap::new(),
            full: VecDeque::new(),
            sticky: HashMap::new(),
            rng,
            next_id: 0,
            live: BTreeMap::new(),
            closed: false,
        }
    }

    /// Which partition of `count` a record goes to.
    pub(super) fn partition(&mut self, record: &ProducerRecord, count: u32, batch_bytes: usize) -> i32 {
        let chosen = match (record.partition, &record.key) {
            (Some(partition), _) => return partition,
            (None, Some(key)) => partition_of_key(key, count),
            (None, None) => {
                let rng = &mut self.rng;
                let sticky =
                    self.sticky.entry(record.topic.clone()).or_insert_with(|| Sticky::new(rng, count));
                sticky.choose(rng, count, record.size(), batch_bytes)
            }
        };
        i32::try_from(chosen).unwrap_or(i32::MAX)
    }

    /// Adds a record to its partition's open batch. Whether the sender has something to do that it did not know of.
    pub(super) fn append(
        &mut self,
        partition: TopicPartition,
        record: &ProducerRecord,
        now: Instant,
        now_ms: i64,
        batch_bytes: usize,
    ) -> Result<(Delivery, bool), BatchError> {
        let size = record.size();
        let overflows = self
            .open
            .get(&partition)
            .is_some_and(|open| open.builder.size() + size > batch_bytes && !open.builder.is_empty());
        if overflows && let Some(full) = self.open.remove(&partition) {
            self.full.push_back(full);
        }
        let fresh = !self.open.contains_key(&partition);
        let next_id = &mut self.next_id;
        let live = &mut self.live;
        let open = self.open.entry(partition.clone()).or_insert_with(|| {
            *next_id += 1;
            live.insert(BatchId(*next_id), 1);
            Full {
                id: BatchId(*next_id),
                partition: partition.clone(),
                builder: BatchBuilder::new(),
                tickets: Tickets::default(),
                permits: 0,
                since: now,
            }
        });
        let headers: Vec<NewHeader<'_>> =
            record.headers.iter().map(|(key, value)| NewHeader { key, value: value.as_deref() }).collect();
        open.builder.append(&NewRecord {
            timestamp: record.timestamp.unwrap_or(now_ms),
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &headers,
        })?;
        open.permits += size;
        let answer = open.tickets.issue();
        let filled = open.builder.size() >= batch_bytes;
        Ok((Delivery { partition, answer }, fresh || overflows || filled))
    }

    /// Takes the batches that are full, have waited for `linger`, or all of them.
    pub(super) fn take(
        &mut self,
        now: Instant,
        linger: Duration,
        batch_bytes: usize,
        all: bool,
    ) -> Vec<Full> {
        let ready = |open: &Full| all || open.builder.size() >= batch_bytes || now >= open.since + linger;
        let mut taken: Vec<Full> = self.full.drain(..).collect();
        taken.extend(self.open.extract_if(|_, open| ready(open)).map(|(_, open)| open));
        taken.sort_by_key(|full| full.id);
        taken
    }

    /// When the next open batch has waited for `linger`.
    pub(super) fn due(&self, linger: Duration) -> Option<Instant> {
        self.open.values().map(|open| open.since + linger).min()
    }

    /// A new name, for a part of `origin`.
    pub(super) fn name(&mut self, origin: BatchId) -> BatchId {
        self.next_id += 1;
        *self.live.entry(origin).or_insert(0) += 1;
        BatchId(self.next_id)
    }

    /// The fate of a batch, or of a part of it, is decided.
    pub(super) fn done(&mut self, origin: BatchId) {
        if let Some(parts) = self.live.get_mut(&origin) {
            *parts -= 1;
            if *parts == 0 {
                self.live.remove(&origin);
            }
        }
    }

    /// The oldest batch whose fate is open, the largest number if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.live.keys().next().map_or(u64::MAX, |batch| batch.0)
    }

    /// The newest batch so far.
    pub(super) fn newest(&self) -> u64 {
        self.next_id
    }
}
