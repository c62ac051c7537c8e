//! What the fetcher hands to the consumer, and how its bytes are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::consumer::PartitionHandle;
use crate::consumer::meter::buffered_bytes;
use crate::error::KafkaError;
use crate::wire::batch::{AbortedTransactions, BatchSet};

/// One partition's part of a fetch answer, or what became of a partition instead.
#[derive(Debug)]
pub(in crate::consumer) enum Item {
    Fetched(Fetched),
    Failed {
        handle: PartitionHandle,
        generation: u64,
        error: KafkaError,
    },
    /// A partition is no longer paused: what is held of it may go.
    Resumed,
}

/// Records of one partition as they came, not yet decoded.
#[derive(Debug)]
pub(in crate::consumer) struct Fetched {
    pub(in crate::consumer) handle: PartitionHandle,
    pub(in crate::consumer) generation: u64,
    /// The next offset wanted: records below it were not asked for.
    pub(in crate::consumer) position: i64,
    pub(in crate::consumer) set: BatchSet,
    pub(in crate::consumer) aborted: AbortedTransactions,
    /// Counts the bytes as waiting for as long as it lives.
    pub(in crate::consumer) weight: Option<Weight>,
}

/// Bytes that wait for the consumer, in all and of one broker.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    total: Arc<AtomicUsize>,
    broker: Arc<AtomicUsize>,
    room: Arc<Notify>,
}

impl Waiting {
    /// The same total, and a broker of its own.
    pub(super) fn another_broker(&self) -> Self {
        Self { broker: Arc::default(), ..self.clone() }
    }

    pub(super) fn total(&self) -> usize {
        self.total.load(Ordering::Acquire)
    }

    pub(super) fn of_broker(&self) -> usize {
        self.broker.load(Ordering::Acquire)
    }

    pub(super) fn room(&self) -> &Arc<Notify> {
        &self.room
    }

    pub(super) fn add(&self, bytes: usize) -> Weight {
        self.total.fetch_add(bytes, Ordering::AcqRel);
        self.broker.fetch_add(bytes, Ordering::AcqRel);
        buffered_bytes().increment(bytes as f64);
        Weight { bytes, waiting: self.clone() }
    }
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub(in crate::consumer) struct Weight {
    bytes: usize,
    waiting: Waiting,
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.waiting.total.fetch_sub(self.bytes, Ordering::AcqRel);
        self.waiting.broker.fetch_sub(self.bytes, Ordering::AcqRel);
        buffered_bytes().decrement(self.bytes as f64);
        self.waiting.room.notify_one();
    }
}
