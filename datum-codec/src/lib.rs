//! Bytes to records and back: projected JSON, compression, and the stages that use them.
