//! Bytes to records and back: projected JSON, compression, and the stages that use them.
//!
//! A stream job seldom needs a whole record. It needs nine fields of nineteen, and the record next in line has the
//! same fields in the same order. [`Json::projected`] makes use of both: a plain struct names the wanted fields
//! through [`derive@Projected`], the form of a record is learnt once, and of each record that follows only the named
//! values are read, while everything between them is checked byte by byte. Whatever does not fit goes through a full
//! parse. The outcome never depends on which way was taken, and is the one serde_json would have had.
//!
//! ```
//! use datum_codec::{Json, Projected};
//!
//! #[derive(Debug, PartialEq, Projected)]
//! struct Order {
//!     id: u64,
//!     #[projected(path = "customer.country")]
//!     country: String,
//!     discount: Option<f64>,
//! }
//!
//! # fn main() -> Result<(), datum_codec::DecodeError> {
//! let mut orders = Json::<Order>::projected();
//! let order = orders.decode(br#"{"id":7,"lines":[{"sku":"a"}],"customer":{"country":"IS"}}"#)?;
//! assert_eq!(order, Order { id: 7, country: "IS".into(), discount: None });
//! # Ok(())
//! # }
//! ```

pub mod compression;
mod decoder;
mod error;
pub mod json;
mod policy;
mod projected;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod stages;

pub use compact_str::CompactString;
pub use datum_codec_derive::Projected;

pub use crate::decoder::{DecodeWith, Decoder};
pub use crate::error::{DecodeError, DecodeReason};
pub use crate::json::{Json, ProjectedJson};
pub use crate::policy::{DeadLetter, DeadLetters, DecodePolicy, Decoding};
pub use crate::projected::{
    Field, FieldType, FieldValue, Input, OwnedProjected, Projected, Record, ValueKind,
};

/// What a stream that decodes names: `use datum_codec::prelude::*;`.
pub mod prelude {
    pub use crate::stages::{DecodeOps, TryDecodeOps};
    pub use crate::{DecodePolicy, Decoder, Json, Projected};
}
