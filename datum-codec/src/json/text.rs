//! JSON strings: finding their end, and undoing their escapes.
//!
//! A string that nobody wants is only checked for what ends or breaks it: a quote, a backslash with its escape,
//! a control character. Whether it is UTF-8, and whether surrogate escapes pair up, is asked of keys and of wanted
//! strings alone, for only they become text.

use super::fault::Fault;
use crate::error::DecodeReason;

/// A string whose end has been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StringToken {
    /// Just behind the closing quote.
    pub(super) end: usize,
    /// Whether there is an escape in it.
    pub(super) escaped: bool,
}

/// Just behind the string at `at`, if it is one without escapes.
#[inline(always)]
pub(super) fn short_string(input: &[u8], at: usize) -> Option<usize> {
    if input.get(at) != Some(&b'"') {
        return None;
    }
    let special = find_special(input, at + 1);
    (input.get(special) == Some(&b'"')).then_some(special + 1)
}

/// Finds the end of the string whose opening quote stands before `start`.
#[inline]
pub(super) fn scan_string(input: &[u8], start: usize) -> Result<StringToken, Fault> {
    let special = find_special(input, start);
    if input.get(special) == Some(&b'"') {
        return Ok(StringToken { end: special + 1, escaped: false });
    }
    scan_unusual_string(input, special)
}

/// Continues at the first byte that is neither plain text nor the closing quote.
#[cold]
fn scan_unusual_string(input: &[u8], mut at: usize) -> Result<StringToken, Fault> {
    let mut escaped = false;
    loop {
        match input.get(at) {
            Some(b'"') => return Ok(StringToken { end: at + 1, escaped }),
            Some(b'\\') => {
                escaped = true;
                at = skip_escape(input, at + 1)?;
            }
            Some(_) => return Err(Fault::new(DecodeReason::ControlCharacter, at)),
            None => return Err(Fault::end(input)),
        }
        at = find_special(input, at);
    }
}

/// Steps over an escape whose backslash stands before `at`.
fn skip_escape(input: &[u8], at: usize) -> Result<usize, Fault> {
    match input.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => hex_escape(input, at + 1).map(|_| at + 5),
        Some(_) => Err(Fault::new(DecodeReason::InvalidEscape, at)),
        None => Err(Fault::end(input)),
    }
}

fn hex_escape(input: &[u8], at: usize) -> Result<u16, Fault> {
    let Some(digits) = input.get(at..at + 4) else { return Err(Fault::end(input)) };
    let mut value = 0;
    for (i, digit) in digits.iter().enumerate() {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return Err(Fault::new(DecodeReason::InvalidEscape, at + i)),
        };
        value = value * 16 + u16::from(digit);
    }
    Ok(value)
}

/// Appends to `out` what the string between its quotes, `start..end`, stands for.
///
/// The range is one that [`scan_string`] has found. UTF-8 is not looked at here.
pub(super) fn unescape(input: &[u8], start: usize, end: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    let text = &input[..end];
    let mut at = start;
    while let Some(distance) = memchr::memchr(b'\\', &text[at..]) {
        out.extend_from_slice(&text[at..at + distance]);
        at += distance + 1;
        let plain = match text.get(at) {
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let (character, next) = unicode_escape(text, at + 1)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at = next;
                continue;
            }
            Some(itself) => *itself,
            None => return Err(Fault::end(text)),
        };
        out.push(plain);
        at += 1;
    }
    out.extend_from_slice(&text[at..]);
    Ok(())
}

/// The character of a `\u` escape, or of the two of a surrogate pair; `at` is behind the `u`.
fn unicode_escape(text: &[u8], at: usize) -> Result<(char, usize), Fault> {
    let lone = Fault::new(DecodeReason::LoneSurrogate, at);
    let first = hex_escape(text, at)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Ok((character, at + 4));
    }
    if text.get(at + 4..at + 6) != Some(b"\\u") {
        return Err(lone);
    }
    let second = hex_escape(text, at + 6)?;
    let pair = char::decode_utf16([first, second]).next();
    pair.and_then(Result::ok).map(|character| (character, at + 10)).ok_or(lone)
}

/// The first quote, backslash or control character from `at` on; the input's length if there is none.
#[inline(always)]
fn find_special(input: &[u8], mut at: usize) -> usize {
    while let Some(word) = input.get(at..).and_then(<[u8]>::first_chunk) {
        let marks = special_bytes(u64::from_le_bytes(*word));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = input.get(at..).unwrap_or_default();
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20)).map_or(input.len(), |i| at + i)
}

/// Sets the high bit of each byte that is special. Above the lowest one, bits may also be set for bytes that are
/// not, since the subtractions borrow upwards; the lowest is always right.
#[inline(always)]
const fn special_bytes(word: u64) -> u64 {
    // Of a byte below 0x80, each subtraction sets the high bit if it goes below zero; other bytes are never special.
    let control = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (control | quote | backslash) & !word & (ONES << 7)
}

const ONES: u64 = u64::MAX / 255;

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop, proptest};

    use super::{find_special, scan_string, unescape};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn specials_are_found_where_a_plain_search_finds_them(
            bytes in prop::collection::vec(prop::sample::select(vec![
                b'a', 0x1F, 0x20, 0x21, b'"', b'#', b'[', b'\\', b']', 0x7F, 0x80, 0x9F, 0xA2, 0xDC, 0xFF, 0,
            ]), 0..70),
            plain in prop::collection::vec(any::<bool>(), 70),
        ) {
            // Most bytes are made plain, so that runs are long enough to cross words and blocks.
            let bytes: Vec<u8> = bytes.iter().zip(&plain).map(|(b, p)| if *p { b'x' } else { *b }).collect();
            for start in 0..=bytes.len() {
                let expected = bytes[start..]
                    .iter()
                    .position(|b| matches!(b, b'"' | b'\\') || *b < 0x20)
                    .map_or(bytes.len(), |i| start + i);
                assert_eq!(find_special(&bytes, start), expected);
            }
        }
    }

    #[test]
    fn a_string_is_unescaped() {
        let input = br#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00z" tail"#;
        let token = scan_string(input, 1).unwrap();
        assert_eq!((&input[token.end..], token.escaped), (&b" tail"[..], true));
        let mut out = Vec::new();
        unescape(input, 1, token.end - 1, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\"\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600}z");
    }
}
