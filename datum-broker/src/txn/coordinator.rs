//! All transactional ids, what is added to their transactions, and their clockwork.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::txn::transaction::{Marker, Producer, Transaction, TxnState};

/// Limits of the transaction coordinator, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxnSettings {
    pub max_timeout: i64,
    /// How long after the answer to EndTxn the markers are written.
    pub marker_delay: i64,
}

/// Something that a transaction may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member<'a> {
    Partition(&'a str, i32),
    /// The offsets of a group.
    Group(&'a str),
}

/// The transaction coordinator.
#[derive(Debug)]
pub(crate) struct Transactions {
    pub(super) by_id: BTreeMap<String, Transaction>,
    pub(super) settings: TxnSettings,
    pub(super) next_producer_id: i64,
}

impl Transactions {
    pub(crate) fn new(settings: TxnSettings) -> Self {
        Self { by_id: BTreeMap::new(), settings, next_producer_id: 0 }
    }

    /// Changes how long after the answer to EndTxn the markers are written.
    pub(crate) fn set_marker_delay(&mut self, delay: i64) {
        self.settings.marker_delay = delay;
    }

    /// Sets the epoch of an id's producer.
    ///
    /// # Errors
    /// `InvalidProducerIdMapping` for an unknown id.
    pub(crate) fn set_epoch(&mut self, id: &str, epoch: i16) -> Result<(), Code> {
        self.by_id.get_mut(id).ok_or(Code::InvalidProducerIdMapping)?.producer.epoch = epoch;
        Ok(())
    }

    /// Adds to the running transaction, or begins one with it.
    ///
    /// # Errors
    /// `InvalidProducerIdMapping` for an unknown id or producer, `ProducerFenced` for another epoch,
    /// `ConcurrentTransactions` while the last one's markers are not written.
    pub(crate) fn add(
        &mut self,
        id: &str,
        producer: Producer,
        what: &[Member<'_>],
        now: i64,
    ) -> Result<(), Code> {
        let transaction = self.check(id, producer)?;
        if matches!(transaction.state, TxnState::Prepare { .. }) {
            return Err(Code::ConcurrentTransactions);
        }
        transaction.begin(now);
        for member in what {
            match *member {
                Member::Partition(topic, index) => {
                    transaction.partitions.insert((topic.to_owned(), index));
                }
                Member::Group(group) => {
                    transaction.groups.insert(group.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Checks that a write belongs to the running transaction (the first protocol's clients add before they write).
    ///
    /// # Errors
    /// As [`Self::add`]; `InvalidTxnState` when it was not added.
    pub(crate) fn verify(&mut self, id: &str, producer: Producer, what: Member<'_>) -> Result<(), Code> {
        let transaction = self.check(id, producer)?;
        let held = match what {
            Member::Partition(topic, index) => transaction.partitions.contains(&(topic.to_owned(), index)),
            Member::Group(group) => transaction.groups.contains(group),
        };
        match transaction.state {
            TxnState::Prepare { .. } => Err(Code::ConcurrentTransactions),
            TxnState::Ongoing(_) if held => Ok(()),
            _ => Err(Code::InvalidTxnState),
        }
    }

    fn check(&mut self, id: &str, producer: Producer) -> Result<&mut Transaction, Code> {
        if id.is_empty() {
            return Err(Code::InvalidRequest);
        }
        let transaction = self.by_id.get_mut(id).ok_or(Code::InvalidProducerIdMapping)?;
        // Whoever has been given the next id, since the epochs are used up, waits for the markers like everybody else.
        if matches!(transaction.state, TxnState::Prepare { .. }) && transaction.next_producer() == producer {
            return Err(Code::ConcurrentTransactions);
        }
        if transaction.producer.id != producer.id {
            return Err(Code::InvalidProducerIdMapping);
        }
        if transaction.producer.epoch != producer.epoch {
            return Err(Code::ProducerFenced);
        }
        Ok(transaction)
    }

    /// Lets time pass; answers with the markers that are now to be written.
    #[must_use = "markers must be written"]
    pub(crate) fn tick(&mut self, now: i64) -> Vec<Marker> {
        let mut markers = Vec::new();
        let delay = self.settings.marker_delay;
        for transaction in self.by_id.values_mut() {
            if let TxnState::Ongoing(since) = transaction.state
                && since + transaction.timeout <= now
            {
                transaction.fence(now + delay);
            }
            if let TxnState::Prepare { commit, markers_at } = transaction.state
                && markers_at <= now
            {
                markers.push(transaction.complete(commit));
            }
        }
        markers
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn deadline(&self) -> Option<i64> {
        let due = |transaction: &Transaction| match transaction.state {
            TxnState::Ongoing(since) => Some(since + transaction.timeout),
            TxnState::Prepare { markers_at, .. } => Some(markers_at),
            TxnState::Empty | TxnState::Complete { .. } => None,
        };
        self.by_id.values().filter_map(due).min()
    }

    pub(super) fn fresh_id(&mut self) -> i64 {
        self.next_producer_id += 1;
        self.next_producer_id - 1
    }
}
