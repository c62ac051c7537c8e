//! Writes the protocol's primitive types into a growing buffer.
//!
//! The mirror of [`super::reader`]: a [`Writer`] is told once whether the message is flexible (KIP-482), and its `string`,
//! `bytes` and `array` follow. Writing fails only when a value is too long for its length prefix; sizes known to fit are
//! written by calls that cannot fail.

use crate::wire::WireError;
use crate::wire::varint;

/// Appends to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    flexible: bool,
}

impl<'a> Writer<'a> {
    /// A writer that appends to `out`.
    #[must_use]
    pub fn new(out: &'a mut Vec<u8>, flexible: bool) -> Self {
        Self { out, flexible }
    }

    /// Length of the buffer, earlier content included.
    #[must_use]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// Whether the message uses the flexible encoding.
    #[must_use]
    pub fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        self.out.push(u8::from(value));
    }

    /// A signed byte.
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// A 16-bit integer.
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// A 32-bit integer.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// A UUID, from its 16 bytes.
    pub fn uuid(&mut self, value: &[u8; 16]) {
        self.raw(value);
    }

    /// An unsigned varint.
    pub fn unsigned_varint(&mut self, value: u32) {
        varint::put_unsigned(self.out, value);
    }

    /// A string.
    ///
    /// # Errors
    /// [`WireError::TooLong`] above 32,767 bytes (classic) or 4 GiB (flexible).
    pub fn string(&mut self, what: &'static str, value: &str) -> Result<(), WireError> {
        self.nullable_string(what, Some(value))
    }

    /// A string or null.
    ///
    /// # Errors
    /// As [`Writer::string`].
    pub fn nullable_string(&mut self, what: &'static str, value: Option<&str>) -> Result<(), WireError> {
        if self.flexible {
            self.compact_length(what, value.map(str::len))?;
        } else {
            self.i16(match value {
                None => -1,
                Some(text) => {
                    i16::try_from(text.len()).map_err(|_| too_long(what, text.len(), i16::MAX as usize))?
                }
            });
        }
        self.raw(value.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// A blob.
    ///
    /// # Errors
    /// [`WireError::TooLong`] above 2 GiB (classic) or 4 GiB (flexible).
    pub fn bytes(&mut self, what: &'static str, value: &[u8]) -> Result<(), WireError> {
        self.nullable_bytes(what, Some(value))
    }

    /// A blob or null.
    ///
    /// # Errors
    /// As [`Writer::bytes`].
    pub fn nullable_bytes(&mut self, what: &'static str, value: Option<&[u8]>) -> Result<(), WireError> {
        self.length(what, value.map(<[u8]>::len))?;
        self.raw(value.unwrap_or_default());
        Ok(())
    }

    /// The count of an array; its elements follow.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn array(&mut self, what: &'static str, count: usize) -> Result<(), WireError> {
        self.length(what, Some(count))
    }

    /// The count of an array, or null.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn nullable_array(&mut self, what: &'static str, count: Option<usize>) -> Result<(), WireError> {
        self.length(what, count)
    }

    /// The length prefix of a blob or array; for content that is sent from elsewhere.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn length(&mut self, what: &'static str, length: Option<usize>) -> Result<(), WireError> {
        if self.flexible {
            return self.compact_length(what, length);
        }
        self.i32(match length {
            None => -1,
            Some(length) => i32::try_from(length).map_err(|_| too_long(what, length, i32::MAX as usize))?,
        });
        Ok(())
    }

    fn compact_length(&mut self, what: &'static str, length: Option<usize>) -> Result<(), WireError> {
        let raw = match length {
            None => 0,
            Some(length) => u32::try_from(length)
                .ok()
                .and_then(|length| length.checked_add(1))
                .ok_or_else(|| too_long(what, length, u32::MAX as usize - 1))?,
        };
        self.unsigned_varint(raw);
        Ok(())
    }

    /// Ends a structure that has no tagged fields set; writes nothing in the classic encoding.
    pub fn no_tagged_fields(&mut self) {
        if self.flexible {
            self.out.push(0);
        }
    }

    /// Ends a structure with the given tagged fields (tag and encoded content), which must ascend by tag.
    ///
    /// The classic encoding has no place for them and drops them, which is what every tagged field must bear.
    ///
    /// # Errors
    /// [`WireError::TooLong`], or [`WireError::TagOrder`] if the tags do not ascend.
    pub fn tagged_fields(&mut self, what: &'static str, fields: &[(u32, &[u8])]) -> Result<(), WireError> {
        if !self.flexible {
            return Ok(());
        }
        if let Some(pair) = fields.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(WireError::TagOrder { what, tag: pair[1].0, previous: pair[0].0 });
        }
        let size = |n: usize| u32::try_from(n).map_err(|_| too_long(what, n, u32::MAX as usize));
        self.unsigned_varint(size(fields.len())?);
        for (tag, content) in fields {
            self.unsigned_varint(*tag);
            self.unsigned_varint(size(content.len())?);
            self.raw(content);
        }
        Ok(())
    }
}

fn too_long(what: &'static str, length: usize, max: usize) -> WireError {
    WireError::TooLong { what, length, max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reader::Reader;
    use proptest::prelude::*;

    #[test]
    fn too_long_for_the_prefix() {
        let long = "x".repeat(40_000);
        let mut out = Vec::new();
        assert_eq!(
            Writer::new(&mut out, false).string("s", &long),
            Err(WireError::TooLong { what: "s", length: 40_000, max: 32_767 })
        );
        let mut out = Vec::new();
        assert_eq!(Writer::new(&mut out, true).string("s", &long), Ok(()));
    }

    #[test]
    fn tags_must_ascend() {
        let mut out = Vec::new();
        let fields: [(u32, &[u8]); 2] = [(1, b"a"), (1, b"b")];
        assert!(Writer::new(&mut out, true).tagged_fields("m", &fields).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(flexible: bool, text: Option<String>, blob: Option<Vec<u8>>, number: i64, flag: bool, tag: u32) {
            let mut out = Vec::new();
            let mut w = Writer::new(&mut out, flexible);
            w.nullable_string("s", text.as_deref()).unwrap();
            w.nullable_bytes("b", blob.as_deref()).unwrap();
            w.i64(number);
            w.bool(flag);
            w.array("a", 2).unwrap();
            w.i16(1);
            w.i16(2);
            w.tagged_fields("t", &[(tag, b"xyz")]).unwrap();

            let mut r = Reader::new(&out, flexible);
            prop_assert_eq!(r.nullable_string("s").unwrap(), text.as_deref());
            prop_assert_eq!(r.nullable_bytes("b").unwrap(), blob.as_deref());
            prop_assert_eq!(r.i64("n").unwrap(), number);
            prop_assert_eq!(r.bool("f").unwrap(), flag);
            prop_assert_eq!(r.array("a", 2).unwrap(), 2);
            prop_assert_eq!((r.i16("x").unwrap(), r.i16("x").unwrap()), (1, 2));
            let mut seen = Vec::new();
            r.tagged_fields("t", |tag, content| {
                seen.push((tag, content.take("t", content.left())?.to_vec()));
                Ok(true)
            }).unwrap();
            prop_assert_eq!(seen.len(), usize::from(flexible));
            prop_assert!(seen.iter().all(|s| s == &(tag, b"xyz".to_vec())));
            r.finish("m").unwrap();
        }
    }
}
