//! Why a message could not be read or written.

use thiserror::Error;

/// A message on the wire is not what the protocol says, or a value does not fit into it.
///
/// Every variant names the field (`what`). On a live connection each of them means that the two ends no longer agree
/// where messages begin, so the connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a field.
    #[error(
        "{what} needs {needed} bytes, but only {left} are left; the message is cut short or not of this version"
    )]
    Truncated {
        /// The field.
        what: &'static str,
        /// Bytes the field needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// An array claims more elements than the bytes that are left could hold.
    #[error("{what} claims {count} elements, but only {left} bytes are left; refused before allocating")]
    CountExceedsBytes {
        /// The array.
        what: &'static str,
        /// The claimed count.
        count: u64,
        /// Bytes that are left.
        left: usize,
    },
    /// A length or count is negative where null is not allowed, or below -1.
    #[error("{what} has length {length}, which is not possible")]
    NegativeLength {
        /// The field.
        what: &'static str,
        /// The length read.
        length: i64,
    },
    /// A field that may not be null is null.
    #[error("{what} is null, which this message does not allow")]
    UnexpectedNull {
        /// The field.
        what: &'static str,
    },
    /// A variable-length integer runs past its largest size.
    #[error("{what} is a variable-length integer that does not end within {max_bytes} bytes")]
    VarintTooLong {
        /// The field.
        what: &'static str,
        /// The longest legal encoding.
        max_bytes: usize,
    },
    /// A string is not UTF-8.
    #[error("{what} is not UTF-8")]
    NotUtf8 {
        /// The field.
        what: &'static str,
    },
    /// Tagged fields do not ascend, or one is given twice.
    #[error("{what}: tag {tag} comes after tag {previous}; tags must ascend")]
    TagOrder {
        /// The message or structure.
        what: &'static str,
        /// The tag at fault.
        tag: u32,
        /// The tag before it.
        previous: u32,
    },
    /// A tagged field's content is shorter or longer than its stated size.
    #[error("{what}: tagged field {tag} states {stated} bytes, but its content takes {actual}")]
    TagSize {
        /// The message or structure.
        what: &'static str,
        /// The tag.
        tag: u32,
        /// The size on the wire.
        stated: usize,
        /// The size of the content.
        actual: usize,
    },
    /// Bytes remain after the last field.
    #[error("{left} bytes are left after the last field of {what}; it is not of this version")]
    TrailingBytes {
        /// The message.
        what: &'static str,
        /// Bytes that are left.
        left: usize,
    },
    /// This message is not read or written at that version.
    #[error("{what} version {version} is not supported here (supported: {min} to {max})")]
    UnsupportedVersion {
        /// The message.
        what: &'static str,
        /// The version asked for.
        version: i16,
        /// Lowest supported version.
        min: i16,
        /// Highest supported version.
        max: i16,
    },
    /// A value is too long for its length prefix.
    #[error("{what} is {length} bytes or elements long; its length prefix holds at most {max}")]
    TooLong {
        /// The field.
        what: &'static str,
        /// The length.
        length: usize,
        /// The most the prefix can hold.
        max: usize,
    },
    /// A field is set that the chosen version cannot carry, or has a value the message's structure does not accept.
    #[error(
        "{what} cannot be encoded or decoded at version {version}: a field holds a value that version has no room for"
    )]
    NotExpressible {
        /// The message.
        what: &'static str,
        /// The version.
        version: i16,
    },
    /// The answer carries another correlation id than the oldest request in flight.
    #[error(
        "answer has correlation id {actual}, expected {expected}; the two ends disagree, close the connection"
    )]
    Correlation {
        /// The id of the oldest request in flight.
        expected: i32,
        /// The id of the answer.
        actual: i32,
    },
}
