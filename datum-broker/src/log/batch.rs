//! One stored record batch (format v2): its header, read once, and its bytes as they go out again.
//!
//! A batch arrives encoded and leaves encoded: the broker reads the 61 bytes of its header, sets the base offset and the
//! leader epoch (which the checksum does not cover, so that a broker can), and keeps the rest as it came. Only a topic
//! with `LogAppendTime` costs a second checksum, because the time stamp lies under it.

use bytes::{Bytes, BytesMut};
use datum_kafka::wire::batch::control::{ControlBatch, Marker};
use datum_kafka::wire::batch::{BatchError, BatchHeader};

use crate::code::Code;

/// Reads and checks the one batch that a client sent.
///
/// # Errors
/// `CorruptMessage` when the length or the checksum does not fit the bytes; `InvalidRecord` for another format than v2,
/// for more bytes than one batch, and for counts that do not fit each other; `UnsupportedCompressionType`.
pub(crate) fn check(bytes: &[u8]) -> Result<BatchHeader, Code> {
    let code = |error| match error {
        BatchError::OldFormat { .. } | BatchError::UnknownFormat { .. } => Code::InvalidRecord,
        BatchError::NegativeCount { .. } | BatchError::CountMismatch { .. } => Code::InvalidRecord,
        BatchError::UnknownCodec { .. } => Code::UnsupportedCompressionType,
        _ => Code::CorruptMessage,
    };
    let header = BatchHeader::read(bytes).map_err(code)?;
    if bytes.len() > header.size() {
        return Err(Code::InvalidRecord);
    }
    header.check_appendable(bytes).map_err(code)?;
    Ok(header)
}

/// A batch as the log keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub header: BatchHeader,
    pub bytes: Bytes,
    /// When it was appended, in milliseconds.
    pub appended_at: i64,
}

impl Batch {
    /// Takes a batch in at `base_offset`. `append_time` overwrites its time stamps (`LogAppendTime`). What the batch
    /// says of itself need not be true; only its length must be.
    pub(crate) fn store(
        bytes: &[u8],
        base_offset: i64,
        leader_epoch: i32,
        append_time: Option<i64>,
        now: i64,
    ) -> Self {
        let mut owned = BytesMut::from(bytes);
        let stored = BatchHeader::assign(&mut owned, base_offset, leader_epoch)
            .and_then(|()| {
                append_time.map_or(Ok(()), |time| BatchHeader::stamp_append_time(&mut owned, time))
            })
            .and_then(|()| BatchHeader::read(&owned));
        let header = stored.expect("the header has been read before");
        Self { header, bytes: owned.freeze(), appended_at: now }
    }

    /// The control batch that ends a transaction.
    pub(crate) fn marker(
        base_offset: i64,
        leader_epoch: i32,
        producer_id: i64,
        producer_epoch: i16,
        commit: bool,
        now: i64,
    ) -> Self {
        let marker = if commit {
            Marker::Commit { coordinator_epoch: 0 }
        } else {
            Marker::Abort { coordinator_epoch: 0 }
        };
        let batch =
            ControlBatch { base_offset, leader_epoch, timestamp: now, producer_id, producer_epoch, marker };
        let bytes = Bytes::from(batch.encode());
        let header = BatchHeader::read(&bytes).expect("it was just written");
        Self { header, bytes, appended_at: now }
    }

    pub(crate) fn last_offset(&self) -> i64 {
        self.header.last_offset()
    }

    /// The time stamp that retention and look-ups by time go by.
    pub(crate) fn newest(&self) -> i64 {
        if self.header.max_timestamp < 0 { self.appended_at } else { self.header.max_timestamp }
    }
}

#[cfg(test)]
mod tests {
    use datum_kafka::wire::batch::TimestampType;

    use super::*;

    #[test]
    fn a_marker_is_a_valid_control_batch() {
        let marker = Batch::marker(7, 3, 42, 5, true, 1_000);
        let header = check(&marker.bytes).expect("whole and sealed");
        assert!(header.attributes.is_control() && header.attributes.is_transactional());
        assert_eq!((header.base_offset, header.last_offset(), header.record_count), (7, 7, 1));
        assert_eq!((header.producer_id, header.producer_epoch), (42, 5));
    }

    #[test]
    fn one_flipped_bit_is_corrupt() {
        let marker = Batch::marker(0, 0, 1, 0, false, 1);
        for at in 21..marker.bytes.len() {
            let mut bent = marker.bytes.to_vec();
            bent[at] ^= 1;
            assert_eq!(check(&bent), Err(Code::CorruptMessage), "byte {at}");
        }
        assert_eq!(check(&marker.bytes[..60]), Err(Code::CorruptMessage));
        let two = [marker.bytes.clone(), marker.bytes].concat();
        assert_eq!(check(&two), Err(Code::InvalidRecord));
    }

    #[test]
    fn log_append_time_is_written_under_the_checksum() {
        let sent = Batch::marker(0, 0, 1, 0, false, 1);
        let kept = Batch::store(&sent.bytes, 9, 4, Some(77), 78);
        check(&kept.bytes).expect("sealed anew");
        assert_eq!(kept.header.attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!((kept.header.max_timestamp, kept.header.base_offset), (77, 9));
    }
}
