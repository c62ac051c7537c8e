//! A batch of records as a consumer emits it.

use std::iter::FusedIterator;

use super::handle::PartitionHandle;
use crate::TopicPartition;
use crate::wire::batch::{Record, RecordBatch, Records};

/// Decoded records of one partition in offset order, as views into the batch they came in; none is copied.
///
/// It may be empty: then it only says that the position has come to [`next_offset`](Self::next_offset) over records that are not to be seen
/// (aborted, compacted away, transaction markers), and is to be acknowledged like any other.
#[derive(Debug)]
pub struct RecordsBatch {
    handle: PartitionHandle,
    batch: Option<RecordBatch>,
    /// Position in the batch of the first record that was asked for.
    first: usize,
    first_offset: i64,
    next_offset: i64,
    leader_epoch: i32,
}

impl RecordsBatch {
    pub(super) fn new(handle: PartitionHandle, batch: RecordBatch, from: i64) -> Self {
        Self {
            handle,
            first: batch.position_of(from),
            first_offset: from,
            next_offset: batch.next_offset(),
            leader_epoch: batch.header().leader_epoch,
            batch: Some(batch),
        }
    }

    pub(super) fn stepped(handle: PartitionHandle, from: i64, next_offset: i64, leader_epoch: i32) -> Self {
        Self { handle, batch: None, first: 0, first_offset: from, next_offset, leader_epoch }
    }

    /// Which partition.
    pub fn partition(&self) -> &TopicPartition {
        self.handle.partition()
    }

    /// Under which assignment.
    pub fn handle(&self) -> &PartitionHandle {
        &self.handle
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.len() - self.first)
    }

    /// Whether only the position has moved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position before this batch. The first record may be later, where records are missing.
    pub fn first_offset(&self) -> i64 {
        self.first_offset
    }

    /// The offset after this batch: what to commit once all of it is done.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The leader epoch the batch was written in, to be committed beside the offset; -1 if unknown.
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The records.
    pub fn records(&self) -> BatchRecords<'_> {
        BatchRecords(self.batch.as_ref().map(|batch| batch.iter_from(self.first)))
    }

    /// The record at a position, from 0 to [`len`](Self::len).
    pub fn get(&self, position: usize) -> Option<Record<'_>> {
        self.batch.as_ref()?.get(self.first + position)
    }
}

impl<'a> IntoIterator for &'a RecordsBatch {
    type Item = Record<'a>;
    type IntoIter = BatchRecords<'a>;

    fn into_iter(self) -> BatchRecords<'a> {
        self.records()
    }
}

/// Iterates over the records of a [`RecordsBatch`].
#[derive(Clone, Debug)]
pub struct BatchRecords<'a>(Option<Records<'a>>);

impl<'a> Iterator for BatchRecords<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        self.0.as_mut()?.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.as_ref().map_or((0, Some(0)), Iterator::size_hint)
    }
}

impl FusedIterator for BatchRecords<'_> {}
