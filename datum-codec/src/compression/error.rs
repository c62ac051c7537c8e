//! Why a block could not be compressed or decompressed.

use super::Codec;
use thiserror::Error;

/// A block could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecompressError {
    /// The output would exceed the caller's limit; raise the limit if such blocks are expected.
    #[error("{} data expands beyond the limit of {limit} bytes", codec.name())]
    TooLarge {
        /// The codec.
        codec: Codec,
        /// The limit that was given.
        limit: usize,
    },
    /// The input ends too early.
    #[error("{} data is cut short", codec.name())]
    Truncated {
        /// The codec.
        codec: Codec,
    },
    /// The input is damaged or not of this format.
    #[error("{} data is corrupt: {fault}", codec.name())]
    Corrupt {
        /// The codec.
        codec: Codec,
        /// What is wrong.
        fault: Fault,
    },
    /// The codec's library could not make its context, for lack of memory.
    #[error("no memory for a {} context", codec.name())]
    NoContext {
        /// The codec.
        codec: Codec,
    },
}

/// What is wrong with compressed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The first bytes are not the format's.
    #[error("it does not start as the format does")]
    Magic,
    /// A header field has a value the format does not define or we do not support, for instance a preset dictionary.
    #[error("a header field has an unsupported value")]
    Header,
    /// A checksum of header, block or content does not match.
    #[error("a checksum does not match")]
    Checksum,
    /// A size that the data states is not the size it has, or is not possible.
    #[error("a stated size is not possible or not the real one")]
    Size,
    /// The compressed stream itself is not legal.
    #[error("the compressed stream is not legal")]
    Stream,
}

/// A block could not be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompressError {
    /// The input is longer than the format or its framing can hold.
    #[error("{} cannot take a block of {length} bytes", codec.name())]
    TooLong {
        /// The codec.
        codec: Codec,
        /// Length of the input.
        length: usize,
    },
    /// The codec's library failed, for lack of memory.
    #[error("{} failed to compress, probably for lack of memory", codec.name())]
    Library {
        /// The codec.
        codec: Codec,
    },
}
