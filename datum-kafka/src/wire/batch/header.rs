//! The header of a batch, read, checked and rewritten without touching its records.

use super::checksum::checksum;
use super::{Attributes, BatchError};

/// Bytes before the first record.
pub const HEADER_LEN: usize = 61;
/// Bytes before and including the length field: what the length does not count.
pub(super) const LENGTH_END: usize = 12;
/// First byte that the CRC covers.
pub(super) const CRC_START: usize = 21;

const BASE_OFFSET: usize = 0;
const LEADER_EPOCH: usize = 12;
const MAGIC: usize = 16;
const CRC: usize = 17;
const ATTRIBUTES: usize = 21;
const MAX_TIMESTAMP: usize = 35;
const PRODUCER_ID: usize = 43;
const PRODUCER_EPOCH: usize = 51;
const BASE_SEQUENCE: usize = 53;

/// What a batch's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the batch's first offset delta; compaction may have removed that record.
    pub base_offset: i64,
    /// Bytes after the length field; at least 49.
    pub length: i32,
    /// Epoch of the leader that appended it, -1 if unknown.
    pub leader_epoch: i32,
    /// CRC-32C as stated; see [`BatchHeader::check_crc`].
    pub crc: u32,
    /// Codec, timestamp type, transactional, control.
    pub attributes: Attributes,
    /// Offset of the last record the batch was written with, minus the base offset; kept by compaction.
    pub last_offset_delta: i32,
    /// Milliseconds since 1970 that the records' timestamp deltas are relative to; -1 if there are none.
    pub base_timestamp: i64,
    /// Largest timestamp of the records, milliseconds; with log append time, the timestamp of each.
    pub max_timestamp: i64,
    /// Id of an idempotent producer, -1 if there is none.
    pub producer_id: i64,
    /// Epoch of that producer.
    pub producer_epoch: i16,
    /// Sequence of the first record, -1 if there is none.
    pub base_sequence: i32,
    /// How many records are in the batch, as stated; never allocate by it.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header of a batch that starts at `bytes`; the batch itself need not be complete.
    ///
    /// Checks format and length, neither CRC nor counts.
    ///
    /// # Errors
    /// [`BatchError::Truncated`] below 61 bytes, [`BatchError::Length`], [`BatchError::OldFormat`] or
    /// [`BatchError::UnknownFormat`]. The old formats are recognised from 17 bytes on.
    pub fn read(bytes: &[u8]) -> Result<Self, BatchError> {
        let magic = bytes.get(MAGIC).map(|byte| byte.cast_signed());
        match magic {
            None | Some(2) => {}
            Some(magic @ 0..=1) => return Err(BatchError::OldFormat { magic }),
            Some(magic) => return Err(BatchError::UnknownFormat { magic }),
        }
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated { needed: HEADER_LEN, available: bytes.len() });
        };
        let length = i32_at(header, 8);
        if usize::try_from(length).is_ok_and(|length| length >= HEADER_LEN - LENGTH_END) {
            Ok(Self {
                base_offset: i64_at(header, BASE_OFFSET),
                length,
                leader_epoch: i32_at(header, LEADER_EPOCH),
                crc: i32_at(header, CRC).cast_unsigned(),
                attributes: Attributes::from_bits(i16_at(header, ATTRIBUTES)),
                last_offset_delta: i32_at(header, 23),
                base_timestamp: i64_at(header, 27),
                max_timestamp: i64_at(header, MAX_TIMESTAMP),
                producer_id: i64_at(header, PRODUCER_ID),
                producer_epoch: i16_at(header, PRODUCER_EPOCH),
                base_sequence: i32_at(header, BASE_SEQUENCE),
                record_count: i32_at(header, 57),
            })
        } else {
            Err(BatchError::Length { length })
        }
    }

    /// Size of the whole batch in bytes, header included; the length field was checked when the header was read.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.length).unwrap_or_default() + LENGTH_END
    }

    /// The last offset the batch covers.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// The offset after this batch, whatever compaction has left in it: where to fetch next.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// Whether the batch was written by an idempotent or transactional producer.
    #[must_use]
    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }

    /// Sequence of the last record; sequences wrap from `i32::MAX` to 0.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        add_sequence(self.base_sequence, self.last_offset_delta.max(0))
    }

    /// Compares the CRC-32C of `batch` with the header's.
    ///
    /// # Errors
    /// [`BatchError::Crc`], or [`BatchError::Truncated`] if the batch is not complete.
    pub fn check_crc(&self, batch: &[u8]) -> Result<(), BatchError> {
        let size = self.size();
        let Some(covered) = batch.get(CRC_START..size) else {
            return Err(BatchError::Truncated { needed: size, available: batch.len() });
        };
        let actual = checksum(covered);
        if actual == self.crc { Ok(()) } else { Err(BatchError::Crc { stated: self.crc, actual }) }
    }

    /// Checks what holds for every batch a reader may meet: counts are not negative, offsets do not overflow, and there
    /// are no more records than offsets.
    ///
    /// # Errors
    /// [`BatchError::NegativeCount`], [`BatchError::OffsetOverflow`] or [`BatchError::CountMismatch`].
    pub fn check_counts(&self) -> Result<(), BatchError> {
        let Self { base_offset, last_offset_delta, record_count, .. } = *self;
        if record_count < 0 || last_offset_delta < 0 {
            return Err(BatchError::NegativeCount { record_count, last_offset_delta });
        }
        if base_offset < 0 || base_offset.checked_add(i64::from(last_offset_delta) + 1).is_none() {
            return Err(BatchError::OffsetOverflow { base_offset, last_offset_delta });
        }
        if i64::from(record_count) > i64::from(last_offset_delta) + 1 {
            return Err(BatchError::CountMismatch { record_count, last_offset_delta });
        }
        Ok(())
    }

    /// Checks what a broker asks of a batch it is to append: whole, CRC right, codec known, and one record per offset.
    ///
    /// `batch` must be exactly this batch. The records themselves are not decoded.
    ///
    /// # Errors
    /// [`BatchError`], each variant but those about control records.
    pub fn check_appendable(&self, batch: &[u8]) -> Result<(), BatchError> {
        if batch.len() != self.size() {
            return Err(BatchError::Truncated { needed: self.size(), available: batch.len() });
        }
        self.check_crc(batch)?;
        self.attributes.codec()?;
        self.check_counts()?;
        let Self { last_offset_delta, record_count, .. } = *self;
        if record_count == 0 || i64::from(record_count) != i64::from(last_offset_delta) + 1 {
            return Err(BatchError::CountMismatch { record_count, last_offset_delta });
        }
        Ok(())
    }

    /// Gives a stored batch its place in the log; neither field is covered by the CRC.
    ///
    /// # Errors
    /// [`BatchError::Truncated`] if `batch` is shorter than a header.
    pub fn assign(batch: &mut [u8], base_offset: i64, leader_epoch: i32) -> Result<(), BatchError> {
        let header = header_mut(batch)?;
        put(header, BASE_OFFSET, &base_offset.to_be_bytes());
        put(header, LEADER_EPOCH, &leader_epoch.to_be_bytes());
        Ok(())
    }

    /// Marks a whole batch as stamped by the broker at `timestamp` (milliseconds) and computes the CRC anew.
    ///
    /// # Errors
    /// As [`BatchHeader::read`].
    pub fn stamp_append_time(batch: &mut [u8], timestamp: i64) -> Result<(), BatchError> {
        let attributes = Self::read(batch)?.attributes;
        let stamped = attributes.with_timestamp_type(super::TimestampType::LogAppendTime);
        let header = header_mut(batch)?;
        put(header, ATTRIBUTES, &stamped.bits().to_be_bytes());
        put(header, MAX_TIMESTAMP, &timestamp.to_be_bytes());
        Self::write_crc(batch)
    }

    /// Gives a closed batch another producer id, epoch and first sequence and computes the CRC anew, for a batch that is
    /// sent again under a bumped epoch (KIP-360).
    ///
    /// # Errors
    /// As [`BatchHeader::read`].
    pub fn assign_producer(
        batch: &mut [u8],
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
    ) -> Result<(), BatchError> {
        let header = header_mut(batch)?;
        put(header, PRODUCER_ID, &producer_id.to_be_bytes());
        put(header, PRODUCER_EPOCH, &producer_epoch.to_be_bytes());
        put(header, BASE_SEQUENCE, &base_sequence.to_be_bytes());
        Self::write_crc(batch)
    }

    /// Computes the CRC of a whole batch and writes it into its header.
    ///
    /// # Errors
    /// As [`BatchHeader::read`], or [`BatchError::Truncated`] if the batch is not complete.
    pub fn write_crc(batch: &mut [u8]) -> Result<(), BatchError> {
        let size = Self::read(batch)?.size();
        let available = batch.len();
        let Some(covered) = batch.get(CRC_START..size) else {
            return Err(BatchError::Truncated { needed: size, available });
        };
        let crc = checksum(covered);
        put(header_mut(batch)?, CRC, &crc.to_be_bytes());
        Ok(())
    }

    /// Writes the header's 61 bytes, the CRC as it stands in `self`.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        put(&mut out, BASE_OFFSET, &self.base_offset.to_be_bytes());
        put(&mut out, 8, &self.length.to_be_bytes());
        put(&mut out, LEADER_EPOCH, &self.leader_epoch.to_be_bytes());
        put(&mut out, MAGIC, &[2]);
        put(&mut out, CRC, &self.crc.to_be_bytes());
        put(&mut out, ATTRIBUTES, &self.attributes.bits().to_be_bytes());
        put(&mut out, 23, &self.last_offset_delta.to_be_bytes());
        put(&mut out, 27, &self.base_timestamp.to_be_bytes());
        put(&mut out, MAX_TIMESTAMP, &self.max_timestamp.to_be_bytes());
        put(&mut out, PRODUCER_ID, &self.producer_id.to_be_bytes());
        put(&mut out, PRODUCER_EPOCH, &self.producer_epoch.to_be_bytes());
        put(&mut out, BASE_SEQUENCE, &self.base_sequence.to_be_bytes());
        put(&mut out, 57, &self.record_count.to_be_bytes());
        out
    }
}

/// The sequence `count` records after `sequence`; wraps from `i32::MAX` to 0 as brokers expect.
#[must_use]
pub fn add_sequence(sequence: i32, count: i32) -> i32 {
    sequence.wrapping_add(count) & i32::MAX
}

fn header_mut(batch: &mut [u8]) -> Result<&mut [u8; HEADER_LEN], BatchError> {
    let available = batch.len();
    batch.first_chunk_mut().ok_or(BatchError::Truncated { needed: HEADER_LEN, available })
}

fn put(header: &mut [u8; HEADER_LEN], at: usize, bytes: &[u8]) {
    header[at..at + bytes.len()].copy_from_slice(bytes);
}

fn fixed_at<const N: usize>(header: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&header[at..at + N]);
    out
}

fn i16_at(header: &[u8; HEADER_LEN], at: usize) -> i16 {
    i16::from_be_bytes(fixed_at(header, at))
}

fn i32_at(header: &[u8; HEADER_LEN], at: usize) -> i32 {
    i32::from_be_bytes(fixed_at(header, at))
}

fn i64_at(header: &[u8; HEADER_LEN], at: usize) -> i64 {
    i64::from_be_bytes(fixed_at(header, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::batch::{Codec, TimestampType};

    fn header() -> BatchHeader {
        BatchHeader {
            base_offset: 7,
            length: 49,
            leader_epoch: 3,
            crc: 0,
            attributes: Attributes::default(),
            last_offset_delta: 0,
            base_timestamp: 1_000,
            max_timestamp: 1_001,
            producer_id: 9,
            producer_epoch: 2,
            base_sequence: 5,
            record_count: 1,
        }
    }

    fn sealed(header: &BatchHeader) -> Vec<u8> {
        let mut bytes = header.to_bytes().to_vec();
        BatchHeader::write_crc(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sealed(&header());
        let read = BatchHeader::read(&bytes).unwrap();
        assert_eq!(read, BatchHeader { crc: read.crc, ..header() });
        assert_eq!((read.size(), read.next_offset()), (61, 8));
        assert_eq!(read.check_appendable(&bytes), Ok(()));
    }

    #[test]
    fn offset_and_epoch_are_outside_the_crc() {
        let mut bytes = sealed(&header());
        BatchHeader::assign(&mut bytes, 1_234, 56).unwrap();
        let read = BatchHeader::read(&bytes).unwrap();
        assert_eq!((read.base_offset, read.leader_epoch), (1_234, 56));
        assert_eq!(read.check_crc(&bytes), Ok(()));
    }

    #[test]
    fn each_covered_byte_is_covered() {
        let bytes = sealed(&header());
        for i in CRC..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x40;
            let read = BatchHeader::read(&damaged).unwrap();
            assert!(matches!(read.check_crc(&damaged), Err(BatchError::Crc { .. })), "byte {i}");
        }
    }

    #[test]
    fn rewriting_covered_fields_renews_the_crc() {
        let mut bytes = sealed(&header());
        BatchHeader::stamp_append_time(&mut bytes, 9_999).unwrap();
        BatchHeader::assign_producer(&mut bytes, 44, 1, 0).unwrap();
        let read = BatchHeader::read(&bytes).unwrap();
        assert_eq!(read.check_appendable(&bytes), Ok(()));
        assert_eq!(read.attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(
            (read.max_timestamp, read.producer_id, read.producer_epoch, read.base_sequence),
            (9_999, 44, 1, 0)
        );
    }

    #[test]
    fn formats_before_two_are_named_from_the_first_bytes_on() {
        let mut bytes = sealed(&header());
        for magic in [0i8, 1] {
            bytes[MAGIC] = magic.cast_unsigned();
            assert_eq!(BatchHeader::read(&bytes[..17]), Err(BatchError::OldFormat { magic }));
        }
        bytes[MAGIC] = 3;
        assert_eq!(BatchHeader::read(&bytes), Err(BatchError::UnknownFormat { magic: 3 }));
        assert_eq!(BatchHeader::read(&bytes[..5]), Err(BatchError::Truncated { needed: 61, available: 5 }));
    }

    #[test]
    fn impossible_headers_are_refused() {
        for length in [48, 0, -1, i32::MIN] {
            let bytes = BatchHeader { length, ..header() }.to_bytes();
            assert_eq!(BatchHeader::read(&bytes), Err(BatchError::Length { length }));
        }
        let check = |h: BatchHeader| {
            let bytes = sealed(&h);
            BatchHeader::read(&bytes).unwrap().check_appendable(&bytes)
        };
        let two_offsets = BatchHeader { last_offset_delta: 1, ..header() };
        assert!(matches!(check(two_offsets), Err(BatchError::CountMismatch { .. })));
        assert_eq!(two_offsets.check_counts(), Ok(()), "a reader accepts gaps");
        assert!(matches!(
            check(BatchHeader { record_count: -1, ..header() }),
            Err(BatchError::NegativeCount { .. })
        ));
        assert!(matches!(
            check(BatchHeader { record_count: 2, ..header() }),
            Err(BatchError::CountMismatch { .. })
        ));
        assert!(matches!(
            check(BatchHeader { base_offset: i64::MAX, ..header() }),
            Err(BatchError::OffsetOverflow { .. })
        ));
        let unknown = BatchHeader { attributes: Attributes::from_bits(7), ..header() };
        assert_eq!(check(unknown), Err(BatchError::UnknownCodec { id: 7 }));
        let zstd = BatchHeader { attributes: Attributes::default().with_codec(Codec::Zstd), ..header() };
        assert_eq!(check(zstd), Ok(()));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(add_sequence(i32::MAX, 1), 0);
        let h =
            BatchHeader { base_sequence: i32::MAX - 1, last_offset_delta: 3, record_count: 4, ..header() };
        assert_eq!(h.last_sequence(), 1);
        assert_eq!(BatchHeader { base_sequence: -1, ..h }.last_sequence(), -1);
    }
}
