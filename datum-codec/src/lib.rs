//! Bytes to records and back: projected JSON, compression, and the stages that use them.

pub mod compression;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
