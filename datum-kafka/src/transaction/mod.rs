//! Transactions: records and consumed offsets that become visible together or not at all.
//!
//! ```no_run
//! # async fn run(group: datum_kafka::group::Group, offsets: datum_kafka::group::Offsets) -> Result<(), Box<dyn std::error::Error>> {
//! use datum_kafka::{ProducerSettings, producer::ProducerRecord, transaction::TransactionalProducer};
//!
//! let settings = ProducerSettings::new("localhost:9092").transactional_id("my-group");
//! let mut producer = TransactionalProducer::connect(settings).await?;
//! producer.init().await?;
//! producer.begin().await?;
//! producer.send(ProducerRecord::new("out", "a value")).await?;
//! if let Some(member) = group.identity() {
//!     producer.send_offsets(&offsets, &member).await?;
//! }
//! producer.commit().await?;
//! # Ok(()) }
//! ```
//!
//! The life of a transactional producer is a machine ([`TransactionState`], [`Step::react`]); [`TransactionalProducer`] gives it a
//! socket. Both protocols are spoken, see [`TransactionVersion`].

mod error;
mod handle;
mod machine;

pub use self::{
    error::{AbortReason, TransactionError},
    handle::TransactionalProducer,
    machine::{Reaction, Step, TransactionPhase, TransactionState, TransactionVersion},
};
