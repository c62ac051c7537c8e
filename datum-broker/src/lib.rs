//! An embedded broker: Kafka's protocol in memory, for tests and the zero-install default.
//!
//! [`Broker::builder`] starts one inside the process; any Kafka client talks to it over the loopback. It keeps record
//! batches as they come, up to a bound of bytes, and loses them when it stops. It has real consumer groups (a join
//! barrier, sessions, static members), idempotent producers, transactions with markers, fencing and both protocols
//! (KIP-98, KIP-890), pending offsets, leader epochs, retention, and a script of faults.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
//! use datum_broker::Broker;
//!
//! let broker = Broker::builder().start().await?;
//! broker.create_topic("orders", 3, &[("retention.ms", "-1")])?;
//! println!("bootstrap servers: {}", broker.bootstrap());
//! broker.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).expect("it starts");
//! ```
//!
//! # When not to use it
//! Where records must outlive the process, or where a claim about Apache Kafka is to be proved: the same conformance
//! suite runs against both, but only a real broker shows what a real broker does. It has one copy of everything, no
//! authentication, no compaction (the setting is kept and told), no consumer groups of the newer protocol (KIP-848).
//!
//! # When it ends
//! With [`BrokerHandle::stop`], or when the handle is dropped. Every wait inside has a deadline: a long poll its
//! `max_wait_ms`, a join the group's rebalance timeout, a produce into full memory its own timeout.
//!
//! # Costs
//! One copy of each batch when it is produced and one when it is fetched; per batch some 100 bytes of bookkeeping that
//! the memory bound does not count. Every call takes one lock for a few microseconds.

mod api;
mod builder;
mod clock;
mod code;
mod core;
mod error;
mod faults;
mod group;
mod handle;
mod log;
mod random;
mod server;
mod settings;
mod topics;
mod txn;

pub use api::Api;
pub use builder::{Broker, Builder};
pub use clock::BrokerClock;
pub use error::{AdminError, SettingError, StartError};
pub use faults::{Fault, Faults};
pub use handle::{BrokerHandle, PartitionState};
