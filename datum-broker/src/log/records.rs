//! The records inside a batch, where the broker must look: what validation asks of them, and the first at or after a
//! time.

use std::collections::VecDeque;

use bytes::Bytes;
use datum_kafka::wire::batch::{BatchDecoder, BatchHeader, RawBatch, RecordBatch, TimestampType};

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

/// Looks at every record of a client's batch, as Kafka does.
///
/// # Errors
/// `InvalidRecord` when the records are not as many, or not in such order, as the header says; `CorruptMessage` when
/// they cannot be unpacked.
pub(crate) fn inspect(
    header: &BatchHeader,
    bytes: &Bytes,
    decoder: &mut BatchDecoder,
) -> Result<Facts, Code> {
    let batch = decode(header, bytes, decoder).ok_or(Code::InvalidRecord)?;
    let mut facts = Facts { oldest: i64::MAX, newest: i64::MIN, without_key: false };
    for (place, record) in (header.base_offset..).zip(batch.iter()) {
        if record.offset() != place {
            return Err(Code::InvalidRecord);
        }
        facts.oldest = facts.oldest.min(record.timestamp());
        facts.newest = facts.newest.max(record.timestamp());
        facts.without_key |= record.key().is_none();
    }
    let count = i32::try_from(batch.len()).unwrap_or(i32::MAX);
    if count == header.record_count { Ok(facts) } else { Err(Code::InvalidRecord) }
}

fn decode(header: &BatchHeader, bytes: &Bytes, decoder: &mut BatchDecoder) -> Option<RecordBatch> {
    decoder.decode(&RawBatch { header: *header, bytes: bytes.clone() }).ok()
}

/// Offset and time stamp of the first record at or after `time`, not below `start`.
pub(crate) fn at_or_after(batches: &VecDeque<Batch>, start: i64, time: i64) -> Option<(i64, i64)> {
    batches
        .iter()
        .filter(|batch| batch.header.max_timestamp >= time)
        .find_map(|batch| first(batch, |offset, timestamp| offset >= start && timestamp >= time))
}

/// Offset and time stamp of the first record with the largest time stamp.
pub(crate) fn newest(batches: &VecDeque<Batch>) -> Option<(i64, i64)> {
    let data = || batches.iter().filter(|batch| !batch.header.attributes.is_control());
    let newest = data().map(|batch| batch.header.max_timestamp).max()?;
    data()
        .filter(|batch| batch.header.max_timestamp == newest)
        .find_map(|batch| first(batch, |_, timestamp| timestamp == newest))
}

/// The first record of a batch that `fits`. Records under an append time share it; what cannot be read has none.
fn first(batch: &Batch, fits: impl Fn(i64, i64) -> bool) -> Option<(i64, i64)> {
    if batch.header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        let timestamp = batch.header.max_timestamp;
        return (batch.header.base_offset..=batch.last_offset())
            .map(|offset| (offset, timestamp))
            .find(|&(offset, timestamp)| fits(offset, timestamp));
    }
    let records = decode(&batch.header, &batch.bytes, &mut BatchDecoder::new())?;
    records
        .iter()
        .map(|record| (record.offset(), record.timestamp()))
        .find(|&(offset, time)| fits(offset, time))
}
