//! One partition: an append-only sequence of batches between a log start and an end.
//!
//! There is one copy of it, so the high watermark is the end. The last stable offset is the first offset of the oldest
//! open transaction, else the high watermark.

use std::collections::VecDeque;
use std::ops::Range;

use datum_kafka::wire::batch::BatchHeader;

use crate::code::Code;
use crate::log::aborted::{Aborted, AbortedIndex};
use crate::log::batch::Batch;
use crate::log::epochs::Epochs;
use crate::log::producer::{Producers, Verdict};

/// What became of a produced batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    pub base_offset: i64,
    /// The append time where the topic overwrites time stamps with it, else -1.
    pub append_time: i64,
}

/// A partition's log and leadership.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    /// Node that leads it.
    pub leader: i32,
    pub leader_epoch: i32,
    batches: VecDeque<Batch>,
    start: i64,
    end: i64,
    bytes: u64,
    producers: Producers,
    aborted: AbortedIndex,
    epochs: Epochs,
}

impl Partition {
    pub(crate) fn new(leader: i32) -> Self {
        Self { leader, ..Self::default() }
    }

    /// Moves the leadership; the epoch rises even when the node stays the same.
    pub(crate) fn elect(&mut self, leader: i32) {
        self.leader = leader;
        self.leader_epoch += 1;
    }

    /// Appends a client's batch, whose header has been read from it and checked.
    ///
    /// # Errors
    /// Those of [`Producers::judge`].
    pub(crate) fn append(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        append_time: bool,
        now: i64,
    ) -> Result<Appended, Code> {
        let told = |timestamp| if append_time { timestamp } else { -1 };
        if header.has_producer_id()
            && let Verdict::Duplicate { base_offset, timestamp } = self.producers.judge(header)?
        {
            return Ok(Appended { base_offset, append_time: told(timestamp) });
        }
        let base_offset = self.end;
        let batch = Batch::store(bytes, base_offset, self.leader_epoch, append_time.then_some(now), now);
        if header.has_producer_id() {
            self.producers.note(header, base_offset, batch.header.max_timestamp, now);
        }
        self.push(batch);
        Ok(Appended { base_offset, append_time: told(now) })
    }

    /// Appends a batch exactly as it is, but for its offset and epoch: tests use it for what no client would send. Its
    /// header must be readable, and need not fit its content.
    pub(crate) fn append_raw(&mut self, bytes: &[u8], now: i64) -> i64 {
        let base_offset = self.end;
        self.push(Batch::store(bytes, base_offset, self.leader_epoch, None, now));
        base_offset
    }

    /// Ends a producer's transaction with a marker.
    pub(crate) fn end_transaction(&mut self, producer_id: i64, epoch: i16, commit: bool, now: i64) {
        let marker = Batch::marker(self.end, self.leader_epoch, producer_id, epoch, commit, now);
        let ended = self.producers.end(producer_id, epoch, now);
        if let (Some(ended), false) = (ended, commit) {
            self.aborted.push(ended, self.end);
        }
        self.push(marker);
    }

    /// Drops the batches that reach `end` or beyond, as a leader that never had them; answers with the new end.
    pub(crate) fn truncate(&mut self, end: i64) -> i64 {
        while let Some(last) = self.batches.pop_back_if(|last| last.last_offset() >= end) {
            self.bytes -= last.bytes.len() as u64;
            self.end = last.header.base_offset;
        }
        self.producers.forget_from(self.end);
        self.aborted.forget_from(self.end);
        self.epochs.forget_from(self.end);
        self.end
    }

    fn push(&mut self, batch: Batch) {
        self.epochs.note(self.leader_epoch, self.end);
        self.end = batch.last_offset() + 1;
        self.bytes += batch.bytes.len() as u64;
        self.batches.push_back(batch);
    }

    /// Drops whole batches from the front while `doomed` says so; answers with the bytes freed.
    pub(crate) fn drop_while(&mut self, mut doomed: impl FnMut(&Batch, u64) -> bool) -> u64 {
        let before = self.bytes;
        while self.batches.front().is_some_and(|first| doomed(first, self.bytes)) {
            if let Some(gone) = self.batches.pop_front() {
                self.bytes -= gone.bytes.len() as u64;
                self.start = self.start.max(gone.last_offset() + 1);
            }
        }
        if self.bytes != before {
            self.aborted.trim(self.start);
        }
        before - self.bytes
    }

    /// Moves the log start up to `offset` (DeleteRecords); answers with the bytes freed.
    ///
    /// # Errors
    /// `OffsetOutOfRange` beyond the high watermark.
    pub(crate) fn delete_to(&mut self, offset: i64) -> Result<u64, Code> {
        if offset > self.end || offset < 0 {
            return Err(Code::OffsetOutOfRange);
        }
        let freed = self.drop_while(|batch, _| batch.last_offset() < offset);
        self.start = self.start.max(offset);
        Ok(freed)
    }

    /// Forgets idle producers.
    pub(crate) fn expire_producers(&mut self, before: i64) {
        self.producers.expire(before);
    }

    pub(crate) fn start(&self) -> i64 {
        self.start
    }

    /// The high watermark.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    pub(crate) fn stable(&self) -> i64 {
        self.producers.first_open().unwrap_or(self.end)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn producers(&self) -> &Producers {
        &self.producers
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    pub(crate) fn batches(&self) -> &VecDeque<Batch> {
        &self.batches
    }

    /// The batches that a fetch at `offset` gets: whole ones, from the one that holds `offset`, below `bound`, within
    /// `max_bytes`; the first whatever its size if `at_least_one`.
    ///
    /// # Errors
    /// `OffsetOutOfRange` below the log start or beyond the high watermark.
    pub(crate) fn read(
        &self,
        offset: i64,
        bound: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Range<usize>, Code> {
        if offset < self.start || offset > self.end {
            return Err(Code::OffsetOutOfRange);
        }
        let first = self.batches.partition_point(|batch| batch.last_offset() < offset);
        let mut last = first;
        let mut taken = 0;
        for batch in self.batches.range(first..) {
            let fits = taken + batch.bytes.len() <= max_bytes || (at_least_one && last == first);
            if batch.header.base_offset >= bound || !fits {
                break;
            }
            taken += batch.bytes.len();
            last += 1;
        }
        Ok(first..last)
    }

    /// Aborted transactions that a reader of `offset` up to `until` must know.
    pub(crate) fn aborted(&self, offset: i64, until: i64) -> Vec<Aborted> {
        self.aborted.between(offset, until)
    }
}

#[cfg(test)]
mod tests {
    use datum_kafka::wire::batch::{Attributes, HEADER_LEN as HEADER};

    use super::*;

    fn put(log: &mut Partition, producer_id: i64, base_sequence: i32, attributes: i16) -> i64 {
        let header = BatchHeader {
            base_offset: 0,
            length: 49,
            leader_epoch: -1,
            crc: 0,
            attributes: Attributes::from_bits(attributes),
            last_offset_delta: 1,
            base_timestamp: 1,
            max_timestamp: 1,
            producer_id,
            producer_epoch: 0,
            base_sequence,
            record_count: 2,
        };
        log.append(&header, &header.to_bytes(), false, 1).expect("in order").base_offset
    }

    #[test]
    fn open_transactions_hold_the_stable_offset_and_aborts_are_indexed() {
        let mut log = Partition::new(1);
        put(&mut log, -1, -1, 0);
        put(&mut log, 7, 0, 0x10);
        put(&mut log, 8, 0, 0x10);
        put(&mut log, -1, -1, 0);
        assert_eq!((log.stable(), log.end()), (2, 8));
        log.end_transaction(7, 0, false, 2);
        assert_eq!((log.stable(), log.end()), (4, 9));
        log.end_transaction(8, 0, true, 2);
        assert_eq!((log.stable(), log.end()), (10, 10));
        assert_eq!(log.aborted(0, 10), [Aborted { producer_id: 7, first_offset: 2, last_offset: 8 }]);
        assert_eq!(log.aborted(9, 10), []);
    }

    #[test]
    fn a_read_is_whole_batches_within_the_limit_and_at_least_one() {
        let mut log = Partition::new(1);
        for _ in 0..4 {
            put(&mut log, -1, -1, 0);
        }
        assert_eq!(log.read(0, 8, 1, true), Ok(0..1));
        assert_eq!(log.read(0, 8, 1, false), Ok(0..0));
        assert_eq!(log.read(3, 8, 2 * HEADER, true), Ok(1..3), "the batch that holds the offset");
        assert_eq!(log.read(0, 3, 1_000, true), Ok(0..2), "below the bound");
        assert_eq!(log.read(8, 8, 1_000, true), Ok(4..4));
        assert_eq!(log.read(9, 8, 1_000, true), Err(Code::OffsetOutOfRange));
        log.delete_to(5).expect("inside");
        assert_eq!((log.start(), log.bytes()), (5, 2 * HEADER as u64), "a cut batch stays");
        assert_eq!(log.read(4, 8, 1_000, true), Err(Code::OffsetOutOfRange));
        assert_eq!(log.read(5, 8, 1_000, true), Ok(0..2));
        assert_eq!(log.delete_to(9), Err(Code::OffsetOutOfRange));
    }
}
