//! Bytes of the Kafka protocol: what goes over the socket, read and written without a socket or a clock.
//!
//! - [`reader`], [`writer`], [`varint`]: the primitive types, every length and count checked against the bytes that are left
//!   before anything is allocated;
//! - [`error_code`]: all error codes, in one table; [`murmur2`]: the partitioner's hash;
//! - [`fetch`], [`produce`]: the two messages that carry records, written by hand so that records are never copied;
//! - [`message`], [`shape`]: all other messages, checked before they are decoded;
//! - [`batch`]: record batches (format 2): header, CRC, zero-copy records, control batches, builder.
//!
//! # Errors
//! Malformed bytes give a [`WireError`] (a message) or a [`batch::BatchError`] (records); both name the field at fault.
//! Nothing in here panics on bytes from outside.
//!
//! # Costs
//! Messages are read from a shared frame (`Bytes`); strings, blobs and records are slices of it, never copies.

pub mod batch;
pub mod error_code;
pub mod fetch;
pub mod leader;
pub mod message;
pub mod murmur2;
pub mod produce;
pub mod reader;
pub mod shape;
pub mod topic;
pub mod varint;
pub mod writer;

mod error;

pub use error::WireError;
pub use error_code::ErrorCode;
