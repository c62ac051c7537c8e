//! Settings of clients, consumers and producers.
//!
//! Each is a plain value with public fields, made by `new` and shaped by setters of the fields' names; the documentation of a
//! setting, its unit, its default and why, is at the field. Nothing is checked until [`validate`](ConsumerSettings::validate),
//! which every client calls when it starts, so that building settings never fails half way through a chain:
//!
//! ```
//! use datum_kafka::{ConsumerSettings, OffsetReset};
//! let settings = ConsumerSettings::new("localhost:9092").group("slo").topic("bench-input").offset_reset(OffsetReset::Latest);
//! settings.validate()?;
//! # Ok::<(), datum_kafka::SettingsError>(())
//! ```

mod client;
mod consumer;
mod error;
mod fetch;
mod membership;
mod producer;

pub use client::ClientSettings;
pub use consumer::{ConsumerSettings, Isolation, OffsetReset, StartAt};
pub use error::SettingsError;
pub use fetch::FetchSettings;
pub use membership::GroupSettings;
pub use producer::{Acks, ProducerSettings};
