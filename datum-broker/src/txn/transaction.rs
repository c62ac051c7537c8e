//! One transactional id: its producer, its state, and what its transaction touches.
//!
//! ```text
//! Empty --first write--> Ongoing --EndTxn, timeout, InitProducerId--> Prepare* --markers written--> Complete*
//!                           ^------------------------- first write -----------------------------------|
//! ```

use std::collections::BTreeSet;

/// The highest epoch that a client is given; the one above only ever stands in markers.
pub(crate) const LAST_EPOCH: i16 = i16::MAX - 1;
/// No epoch.
pub(crate) const NO_EPOCH: i16 = -1;

/// A producer id with its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub id: i64,
    pub epoch: i16,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxnState {
    Empty,
    /// Since when.
    Ongoing(i64),
    /// Decided; markers are written at that time.
    Prepare {
        commit: bool,
        markers_at: i64,
    },
    Complete {
        commit: bool,
    },
}

/// The markers of one decided transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    /// The epoch may be one above the client's, which fences what the client still has on the way.
    pub producer: Producer,
    pub commit: bool,
    pub partitions: BTreeSet<(String, i32)>,
    /// Groups whose pending offsets it decides.
    pub groups: BTreeSet<String>,
}

/// A transactional id.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub producer: Producer,
    /// The epoch before the last rise, so that a retry of the request that raised it is known; [`NO_EPOCH`] without.
    pub last_epoch: i16,
    /// The id before the last change of it.
    pub previous_id: i64,
    /// The id that takes over once the markers are written, when the epochs of this one are used up.
    pub next_id: Option<i64>,
    pub timeout: i64,
    pub state: TxnState,
    pub partitions: BTreeSet<(String, i32)>,
    pub groups: BTreeSet<String>,
}

impl Transaction {
    pub(crate) fn new(producer: Producer, timeout: i64) -> Self {
        Self {
            producer,
            last_epoch: NO_EPOCH,
            previous_id: -1,
            next_id: None,
            timeout,
            state: TxnState::Empty,
            partitions: BTreeSet::new(),
            groups: BTreeSet::new(),
        }
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.producer.epoch >= LAST_EPOCH
    }

    /// Takes the next epoch, or a fresh id at epoch 0 when they are used up.
    pub(crate) fn raise(&mut self, last_epoch: i16, fresh: impl FnOnce() -> i64) {
        if self.is_exhausted() {
            self.previous_id = self.producer.id;
            self.producer = Producer { id: fresh(), epoch: 0 };
            self.last_epoch = NO_EPOCH;
        } else {
            self.producer.epoch += 1;
            self.last_epoch = last_epoch;
        }
    }

    /// Makes sure a transaction is running.
    pub(crate) fn begin(&mut self, now: i64) {
        if !matches!(self.state, TxnState::Ongoing(_)) {
            self.state = TxnState::Ongoing(now);
        }
    }

    /// The producer that the client uses after this transaction's end.
    pub(crate) fn next_producer(&self) -> Producer {
        match self.next_id {
            Some(id) => Producer { id, epoch: 0 },
            None => self.producer,
        }
    }

    /// The markers are handed out: what they say is settled.
    pub(crate) fn complete(&mut self, commit: bool) -> Marker {
        let marker = Marker {
            producer: self.producer,
            commit,
            partitions: std::mem::take(&mut self.partitions),
            groups: std::mem::take(&mut self.groups),
        };
        if let Some(id) = self.next_id.take() {
            self.previous_id = self.producer.id;
            self.producer = Producer { id, epoch: 0 };
            self.last_epoch = NO_EPOCH;
        }
        self.state = TxnState::Complete { commit };
        marker
    }
}
