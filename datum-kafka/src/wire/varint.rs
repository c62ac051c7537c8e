//! Variable-length integers: seven bits per byte, least significant first, the top bit says that another byte follows.
//!
//! Records use zigzag-signed ones (`varint`, `varlong`), flexible messages unsigned ones. Reading takes a slice and returns
//! the value with the number of bytes it took; `None` means that the slice ended, or that the integer did not end, within
//! the largest legal size (5 bytes for 32 bits, 10 for 64), or that it carries more bits than its type. The encoding need
//! not be the shortest one.
//!
//! Source: the protocol guide's primitive types, which follow Google's Protocol Buffers.

/// Longest encoding of 32 bits.
pub const MAX_VARINT_BYTES: usize = 5;
/// Longest encoding of 64 bits.
pub const MAX_VARLONG_BYTES: usize = 10;

/// Reads an unsigned 32-bit integer from the start of `bytes`.
///
/// One and two bytes, which nearly all lengths and deltas of a record take, are read in line.
#[inline]
#[must_use]
pub fn read_unsigned(bytes: &[u8]) -> Option<(u32, usize)> {
    match *bytes {
        [first, ..] if first < 0x80 => Some((u32::from(first), 1)),
        [first, second, ..] if second < 0x80 => Some((u32::from(first & 0x7f) | u32::from(second) << 7, 2)),
        _ => read_longer_unsigned(bytes),
    }
}

#[inline(never)]
fn read_longer_unsigned(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(MAX_VARINT_BYTES) {
        if i == 4 && byte > 0x0f {
            return None;
        }
        value |= u32::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((value, i + 1));
        }
    }
    None
}

/// Reads an unsigned 64-bit integer from the start of `bytes`.
#[inline]
#[must_use]
pub fn read_unsigned_long(bytes: &[u8]) -> Option<(u64, usize)> {
    match *bytes {
        [first, ..] if first < 0x80 => Some((u64::from(first), 1)),
        [first, second, ..] if second < 0x80 => Some((u64::from(first & 0x7f) | u64::from(second) << 7, 2)),
        _ => read_longer_unsigned_long(bytes),
    }
}

#[inline(never)]
fn read_longer_unsigned_long(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(MAX_VARLONG_BYTES) {
        if i == 9 && byte > 0x01 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((value, i + 1));
        }
    }
    None
}

/// Reads a zigzag-signed 32-bit integer from the start of `bytes`.
#[inline]
#[must_use]
pub fn read_varint(bytes: &[u8]) -> Option<(i32, usize)> {
    read_unsigned(bytes).map(|(raw, len)| (unzigzag(raw), len))
}

/// Reads a zigzag-signed 64-bit integer from the start of `bytes`.
#[inline]
#[must_use]
pub fn read_varlong(bytes: &[u8]) -> Option<(i64, usize)> {
    read_unsigned_long(bytes).map(|(raw, len)| (unzigzag_long(raw), len))
}

/// Appends an unsigned 32-bit integer.
#[inline]
pub fn put_unsigned(out: &mut Vec<u8>, value: u32) {
    put_unsigned_long(out, u64::from(value));
}

/// Appends an unsigned 64-bit integer.
#[inline]
pub fn put_unsigned_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Appends a zigzag-signed 32-bit integer.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_unsigned(out, zigzag(value));
}

/// Appends a zigzag-signed 64-bit integer.
#[inline]
pub fn put_varlong(out: &mut Vec<u8>, value: i64) {
    put_unsigned_long(out, zigzag_long(value));
}

/// How many bytes the unsigned integer takes.
#[inline]
#[must_use]
pub fn unsigned_len(value: u32) -> usize {
    unsigned_long_len(u64::from(value))
}

/// How many bytes the unsigned 64-bit integer takes.
#[inline]
#[must_use]
pub fn unsigned_long_len(value: u64) -> usize {
    // Zero takes one byte like one does, hence the `| 1`.
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// How many bytes the zigzag-signed integer takes.
#[inline]
#[must_use]
pub fn varint_len(value: i32) -> usize {
    unsigned_len(zigzag(value))
}

/// How many bytes the zigzag-signed 64-bit integer takes.
#[inline]
#[must_use]
pub fn varlong_len(value: i64) -> usize {
    unsigned_long_len(zigzag_long(value))
}

#[inline]
fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

#[inline]
fn zigzag_long(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[inline]
fn unzigzag(raw: u32) -> i32 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

#[inline]
fn unzigzag_long(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

#[inline]
fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn long(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varlong(&mut out, value);
        out
    }

    #[test]
    fn known_encodings() {
        assert_eq!(long(0), [0]);
        assert_eq!(long(-1), [1]);
        assert_eq!(long(63), [0x7e]);
        assert_eq!(long(64), [0x80, 0x01]);
        assert_eq!(long(-64), [0x7f]);
        assert_eq!(long(i64::MAX), [0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(long(i64::MIN), [0xff, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(read_varint(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Some((i32::MIN, 5)));
    }

    #[test]
    fn endless_oversized_and_empty_are_refused() {
        assert_eq!(read_varint(&[]), None);
        assert_eq!(read_varint(&[0x80]), None);
        assert_eq!(read_varint(&[0x80; 6]), None);
        assert_eq!(read_unsigned(&[0xff, 0xff, 0xff, 0xff, 0x1f]), None, "33 bits");
        assert_eq!(read_varlong(&[0x80; 11]), None);
        assert_eq!(read_varlong(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]), None, "65 bits");
    }

    #[test]
    fn longer_than_needed_is_read() {
        assert_eq!(read_unsigned(&[0x81, 0x00]), Some((1, 2)));
    }

    proptest! {
        #[test]
        fn round_trips(value: i64, narrow: i32, unsigned: u32) {
            let bytes = long(value);
            prop_assert_eq!(read_varlong(&bytes), Some((value, bytes.len())));
            prop_assert_eq!(varlong_len(value), bytes.len());
            let mut bytes = Vec::new();
            put_varint(&mut bytes, narrow);
            prop_assert_eq!(read_varint(&bytes), Some((narrow, bytes.len())));
            prop_assert_eq!(varint_len(narrow), bytes.len());
            let mut bytes = Vec::new();
            put_unsigned(&mut bytes, unsigned);
            prop_assert_eq!(read_unsigned(&bytes), Some((unsigned, bytes.len())));
            prop_assert_eq!(unsigned_len(unsigned), bytes.len());
        }

        #[test]
        fn any_bytes_never_panic(bytes: Vec<u8>) {
            for len in [read_varint(&bytes).map(|r| r.1), read_varlong(&bytes).map(|r| r.1)].into_iter().flatten() {
                prop_assert!(len <= bytes.len());
            }
        }
    }
}
