//! What the running stream has done, for whoever looks from outside.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Counters, written by the stream's task.
#[derive(Debug)]
pub(super) struct Tally {
    /// Records read.
    pub(super) records: Count,
    /// Records handed to the sink; all are written when the stream has ended well.
    pub(super) published: Count,
    /// Records of regions that are not kept.
    pub(super) filtered: Count,
    /// Records that could not be decoded.
    pub(super) undecodable: Count,
    /// By partition, the offset after the last record seen.
    seen: Vec<AtomicI64>,
}

/// A number that goes up.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    /// Nothing done, over so many partitions.
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            records: Count::default(),
            published: Count::default(),
            filtered: Count::default(),
            undecodable: Count::default(),
            seen: std::iter::repeat_with(AtomicI64::default).take(partitions).collect(),
        }
    }

    /// Notes a record of a partition. One that appeared after the start counts, and its position is nobody's interest.
    pub(super) fn saw(&self, partition: i32, offset: i64) {
        self.records.add_one();
        if let Some(seen) = self.of(partition) {
            seen.fetch_max(offset + 1, Ordering::Relaxed);
        }
    }

    /// The offset after the last record seen of a partition, 0 if none was.
    pub(super) fn seen(&self, partition: i32) -> i64 {
        self.of(partition).map_or(0, |seen| seen.load(Ordering::Relaxed))
    }

    /// What a stream that failed had seen is to be seen again.
    pub(super) fn forget_seen(&self) {
        for seen in &self.seen {
            seen.store(0, Ordering::Relaxed);
        }
    }

    fn of(&self, partition: i32) -> Option<&AtomicI64> {
        usize::try_from(partition).ok().and_then(|partition| self.seen.get(partition))
    }
}
