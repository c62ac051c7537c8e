//! What can go wrong with a transaction, by what there is to do about it.

use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{
    KafkaError, TopicPartition,
    producer::{Failure, SendError},
    wire::ErrorCode,
};

/// What went wrong with a transaction.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TransactionError {
    /// A newer producer has taken over the transactional id. This one can do nothing more; it must not take the id back by
    /// itself, or two processes would throw each other out for ever.
    #[error("transactional id `{id}` belongs to a newer producer; this one has to end")]
    Fenced {
        /// The transactional id.
        id: Arc<str>,
    },
    /// The transaction cannot be committed any more; [`abort`](super::TransactionalProducer::abort) it and begin another.
    #[error("the transaction of `{id}` has to be aborted: {why}")]
    Abortable {
        /// The transactional id.
        id: Arc<str>,
        /// Why.
        why: AbortReason,
    },
    /// The group did not accept the member or generation that the offsets were sent with. The transaction is as it was: a member that
    /// is still the owner in the next generation sends the offsets again with its new identity, any other one aborts.
    #[error(
        "group `{group}` did not accept the member's generation ({code}); send again with its next one, or abort"
    )]
    Generation {
        /// The group.
        group: Arc<str>,
        /// The answer.
        code: ErrorCode,
    },
    /// Whether the transaction was ended is not known, and asking again for the whole time limit was in vain. Drop what was derived from
    /// it, [`init`](super::TransactionalProducer::init) again, and recover from what is committed.
    #[error("whether the transaction of `{id}` was {} is not known after {after:?}; recover from what is committed", if *.commit { "committed" } else { "aborted" })]
    OutcomeUnknown {
        /// The transactional id.
        id: Arc<str>,
        /// What was asked for.
        commit: bool,
        /// For how long.
        after: Duration,
    },
    /// The coordinator and this producer disagree about the transaction's state, which nothing mends.
    #[error(
        "the coordinator refused {request} of `{id}` with {code}; nothing can be done with this producer any more"
    )]
    Refused {
        /// The transactional id.
        id: Arc<str>,
        /// The request.
        request: &'static str,
        /// The answer.
        code: ErrorCode,
    },
    /// A call at the wrong time.
    #[error("{call} while the producer is {phase:?}: {remedy}")]
    Misuse {
        /// The call.
        call: &'static str,
        /// Where the producer stands.
        phase: super::TransactionPhase,
        /// What to do first.
        remedy: &'static str,
    },
    /// The settings have no transactional id.
    #[error("a transactional producer needs a transactional id; set it in the producer's settings")]
    NoTransactionalId,
    /// A record could not be accepted; the transaction is as it was.
    #[error(transparent)]
    Send(SendError),
    /// The cluster did not answer in time, or not in this protocol.
    #[error(transparent)]
    Kafka(KafkaError),
}

/// Why a transaction has to be aborted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AbortReason {
    /// A record in it was not written.
    #[error("a record was not written: {0}")]
    Record(Failure),
    /// The coordinator refused to take a partition in.
    #[error("{partition} was refused with {code}")]
    Partition {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        code: ErrorCode,
    },
    /// The offsets were refused for good.
    #[error("{request} was refused with {code}")]
    Request {
        /// The request.
        request: &'static str,
        /// Why.
        code: ErrorCode,
    },
    /// An earlier error made it so.
    #[error("an earlier error in it")]
    Earlier,
}

impl From<KafkaError> for TransactionError {
    fn from(error: KafkaError) -> Self {
        Self::Kafka(error)
    }
}

impl From<SendError> for TransactionError {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}
