//! InitProducerId: a producer id and epoch, and the end of whatever the last holder left open.

use crate::code::Code;
use crate::txn::coordinator::Transactions;
use crate::txn::transaction::{Producer, Transaction, TxnState};

/// An InitProducerId request, whatever its version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitRequest<'a> {
    /// `None` for a producer that is only idempotent.
    pub id: Option<&'a str>,
    pub timeout: i64,
    /// What the client holds already and wants raised (KIP-360).
    pub held: Option<Producer>,
}

impl Transactions {
    /// Gives out a producer id with an epoch that fences every earlier holder.
    ///
    /// # Errors
    /// `InvalidRequest` for an empty id, `InvalidTransactionTimeout`, `ProducerFenced` when `held` is not the present
    /// holder, `ConcurrentTransactions` while the last transaction is being ended (an open one is aborted first).
    pub(crate) fn init(&mut self, request: InitRequest<'_>, now: i64) -> Result<Producer, Code> {
        let Some(id) = request.id else {
            return Ok(Producer { id: self.fresh_id(), epoch: 0 });
        };
        if id.is_empty() {
            return Err(Code::InvalidRequest);
        }
        if request.timeout <= 0 || request.timeout > self.settings.max_timeout {
            return Err(Code::InvalidTransactionTimeout);
        }
        let markers_at = now + self.settings.marker_delay;
        let mut fresh = self.next_producer_id;
        let Some(transaction) = self.by_id.get_mut(id) else {
            let producer = Producer { id: self.fresh_id(), epoch: 0 };
            self.by_id.insert(id.to_owned(), Transaction::new(producer, request.timeout));
            return Ok(producer);
        };
        let outcome = transaction.init(request, markers_at, || {
            fresh += 1;
            fresh - 1
        });
        self.next_producer_id = fresh;
        outcome
    }
}

impl Transaction {
    fn init(
        &mut self,
        request: InitRequest<'_>,
        markers_at: i64,
        fresh: impl FnOnce() -> i64,
    ) -> Result<Producer, Code> {
        if request.held.is_some_and(|held| !self.may_be_held_by(held)) {
            return Err(Code::ProducerFenced);
        }
        match self.state {
            TxnState::Prepare { .. } => return Err(Code::ConcurrentTransactions),
            TxnState::Ongoing(_) => {
                if request.held.is_some_and(|held| held.epoch != self.producer.epoch) {
                    return Err(Code::ProducerFenced);
                }
                self.fence(markers_at);
                return Err(Code::ConcurrentTransactions);
            }
            TxnState::Empty | TxnState::Complete { .. } => {}
        }
        self.timeout = request.timeout;
        match request.held {
            Some(held) if held.epoch == self.producer.epoch => self.raise(held.epoch, fresh),
            // The same request again, after its answer was lost.
            Some(held) if held.epoch == self.last_epoch => {}
            Some(held) if held.id == self.previous_id => {}
            Some(_) => return Err(Code::ProducerFenced),
            None => self.raise(super::transaction::NO_EPOCH, fresh),
        }
        self.state = TxnState::Empty;
        Ok(self.producer)
    }

    fn may_be_held_by(&self, held: Producer) -> bool {
        held.id == self.producer.id
            || (held.id == self.previous_id && held.epoch >= super::transaction::LAST_EPOCH)
    }

    /// Aborts the running transaction under a higher epoch, so that its producer can do nothing more.
    pub(super) fn fence(&mut self, markers_at: i64) {
        self.producer.epoch = self.producer.epoch.saturating_add(1);
        self.last_epoch = super::transaction::NO_EPOCH;
        self.state = TxnState::Prepare { commit: false, markers_at };
    }
}
