//! EndTxn: the decision.

use crate::code::Code;
use crate::txn::coordinator::Transactions;
use crate::txn::transaction::{LAST_EPOCH, Producer, Transaction, TxnState};

impl Transactions {
    /// Commits or aborts. The markers follow from [`Self::tick`].
    ///
    /// With `raises` (EndTxn v5, the second protocol) the answer is the producer to go on with, one epoch higher, and a
    /// repeated request is told from the next one by its epoch.
    ///
    /// # Errors
    /// `InvalidProducerIdMapping`, `ProducerFenced`, `ConcurrentTransactions` while the same decision's markers are not
    /// written, `InvalidTxnState` for the opposite of what was decided, or when nothing is open.
    pub(crate) fn end(
        &mut self,
        id: &str,
        producer: Producer,
        commit: bool,
        raises: bool,
        now: i64,
    ) -> Result<Producer, Code> {
        if id.is_empty() {
            return Err(Code::InvalidRequest);
        }
        let markers_at = now + self.settings.marker_delay;
        let mut fresh = self.next_producer_id;
        let transaction = self.by_id.get_mut(id).ok_or(Code::InvalidProducerIdMapping)?;
        let outcome = if raises {
            transaction.end_raising(producer, commit, markers_at, &mut fresh)
        } else {
            transaction.end_plain(producer, commit, markers_at)
        };
        self.next_producer_id = fresh;
        outcome
    }
}

impl Transaction {
    fn end_plain(&mut self, producer: Producer, commit: bool, markers_at: i64) -> Result<Producer, Code> {
        if producer.id != self.producer.id {
            return Err(Code::InvalidProducerIdMapping);
        }
        if producer.epoch != self.producer.epoch {
            return Err(Code::ProducerFenced);
        }
        match self.state {
            TxnState::Ongoing(_) => {
                self.state = TxnState::Prepare { commit, markers_at };
                Ok(self.producer)
            }
            TxnState::Complete { commit: decided } if decided == commit => Ok(self.producer),
            TxnState::Prepare { commit: decided, .. } if decided == commit => {
                Err(Code::ConcurrentTransactions)
            }
            TxnState::Empty | TxnState::Prepare { .. } | TxnState::Complete { .. } => {
                Err(Code::InvalidTxnState)
            }
        }
    }

    fn end_raising(
        &mut self,
        producer: Producer,
        commit: bool,
        markers_at: i64,
        fresh: &mut i64,
    ) -> Result<Producer, Code> {
        let same = producer.epoch == self.producer.epoch;
        let after_overflow =
            producer.id == self.previous_id && producer.epoch == LAST_EPOCH && self.producer.epoch == 0;
        let repeats = self.producer.epoch.checked_sub(1) == Some(producer.epoch) || after_overflow;
        if producer.id != self.producer.id && !after_overflow {
            return Err(Code::InvalidProducerIdMapping);
        }
        let valid = match self.state {
            TxnState::Ongoing(_) | TxnState::Empty => same,
            TxnState::Prepare { .. } => repeats,
            TxnState::Complete { .. } => repeats || same,
        };
        if !valid {
            return Err(Code::ProducerFenced);
        }
        match self.state {
            TxnState::Ongoing(_) => Ok(self.decide(commit, markers_at, fresh)),
            TxnState::Prepare { commit: decided, .. } if decided == commit => {
                Err(Code::ConcurrentTransactions)
            }
            TxnState::Complete { commit: decided } if repeats => {
                if decided == commit {
                    Ok(self.producer)
                } else {
                    Err(Code::InvalidTxnState)
                }
            }
            // An abort of nothing raises the epoch: the client does not know what reached the broker.
            TxnState::Empty | TxnState::Complete { .. } if !commit => {
                Ok(self.decide(false, markers_at, fresh))
            }
            TxnState::Empty | TxnState::Prepare { .. } | TxnState::Complete { .. } => {
                Err(Code::InvalidTxnState)
            }
        }
    }

    fn decide(&mut self, commit: bool, markers_at: i64, fresh: &mut i64) -> Producer {
        self.last_epoch = self.producer.epoch;
        if self.is_exhausted() {
            self.next_id = Some(*fresh);
            *fresh += 1;
        }
        self.producer.epoch = self.producer.epoch.saturating_add(1);
        self.state = TxnState::Prepare { commit, markers_at };
        self.next_producer()
    }
}
