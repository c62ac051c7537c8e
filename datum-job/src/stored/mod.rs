//! What is committed beside an offset.
//!
//! The committed offset itself is **L**, the lowest offset an open window still needs. Its metadata holds the rest: see
//! [`Stored`]. The text form is versioned and at most [`MAX_TEXT`] bytes, well under the 4,096 that a broker accepts.

mod codec;

pub use codec::{DecodeError, MAX_TEXT};

use datum_window::{Millis, Watermark};

use crate::settings::Mode;

/// The most steps a horizon is stored as.
pub const MAX_STEPS: usize = 8;

/// A topic's id: a recreated topic has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopicId(pub [u8; 16]);

impl std::fmt::Display for TopicId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// What a job computes, in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobHash(pub u64);

impl JobHash {
    /// The hash of the signatures of windows and aggregates, in this order (FNV-1a, 64 bits: stable over versions
    /// and machines, which the standard library's hashers are not).
    #[must_use]
    pub fn of(signatures: &[&str]) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for signature in signatures {
            for byte in signature.bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        Self(hash)
    }
}

impl std::fmt::Display for JobHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// From `offset` on, records up to event time `until` are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The first offset it holds for.
    pub offset: i64,
    /// The latest event time accepted.
    pub until: Millis,
}

/// The state of one partition as committed: its offset and the metadata beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// **L**: the committed offset.
    pub low: i64,
    /// **P**: the next unprocessed offset; at least L.
    pub position: i64,
    /// **W**: the partition's own watermark just before L.
    pub watermark: Watermark,
    /// **E**: the highest end plus grace the job has published; [`Watermark::NONE`] before the first.
    pub published: Watermark,
    /// The horizon's steps, by offset; at most [`MAX_STEPS`]. Offsets below L are stored as L.
    pub steps: Vec<Step>,
    /// How many partitions the topic had.
    pub partitions: u32,
    /// Who works on which partitions.
    pub mode: Mode,
    /// The topic.
    pub topic: TopicId,
    /// What the job computes.
    pub hash: JobHash,
}
