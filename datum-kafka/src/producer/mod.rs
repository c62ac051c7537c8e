//! Producing: records to batches, batches to leaders, each record to its fate.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use datum_kafka::{ProducerSettings, producer::{Producer, ProducerRecord}};
//!
//! let producer = Producer::connect(ProducerSettings::new("localhost:9092")).await?;
//! let delivered = producer.send_and_wait(ProducerRecord::new("orders", "a value").key("a key")).await?;
//! println!("written to {} at {:?}", delivered.partition, delivered.offset);
//! # Ok(()) }
//! ```
//!
//! A record is encoded into its partition's open batch as it is accepted. A batch leaves when it is full (`batch_bytes`) or has waited long
//! enough (`linger`); at most `buffer_bytes` are accepted and undecided at once, then [`Producer::send`] waits. Order, retries and the
//! numbers that keep a retry from being written twice are a [`Lane`] per partition, a machine without sockets or clocks.
//!
//! # When it ends
//! A record's fate is decided within `delivery_timeout`. [`Producer::close`] accepts nothing more and waits.

mod accumulator;
mod broker;
mod handle;
mod identity;
mod lane;
mod partitioner;
mod record;
mod sender;
mod ticket;

pub use self::{
    handle::Producer,
    lane::{BatchId, Dispatch, Effect, Failure, Lane, LaneConfig, Outcome, ProducerIdentity},
    partitioner::{murmur2, partition_of_key},
    record::{Delivered, Delivery, ProducerRecord, SendError, SendFault},
};
