//! Why a record batch was refused.

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
