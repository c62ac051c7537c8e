//! What a projection is: the wanted fields, their types, and the record whose values they are built from.
//!
//! [`Projected`] is implemented by `#[derive(Projected)]` and tells a decoder which fields to read. The decoder
//! leaves each value, not yet converted, in a [`Record`]; the derived code then asks for one after the other by its
//! field's type. So the scanner is compiled once, and only the last step once per struct.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use compact_str::CompactString;

use crate::error::{DecodeError, DecodeReason};
use crate::json::text_of;

/// A struct whose fields are read out of records, by `#[derive(Projected)]`.
///
/// Each field of the struct names a field of the record:
///
/// | attribute | the value is read from |
/// |---|---|
/// | none | the key named like the field |
/// | `#[projected(rename = "type")]` | that key, taken literally |
/// | `#[projected(path = "a.b.c")]` | the key `c` of the object `b` of the object `a` |
///
/// and has one of these types (see [`FieldType`] for types of your own):
///
/// | type | accepts |
/// |---|---|
/// | `u8` to `u128`, `i8` to `i128`, `usize`, `isize` | integers in range; never `1.0` nor `1e3` |
/// | `f32`, `f64` | every finite number, correctly rounded |
/// | `bool` | `true`, `false` |
/// | `String`, `Box<str>`, `Arc<str>` | strings, copied |
/// | [`CompactString`] | strings, copied; up to 24 bytes without an allocation |
/// | [`Bytes`] | strings; the bytes of the text, shared with the record if that is a [`Bytes`] too |
/// | `&'a str`, `Cow<'a, str>` | strings, borrowed; usable inside `decode_with` alone |
/// | `Option<T>` | what `T` accepts; `null`, and a key that is not there, are `None` |
///
/// Keys that no field names are ignored. A record is refused if a wanted key stands twice, or is missing and its
/// type is no `Option`. A path that meets `null`, or a key that is not there, yields `None` for all fields below if
/// all of them are `Option`s, and refuses the record otherwise. (An array in place of an object is read by position,
/// its elements in the order of the struct, and must have exactly that length. This is how serde treats structs.)
///
/// A [`Bytes`] field keeps the whole record alive, and with it the batch the record lies in. Prefer `String` for
/// values that are kept for long.
///
/// # Examples
/// ```
/// use datum_codec::{Json, Projected};
///
/// #[derive(Projected)]
/// struct Visit<'a> {
///     #[projected(rename = "type")]
///     kind: &'a str,
///     #[projected(path = "user.id")]
///     user: u64,
///     referrer: Option<&'a str>,
/// }
///
/// let mut visits = Json::<Visit<'_>>::projected();
/// let length = visits.decode_with(br#"{"type":"click","user":{"id":3}}"#, |visit| {
///     assert_eq!((visit.user, visit.referrer), (3, None));
///     visit.kind.len()
/// });
/// assert_eq!(length, Ok(5));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which fields to read",
    note = "derive it: #[derive(datum_codec::Projected)]"
)]
pub trait Projected {
    /// This struct with `'b` as its lifetime; itself if it has none.
    type Of<'b>;

    /// The wanted fields, in the order of the struct.
    const FIELDS: &'static [Field];

    /// Builds the struct from the values that a decoder has found for [`FIELDS`](Self::FIELDS).
    ///
    /// # Errors
    /// A required field is missing, or a value does not suit its field's type.
    fn build<'b>(record: &Record<'b>) -> Result<Self::Of<'b>, DecodeError>;
}

/// A [`Projected`] struct that borrows nothing from its record, so that it may leave the decoder.
///
/// Derived along with [`Projected`] for each struct without a lifetime.
#[diagnostic::on_unimplemented(
    message = "`{Self}` borrows from the record, which is gone when `decode` returns",
    note = "use `decode_with`, which lends it to a closure, or give the struct owned fields"
)]
pub trait OwnedProjected: for<'b> Projected<Of<'b> = Self> + Sized + Send + 'static {}

/// One wanted field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub(crate) path: &'static [&'static str],
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    pub(crate) optional: bool,
}

impl Field {
    /// A field of type `T` under `path`, the keys from the outermost object to the value.
    ///
    /// `name` is what errors call it.
    #[must_use]
    pub const fn new<'b, T: FieldType<'b>>(path: &'static [&'static str], name: &'static str) -> Self {
        Self { path, name, kind: T::KIND, optional: T::OPTIONAL }
    }
}

/// What kind of JSON value a field is read from. Taken from another [`FieldType`]'s `KIND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueKind(pub(crate) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unsigned,
    Signed,
    /// An integer of 128 bits, of which only the text is kept.
    Wide,
    Double,
    Single,
    Bool,
    Text,
}

/// A type that a wanted field may have.
///
/// Implement it for a type of your own by way of one that already has it:
///
/// ```
/// use datum_codec::{DecodeReason, FieldType, FieldValue, Json, Projected, ValueKind};
///
/// #[derive(Debug, PartialEq)]
/// enum Level {
///     Low,
///     High,
/// }
///
/// impl<'b> FieldType<'b> for Level {
///     const KIND: ValueKind = <&str>::KIND;
///
///     fn from_value(value: FieldValue<'_, 'b>) -> Result<Self, DecodeReason> {
///         match <&str>::from_value(value)? {
///             "low" => Ok(Self::Low),
///             "high" => Ok(Self::High),
///             _ => Err(DecodeReason::Refused("a level is low or high")),
///         }
///     }
/// }
///
/// #[derive(Debug, PartialEq, Projected)]
/// struct Alarm {
///     level: Level,
/// }
///
/// let mut alarms = Json::<Alarm>::projected();
/// assert_eq!(alarms.decode(br#"{"level":"high"}"#), Ok(Alarm { level: Level::High }));
/// assert!(alarms.decode(br#"{"level":"medium"}"#).is_err());
/// ```
#[diagnostic::on_unimplemented(
    message = "a projected field cannot have the type `{Self}`",
    label = "not readable by projection",
    note = "readable are integers, floats, bool, String, Box<str>, Arc<str>, Bytes, &str, Cow<str>, \
            an Option of these, and types that implement FieldType by way of one of these"
)]
pub trait FieldType<'b>: Sized {
    /// The kind of value read.
    const KIND: ValueKind;

    /// Whether `null`, and a key that is not there, are accepted.
    const OPTIONAL: bool = false;

    /// Converts the value found.
    ///
    /// # Errors
    /// Why the value does not suit the type; [`DecodeReason::Refused`] carries a text of the type's own.
    fn from_value(value: FieldValue<'_, 'b>) -> Result<Self, DecodeReason>;
}

/// A value that a decoder has found for a field, or that there is none.
#[derive(Clone, Copy, Debug)]
pub struct FieldValue<'r, 'b> {
    slot: &'r Slot,
    record: &'r Record<'b>,
}

/// The bytes of one record: borrowed, or shared, in which case [`Bytes`] fields are not copied.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    shared: Option<&'a Bytes>,
}

impl<'a> Input<'a> {
    /// The bytes themselves.
    #[must_use]
    pub const fn as_slice(self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> From<&'a [u8]> for Input<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, shared: None }
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Input<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self { bytes, shared: None }
    }
}

impl<'a> From<&'a Vec<u8>> for Input<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self { bytes, shared: None }
    }
}

impl<'a> From<&'a str> for Input<'a> {
    fn from(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), shared: None }
    }
}

impl<'a> From<&'a Bytes> for Input<'a> {
    fn from(bytes: &'a Bytes) -> Self {
        Self { bytes, shared: Some(bytes) }
    }
}

/// A record whose wanted values have been found; what [`Projected::build`] reads from.
#[derive(Clone, Copy, Debug)]
pub struct Record<'b> {
    pub(crate) input: Input<'b>,
    pub(crate) unescaped: &'b Unescaped,
    pub(crate) slots: &'b [Slot],
    pub(crate) fields: &'static [Field],
}

impl<'b> Record<'b> {
    /// The value of the field that stands at `index` in [`Projected::FIELDS`].
    ///
    /// # Errors
    /// The field is missing and required, or its value does not suit `T`.
    ///
    /// # Panics
    /// If there is no such field.
    #[inline]
    pub fn get<T: FieldType<'b>>(&self, index: usize) -> Result<T, DecodeError> {
        let slot = &self.slots[index];
        match T::from_value(FieldValue { slot, record: self }) {
            Ok(value) => Ok(value),
            Err(reason) => Err(self.refused(index, reason)),
        }
    }

    #[cold]
    #[inline(never)]
    fn refused(&self, index: usize, reason: DecodeReason) -> DecodeError {
        let slot = &self.slots[index];
        let offset = if slot.value == SlotValue::Absent { self.input.bytes.len() } else { slot.start };
        DecodeError::new(reason, offset, Some(self.fields[index].name))
    }
}

/// Where a decoder leaves the value of one wanted field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot {
    /// Where the value begins in the record; for a string, behind the quote.
    pub(crate) start: usize,
    pub(crate) value: SlotValue,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SlotValue {
    Absent,
    Unsigned(u64),
    Signed(i64),
    Wide {
        end: usize,
    },
    Double(f64),
    Single(f32),
    Bool(bool),
    Text {
        end: usize,
    },
    /// The index of a text in [`Unescaped`].
    Unescaped(usize),
}

impl Slot {
    pub(crate) const ABSENT: Self = Self { start: 0, value: SlotValue::Absent };
}

/// The texts of one record that had escapes in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unescaped {
    pub(crate) bytes: Vec<u8>,
    pub(crate) texts: Vec<Range<usize>>,
}

impl Unescaped {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.texts.clear();
    }
}

impl<'b> FieldValue<'_, 'b> {
    /// Where the text lies; the second part says whether that is in the record itself.
    #[inline]
    fn text_bytes(self) -> Result<(&'b [u8], Option<Range<usize>>), DecodeReason> {
        match self.slot.value {
            SlotValue::Text { end } => {
                let range = self.slot.start..end;
                Ok((&self.record.input.bytes[range.clone()], Some(range)))
            }
            SlotValue::Unescaped(index) => {
                let range = self.record.unescaped.texts[index].clone();
                Ok((&self.record.unescaped.bytes[range], None))
            }
            _ => Err(DecodeReason::MissingField),
        }
    }
}

macro_rules! integers {
    ($kind:ident: $($type:ty)*) => {$(
        impl FieldType<'_> for $type {
            const KIND: ValueKind = ValueKind(Kind::$kind);

            #[inline]
            fn from_value(value: FieldValue<'_, '_>) -> Result<Self, DecodeReason> {
                match value.slot.value {
                    SlotValue::$kind(found) => found.try_into().map_err(|_| DecodeReason::NumberOutOfRange),
                    _ => Err(DecodeReason::MissingField),
                }
            }
        }
    )*};
}

integers!(Unsigned: u8 u16 u32 usize);
integers!(Signed: i8 i16 i32 isize);

macro_rules! plain_values {
    ($($kind:ident: $type:ty)*) => {$(
        impl FieldType<'_> for $type {
            const KIND: ValueKind = ValueKind(Kind::$kind);

            #[inline]
            fn from_value(value: FieldValue<'_, '_>) -> Result<Self, DecodeReason> {
                match value.slot.value {
                    SlotValue::$kind(found) => Ok(found),
                    _ => Err(DecodeReason::MissingField),
                }
            }
        }
    )*};
}

plain_values!(Unsigned: u64 Signed: i64 Double: f64 Single: f32 Bool: bool);

macro_rules! wide_integers {
    ($($type:ty)*) => {$(
        impl FieldType<'_> for $type {
            const KIND: ValueKind = ValueKind(Kind::Wide);

            fn from_value(value: FieldValue<'_, '_>) -> Result<Self, DecodeReason> {
                let SlotValue::Wide { end } = value.slot.value else { return Err(DecodeReason::MissingField) };
                std::str::from_utf8(&value.record.input.bytes[value.slot.start..end])
                    .ok()
                    .and_then(|digits| digits.parse().ok())
                    .ok_or(DecodeReason::NumberOutOfRange)
            }
        }
    )*};
}

wide_integers!(u128 i128);

impl<'b> FieldType<'b> for &'b str {
    const KIND: ValueKind = ValueKind(Kind::Text);

    #[inline]
    fn from_value(value: FieldValue<'_, 'b>) -> Result<Self, DecodeReason> {
        let (bytes, _) = value.text_bytes()?;
        text_of(bytes).map_err(|_| DecodeReason::InvalidUtf8)
    }
}

macro_rules! texts {
    ($($type:ty)*) => {$(
        impl<'b> FieldType<'b> for $type {
            const KIND: ValueKind = ValueKind(Kind::Text);

            #[inline]
            fn from_value(value: FieldValue<'_, 'b>) -> Result<Self, DecodeReason> {
                <&'b str>::from_value(value).map(Self::from)
            }
        }
    )*};
}

texts!(String Box<str> Arc<str> Cow<'b, str> CompactString);

impl<'b> FieldType<'b> for Bytes {
    const KIND: ValueKind = ValueKind(Kind::Text);

    fn from_value(value: FieldValue<'_, 'b>) -> Result<Self, DecodeReason> {
        let (bytes, range) = value.text_bytes()?;
        std::str::from_utf8(bytes).map_err(|_| DecodeReason::InvalidUtf8)?;
        Ok(match (value.record.input.shared, range) {
            (Some(shared), Some(range)) => shared.slice(range),
            _ => Self::copy_from_slice(bytes),
        })
    }
}

impl<'b, T: FieldType<'b>> FieldType<'b> for Option<T> {
    const KIND: ValueKind = T::KIND;
    const OPTIONAL: bool = true;

    #[inline]
    fn from_value(value: FieldValue<'_, 'b>) -> Result<Self, DecodeReason> {
        match value.slot.value {
            SlotValue::Absent => Ok(None),
            _ => T::from_value(value).map(Some),
        }
    }
}
