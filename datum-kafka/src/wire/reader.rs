//! Reads the protocol's primitive types from a slice, never past its end.
//!
//! Every read names its field, so that an error says which one was at fault. A count is compared with the bytes that are
//! left (divided by the least size of an element) *before* the caller allocates for it, so a claimed count can never cost
//! more memory than the message itself.
//!
//! Flexible versions (KIP-482) write lengths as unsigned varints plus one and end each structure with tagged fields; the
//! older "classic" encoding uses fixed-size lengths. A [`Reader`] is told once which one the message uses, and its
//! `string`, `bytes` and `array` follow.

use crate::wire::WireError;
use crate::wire::varint;

/// A cursor over a message.
///
/// After an error the position is unspecified; give the message up.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    flexible: bool,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`; `flexible` says whether lengths are compact and structures end with tagged fields.
    #[must_use]
    pub fn new(bytes: &'a [u8], flexible: bool) -> Self {
        Self { bytes, position: 0, flexible }
    }

    /// How many bytes have been read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// How many bytes are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether the message uses the flexible encoding.
    #[must_use]
    pub fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Switches the encoding, for headers whose encoding differs from their message's.
    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer are left.
    pub fn take(&mut self, what: &'static str, len: usize) -> Result<&'a [u8], WireError> {
        let rest = &self.bytes[self.position..];
        let Some(taken) = rest.get(..len) else {
            return Err(WireError::Truncated { what, needed: len, left: rest.len() });
        };
        self.position += len;
        Ok(taken)
    }

    /// Steps over `len` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer are left.
    pub fn skip(&mut self, what: &'static str, len: usize) -> Result<(), WireError> {
        self.take(what, len).map(|_| ())
    }

    fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let rest = &self.bytes[self.position..];
        let Some(taken) = rest.first_chunk::<N>() else {
            return Err(WireError::Truncated { what, needed: N, left: rest.len() });
        };
        self.position += N;
        Ok(*taken)
    }

    /// A boolean; any byte but 0 is true.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn bool(&mut self, what: &'static str) -> Result<bool, WireError> {
        Ok(self.fixed::<1>(what)?[0] != 0)
    }

    /// A signed byte.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn i8(&mut self, what: &'static str) -> Result<i8, WireError> {
        self.fixed(what).map(i8::from_be_bytes)
    }

    /// A 16-bit integer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn i16(&mut self, what: &'static str) -> Result<i16, WireError> {
        self.fixed(what).map(i16::from_be_bytes)
    }

    /// A 32-bit integer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn i32(&mut self, what: &'static str) -> Result<i32, WireError> {
        self.fixed(what).map(i32::from_be_bytes)
    }

    /// A 64-bit integer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn i64(&mut self, what: &'static str) -> Result<i64, WireError> {
        self.fixed(what).map(i64::from_be_bytes)
    }

    /// A UUID, as its 16 bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn uuid(&mut self, what: &'static str) -> Result<[u8; 16], WireError> {
        self.fixed(what)
    }

    /// An unsigned varint.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::VarintTooLong`].
    pub fn unsigned_varint(&mut self, what: &'static str) -> Result<u32, WireError> {
        let rest = &self.bytes[self.position..];
        let Some((value, len)) = varint::read_unsigned(rest) else {
            return Err(varint_error(what, rest, varint::MAX_VARINT_BYTES));
        };
        self.position += len;
        Ok(value)
    }

    /// A string, slice of the message.
    ///
    /// # Errors
    /// [`WireError::UnexpectedNull`] if it is null, else as [`Reader::nullable_string`].
    pub fn string(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        self.nullable_string(what)?.ok_or(WireError::UnexpectedNull { what })
    }

    /// A string or null.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::NegativeLength`] or [`WireError::NotUtf8`].
    pub fn nullable_string(&mut self, what: &'static str) -> Result<Option<&'a str>, WireError> {
        let Some(len) = self.string_length(what)? else { return Ok(None) };
        let raw = self.take(what, len)?;
        std::str::from_utf8(raw).map(Some).map_err(|_| WireError::NotUtf8 { what })
    }

    fn string_length(&mut self, what: &'static str) -> Result<Option<usize>, WireError> {
        if self.flexible {
            return self.compact_length(what);
        }
        nullable_length(what, i64::from(self.i16(what)?))
    }

    /// A blob, slice of the message.
    ///
    /// # Errors
    /// [`WireError::UnexpectedNull`] if it is null, else as [`Reader::nullable_bytes`].
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], WireError> {
        self.nullable_bytes(what)?.ok_or(WireError::UnexpectedNull { what })
    }

    /// A blob or null.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::NegativeLength`].
    pub fn nullable_bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, WireError> {
        match self.length(what)? {
            Some(len) => self.take(what, len).map(Some),
            None => Ok(None),
        }
    }

    /// An array's count, checked: at least `min_element` bytes per element are left.
    ///
    /// # Errors
    /// [`WireError::UnexpectedNull`] if the array is null, else as [`Reader::nullable_array`].
    pub fn array(&mut self, what: &'static str, min_element: usize) -> Result<usize, WireError> {
        self.nullable_array(what, min_element)?.ok_or(WireError::UnexpectedNull { what })
    }

    /// An array's count or null, checked: at least `min_element` bytes per element (at least 1) are left.
    ///
    /// # Errors
    /// [`WireError::CountExceedsBytes`], [`WireError::NegativeLength`] or [`WireError::Truncated`].
    pub fn nullable_array(
        &mut self,
        what: &'static str,
        min_element: usize,
    ) -> Result<Option<usize>, WireError> {
        let Some(count) = self.length(what)? else { return Ok(None) };
        let left = self.left();
        if count > left / min_element.max(1) {
            return Err(WireError::CountExceedsBytes { what, count: count as u64, left });
        }
        Ok(Some(count))
    }

    /// The length prefix of a blob or array: 32 bits, or compact.
    fn length(&mut self, what: &'static str) -> Result<Option<usize>, WireError> {
        if self.flexible {
            return self.compact_length(what);
        }
        nullable_length(what, i64::from(self.i32(what)?))
    }

    fn compact_length(&mut self, what: &'static str) -> Result<Option<usize>, WireError> {
        let raw = self.unsigned_varint(what)?;
        Ok(raw.checked_sub(1).map(|len| len as usize))
    }

    /// The tagged fields at the end of a structure; nothing in the classic encoding.
    ///
    /// `field` gets each tag with a reader over exactly its content, returns whether it knows the tag, and must then
    /// have read all of it. Unknown tags are skipped, as KIP-482 asks.
    ///
    /// # Errors
    /// [`WireError::TagOrder`], [`WireError::TagSize`], [`WireError::Truncated`], or what `field` returns.
    pub fn tagged_fields(
        &mut self,
        what: &'static str,
        mut field: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, WireError>,
    ) -> Result<(), WireError> {
        if !self.flexible {
            return Ok(());
        }
        let count = self.unsigned_varint(what)?;
        let mut previous = None;
        for _ in 0..count {
            let tag = self.unsigned_varint(what)?;
            if let Some(previous) = previous.filter(|&previous| previous >= tag) {
                return Err(WireError::TagOrder { what, tag, previous });
            }
            previous = Some(tag);
            let size = self.unsigned_varint(what)? as usize;
            let mut content = Reader::new(self.take(what, size)?, true);
            let known = field(tag, &mut content)?;
            if known && content.left() > 0 {
                return Err(WireError::TagSize { what, tag, stated: size, actual: content.position() });
            }
        }
        Ok(())
    }

    /// The tagged fields at the end of a structure, all skipped.
    ///
    /// # Errors
    /// As [`Reader::tagged_fields`].
    pub fn skip_tagged_fields(&mut self, what: &'static str) -> Result<(), WireError> {
        self.tagged_fields(what, |_, _| Ok(false))
    }

    /// Says that the message must end here.
    ///
    /// # Errors
    /// [`WireError::TrailingBytes`].
    pub fn finish(&self, what: &'static str) -> Result<(), WireError> {
        match self.left() {
            0 => Ok(()),
            left => Err(WireError::TrailingBytes { what, left }),
        }
    }
}

fn nullable_length(what: &'static str, length: i64) -> Result<Option<usize>, WireError> {
    match length {
        -1 => Ok(None),
        _ => usize::try_from(length).map(Some).map_err(|_| WireError::NegativeLength { what, length }),
    }
}

fn varint_error(what: &'static str, rest: &[u8], max_bytes: usize) -> WireError {
    let ends = rest.iter().take(max_bytes).any(|b| *b < 0x80);
    if rest.len() < max_bytes && !ends {
        WireError::Truncated { what, needed: rest.len() + 1, left: rest.len() }
    } else {
        WireError::VarintTooLong { what, max_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classic_and_compact_strings() {
        let mut classic = Reader::new(&[0, 2, b'h', b'i', 0xff, 0xff], false);
        assert_eq!(classic.string("s"), Ok("hi"));
        assert_eq!(classic.nullable_string("s"), Ok(None));
        let mut compact = Reader::new(&[3, b'h', b'i', 0], true);
        assert_eq!(compact.string("s"), Ok("hi"));
        assert_eq!(compact.string("s"), Err(WireError::UnexpectedNull { what: "s" }));
    }

    #[test]
    fn counts_are_bounded_by_the_bytes_left() {
        let bomb = [0x7f, 0xff, 0xff, 0xff, 1, 2, 3, 4];
        assert_eq!(
            Reader::new(&bomb, false).array("topics", 1),
            Err(WireError::CountExceedsBytes { what: "topics", count: 0x7fff_ffff, left: 4 })
        );
        let three = [0, 0, 0, 3, 1, 2, 3, 4, 5];
        assert_eq!(Reader::new(&three, false).array("topics", 1), Ok(3));
        assert!(Reader::new(&three, false).array("topics", 2).is_err());
        assert_eq!(
            Reader::new(&[0xff, 0xff, 0xff, 0xfe], false).array("topics", 1),
            Err(WireError::NegativeLength { what: "topics", length: -2 })
        );
    }

    #[test]
    fn tagged_fields_ascend_and_fill_their_size() {
        let known = |tag: u32, r: &mut Reader<'_>| match tag {
            0 => r.i16("leader").map(|_| true),
            _ => Ok(false),
        };
        // Tags 0 (two bytes, known) and 7 (one byte, unknown), then a byte that is not theirs.
        let mut reader = Reader::new(&[2, 0, 2, 0, 9, 7, 1, 0xaa, 0xbb], true);
        assert_eq!(reader.tagged_fields("m", known), Ok(()));
        assert_eq!(reader.left(), 1);
        assert_eq!(
            Reader::new(&[2, 7, 0, 7, 0], true).tagged_fields("m", known),
            Err(WireError::TagOrder { what: "m", tag: 7, previous: 7 })
        );
        assert_eq!(
            Reader::new(&[1, 0, 3, 0, 9, 9], true).tagged_fields("m", known),
            Err(WireError::TagSize { what: "m", tag: 0, stated: 3, actual: 2 })
        );
        assert!(Reader::new(&[1, 0, 1, 0], true).tagged_fields("m", known).is_err());
    }

    #[test]
    fn the_end_is_checked() {
        assert_eq!(
            Reader::new(&[1], false).i16("x"),
            Err(WireError::Truncated { what: "x", needed: 2, left: 1 })
        );
        assert_eq!(Reader::new(&[1], true).finish("m"), Err(WireError::TrailingBytes { what: "m", left: 1 }));
        assert_eq!(
            Reader::new(&[0x80], true).unsigned_varint("v"),
            Err(WireError::Truncated { what: "v", needed: 2, left: 1 })
        );
        assert_eq!(
            Reader::new(&[0xff; 9], true).unsigned_varint("v"),
            Err(WireError::VarintTooLong { what: "v", max_bytes: 5 })
        );
    }

    proptest! {
        #[test]
        fn random_bytes_never_read_past_the_end(bytes: Vec<u8>, flexible: bool) {
            let mut reader = Reader::new(&bytes, flexible);
            while reader.left() > 0 {
                let before = reader.position();
                let ok = reader.nullable_string("s").is_ok()
                    && reader.nullable_bytes("b").is_ok()
                    && reader.nullable_array("a", 3).is_ok_and(|n| n.unwrap_or(0) * 3 <= bytes.len())
                    && reader.skip_tagged_fields("t").is_ok();
                prop_assert!(reader.position() <= bytes.len());
                if !ok || reader.position() == before { break; }
            }
        }
    }
}
