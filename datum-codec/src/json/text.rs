//! JSON strings: finding their end, and undoing their escapes.
//!
//! A string that nobody wants is only checked for what ends or breaks it: a quote, a backslash with its escape,
//! a control character. Whether it is UTF-8, and whether surrogate escapes pair up, is asked of keys and of wanted
//! strings alone, for only they become text.

use super::fault::Fault;
use super::scan::find_special;
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

#[cfg(test)]
mod tests {
    use super::{scan_string, unescape};

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
