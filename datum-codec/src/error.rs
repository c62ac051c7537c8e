//! Why a record could not be decoded.

use std::fmt;

/// What was wrong with a record, at which byte, and which wanted field was being read.
///
/// Making one allocates nothing, so that a stream with many bad records is not slower than one without.
///
/// # Examples
/// ```
/// use datum_codec::{DecodeReason, Json, Projected};
///
/// #[derive(Debug, Projected)]
/// struct Reading {
///     #[projected(path = "sensor.celsius")]
///     celsius: f64,
/// }
///
/// let error = Json::<Reading>::projected().decode(br#"{"sensor":{"celsius":"warm"}}"#).unwrap_err();
/// assert_eq!(error.reason(), DecodeReason::ExpectedNumber);
/// assert_eq!((error.offset(), error.path()), (21, Some("sensor.celsius")));
/// assert_eq!(error.to_string(), "a number was expected, at byte 21, field `sensor.celsius`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    reason: DecodeReason,
    offset: usize,
    path: Option<&'static str>,
}

impl DecodeError {
    pub(crate) const fn new(reason: DecodeReason, offset: usize, path: Option<&'static str>) -> Self {
        Self { reason, offset, path }
    }

    /// What was wrong.
    #[must_use]
    pub const fn reason(&self) -> DecodeReason {
        self.reason
    }

    /// The byte of the record at which that showed; the length of the record when it ended too early.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The wanted field that was being read, by its path; none where the fault lies outside the wanted fields.
    #[must_use]
    pub const fn path(&self) -> Option<&'static str> {
        self.path
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}", self.reason, self.offset)?;
        match self.path {
            Some(path) => write!(f, ", field `{path}`"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DecodeError {}

/// The kinds of fault that a [`DecodeError`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeReason {
    /// The record stops in the middle of a value, or is empty.
    #[error("the record ends too early")]
    UnexpectedEnd,
    /// No JSON value starts like this.
    #[error("a JSON value was expected")]
    ExpectedValue,
    /// The record, or what a path leads through, is not an object.
    #[error("an object was expected")]
    ExpectedObject,
    /// The key of an object does not start with a quote.
    #[error("a quoted key was expected")]
    ExpectedKey,
    /// No colon follows a key.
    #[error("a colon was expected")]
    ExpectedColon,
    /// Neither a comma nor the closing bracket follows a value.
    #[error("a comma or the closing bracket was expected")]
    ExpectedCommaOrEnd,
    /// The closing bracket follows a comma.
    #[error("a comma stands before a closing bracket")]
    TrailingComma,
    /// Something other than white space follows the record.
    #[error("something follows the record")]
    TrailingCharacters,
    /// The field's type is a number, the value is not.
    #[error("a number was expected")]
    ExpectedNumber,
    /// The field's type is an integer, the value has a fraction or an exponent, is `-0`, or exceeds 64 bits.
    #[error("an integer was expected")]
    ExpectedInteger,
    /// The field's type is a boolean, the value is neither `true` nor `false`.
    #[error("true or false was expected")]
    ExpectedBool,
    /// The field's type is a string, the value is not.
    #[error("a string was expected")]
    ExpectedString,
    /// JSON has no such number: a leading zero, a lone minus sign, no digit after the point or the exponent.
    #[error("the number is malformed")]
    InvalidNumber,
    /// The number does not fit the field's type.
    #[error("the number does not fit the field's type")]
    NumberOutOfRange,
    /// A character below U+0020 stands in a string; JSON wants it escaped.
    #[error("a string holds a control character")]
    ControlCharacter,
    /// A backslash is followed by something other than a JSON escape.
    #[error("the escape sequence is malformed")]
    InvalidEscape,
    /// A `\u` escape is half of a surrogate pair.
    #[error("a surrogate escape lacks its other half")]
    LoneSurrogate,
    /// A key or a wanted string is not UTF-8.
    #[error("a string is not UTF-8")]
    InvalidUtf8,
    /// A wanted key, or one that a path leads through, stands twice in the same object.
    #[error("the field stands twice")]
    DuplicateField,
    /// A wanted field is not there, and its type is not an `Option`.
    #[error("the field is missing")]
    MissingField,
    /// The record is an array in place of an object and is longer or shorter than the projection.
    #[error("an array stands for the object but has another number of elements than the projection")]
    WrongArrayLength,
    /// The field's own type refused the value; the text is the type's.
    #[error("{0}")]
    Refused(&'static str),
}
