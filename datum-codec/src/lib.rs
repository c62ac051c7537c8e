//! Bytes to records and back: projected JSON, compression, and the stages that use them.

#[cfg(any(test, feature = "sample"))]
pub mod sample;
