//! The attribute bits of a batch.

use super::BatchError;

/// How a batch's records are compressed; the numbers are the protocol's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Not compressed.
    #[default]
    None,
    /// gzip, RFC 1952.
    Gzip,
    /// Snappy, raw or in the framing of the xerial library.
    Snappy,
    /// The LZ4 frame format.
    Lz4,
    /// Zstandard; needs Produce 7 and Fetch 10 (KIP-110).
    Zstd,
}

impl Codec {
    /// Every codec, for tests and listings.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec's number in the attributes.
    #[must_use]
    pub const fn id(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The name Kafka's `compression.type` uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// Who set the records' timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer; each record has its own.
    #[default]
    CreateTime,
    /// The broker, when it appended: every record has the batch's largest timestamp.
    LogAppendTime,
}

/// The attribute bits, as they are on the wire.
///
/// Unknown bits are kept, so that rewriting a batch does not lose them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(i16);

impl Attributes {
    const CODEC: i16 = 0b0000_0111;
    const LOG_APPEND_TIME: i16 = 1 << 3;
    const TRANSACTIONAL: i16 = 1 << 4;
    const CONTROL: i16 = 1 << 5;
    const DELETE_HORIZON: i16 = 1 << 6;

    /// From the wire.
    #[must_use]
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits)
    }

    /// To the wire.
    #[must_use]
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// The codec.
    ///
    /// # Errors
    /// [`BatchError::UnknownCodec`] for the numbers 5 to 7.
    pub const fn codec(self) -> Result<Codec, BatchError> {
        match self.0 & Self::CODEC {
            0 => Ok(Codec::None),
            1 => Ok(Codec::Gzip),
            2 => Ok(Codec::Snappy),
            3 => Ok(Codec::Lz4),
            4 => Ok(Codec::Zstd),
            id => Err(BatchError::UnknownCodec { id }),
        }
    }

    /// Who set the timestamps.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Whether the batch holds a marker for clients instead of records for users.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is the time from which compaction may drop the batch's tombstones.
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// With this codec.
    #[must_use]
    pub const fn with_codec(self, codec: Codec) -> Self {
        Self((self.0 & !Self::CODEC) | codec.id())
    }

    /// With this timestamp type.
    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        self.with(Self::LOG_APPEND_TIME, matches!(timestamp_type, TimestampType::LogAppendTime))
    }

    /// Transactional or not.
    #[must_use]
    pub const fn with_transactional(self, on: bool) -> Self {
        self.with(Self::TRANSACTIONAL, on)
    }

    /// Control batch or not.
    #[must_use]
    pub const fn with_control(self, on: bool) -> Self {
        self.with(Self::CONTROL, on)
    }

    const fn with(self, bit: i16, on: bool) -> Self {
        if on { Self(self.0 | bit) } else { Self(self.0 & !bit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_protocols() {
        let all = Attributes::default()
            .with_codec(Codec::Lz4)
            .with_timestamp_type(TimestampType::LogAppendTime)
            .with_transactional(true)
            .with_control(true);
        assert_eq!(all.bits(), 0b11_1011);
        assert_eq!(all.with_control(false).with_codec(Codec::None).bits(), 0b01_1000);
        assert!(!Attributes::default().is_transactional());
    }

    #[test]
    fn codecs_have_one_number_and_name_each() {
        for codec in Codec::ALL {
            assert_eq!(Attributes::default().with_codec(codec).codec(), Ok(codec));
            assert_eq!(Codec::from_name(codec.name()), Some(codec));
        }
        assert_eq!(Attributes::from_bits(6).codec(), Err(BatchError::UnknownCodec { id: 6 }));
        assert_eq!(Codec::from_name("brotli"), None);
    }
}
