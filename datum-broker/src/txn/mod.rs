//! The transaction coordinator: producer ids, epochs and transactions, as a machine without sockets or clock.
//!
//! **Inputs** are requests, each with the time, and [`Transactions::tick`]. **Outputs** are the markers that `tick`
//! hands over once a transaction has been decided: the caller writes them to the partitions and groups they name.
//! [`Transactions::deadline`] tells when `tick` has something to do: markers whose delay is over, transactions whose
//! timeout is.
//!
//! Both protocols are spoken: the first (a client adds partitions before it writes, the epoch rises with each
//! `InitProducerId`) and the second (KIP-890: partitions are added by writing, each end of a transaction raises the
//! epoch). Which one a request belongs to is told by its version, as in Kafka.

mod coordinator;
mod end;
mod init;
mod transaction;

pub(crate) use coordinator::{Member, Transactions, TxnSettings};
pub(crate) use init::InitRequest;
pub(crate) use transaction::{Marker, Producer};

#[cfg(test)]
mod tests;
