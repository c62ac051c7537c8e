//! Why a record batch was refused.

use datum_codec::compression::{CompressError, DecompressError};
use thiserror::Error;

/// A record batch is not what format 2 says, or is of another format.
///
/// The batch's place (topic, partition, offset) is known to the caller, who adds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Fewer bytes than the batch says it has; at the end of a Fetch answer this is not an error but a [`super::Tail`].
    #[error("the batch needs {needed} bytes, but only {available} are there")]
    Truncated {
        /// Bytes the batch needs.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// The length field is too small for a header.
    #[error(
        "the batch's length field says {length}, less than a header needs; the log or the wire is corrupt"
    )]
    Length {
        /// The length field.
        length: i32,
    },
    /// The batch is in the message format of Kafka before 0.11, which this client does not read.
    #[error(
        "the batch has format {magic}; only format 2 (Kafka 0.11 and later) is read. Let a Kafka 3.x broker convert the \
         topic, or produce it again"
    )]
    OldFormat {
        /// The format, 0 or 1.
        magic: i8,
    },
    /// A format number that no Kafka has defined.
    #[error("the batch has format {magic}, which no known Kafka writes; the log or the wire is corrupt")]
    UnknownFormat {
        /// The format number.
        magic: i8,
    },
    /// The bytes do not have the checksum that the header states.
    #[error(
        "the batch's CRC-32C is {actual:#010x}, its header says {stated:#010x}: bytes were damaged on the way or on disk"
    )]
    Crc {
        /// The checksum in the header.
        stated: u32,
        /// The checksum of the bytes.
        actual: u32,
    },
    /// A codec number that no Kafka has defined.
    #[error("the batch is compressed with codec {id}, which this client does not know")]
    UnknownCodec {
        /// The number in the attributes.
        id: i16,
    },
    /// The record count or the last offset delta is negative.
    #[error(
        "the batch states {record_count} records and last offset delta {last_offset_delta}; neither may be negative"
    )]
    NegativeCount {
        /// The record count.
        record_count: i32,
        /// The last offset delta.
        last_offset_delta: i32,
    },
    /// A batch to append must have one record per offset.
    #[error("the batch states {record_count} records over {} offsets; a new batch has one record per offset", i64::from(*last_offset_delta) + 1)]
    CountMismatch {
        /// The record count.
        record_count: i32,
        /// The last offset delta.
        last_offset_delta: i32,
    },
    /// The offsets of the batch run past the largest offset.
    #[error(
        "the batch's offsets from {base_offset} with last delta {last_offset_delta} run past the largest offset or below zero"
    )]
    OffsetOverflow {
        /// The base offset.
        base_offset: i64,
        /// The last offset delta.
        last_offset_delta: i32,
    },
    /// A record is malformed.
    #[error("record {position} of the batch is malformed: {fault}")]
    Record {
        /// Its position in the batch, from 0.
        position: usize,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// Bytes remain after the last of the stated records.
    #[error("{left} bytes are left after the last record the batch states")]
    TrailingRecords {
        /// Bytes that are left.
        left: usize,
    },
    /// The records take more memory than the decoder may use.
    #[error(
        "the batch's records take more than the limit of {limit} bytes when decompressed; raise the decoder's limit if such batches are expected"
    )]
    BodyTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The records could not be decompressed.
    #[error("the batch's records could not be decompressed: {source}")]
    Decompress {
        /// Why.
        #[source]
        source: DecompressError,
    },
    /// The records could not be compressed.
    #[error("the batch's records could not be compressed: {source}")]
    Compress {
        /// Why.
        #[source]
        source: CompressError,
    },
    /// A record or batch to be written exceeds what the format's 32-bit lengths hold.
    #[error("a batch of {size} bytes cannot be written: its length field holds at most 2 GiB")]
    TooLong {
        /// The size it would have, in bytes.
        size: usize,
    },
    /// A batch to be closed has no records.
    #[error("a batch without records cannot be closed")]
    Empty,
    /// A control record whose key or value is not one of a transaction marker.
    #[error("the control batch holds no readable marker: {reason}")]
    Control {
        /// What is wrong with it.
        reason: ControlFault,
    },
}

/// What is wrong with a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ControlFault {
    /// The batch is not a control batch.
    #[error("the control bit is not set")]
    NotControl,
    /// The batch holds no record.
    #[error("it has no record")]
    Empty,
    /// The record's bytes are cut short or its lengths do not agree.
    #[error("its record is cut short")]
    Malformed,
    /// The key is null or shorter than version and type.
    #[error("its key is too short")]
    Key,
    /// The value is null or shorter than version and coordinator epoch.
    #[error("its value is too short")]
    Value,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// It is cut short, or one of its integers does not end.
    #[error("it is cut short")]
    Truncated,
    /// Its length is negative.
    #[error("its length is negative")]
    Length,
    /// Its offset delta is not above the one before it, or above the batch's last.
    #[error("its offset is not above the one before it, or above the batch's last")]
    OffsetDelta,
    /// Its key's length is below -1 or runs past its end.
    #[error("its key's length is not possible")]
    KeyLength,
    /// Its value's length is below -1 or runs past its end.
    #[error("its value's length is not possible")]
    ValueLength,
    /// Its header count is negative.
    #[error("its header count is negative")]
    HeaderCount,
    /// The length of a header's key or value is not possible.
    #[error("the length of a header's key or value is not possible")]
    HeaderLength,
    /// Bytes remain after its last header.
    #[error("bytes are left after its last header")]
    TrailingBytes,
}
