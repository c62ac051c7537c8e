//! The log of a partition: batches, offsets, producers, transactions, retention. No sockets, no clock.

pub(crate) mod aborted;
pub(crate) mod batch;
pub(crate) mod epochs;
pub(crate) mod partition;
pub(crate) mod producer;
pub(crate) mod records;
pub(crate) mod retention;
pub(crate) mod validation;
