//! Reading the value of a wanted field into its slot.

use super::fault::Fault;
use super::number::{read_f32, read_f64, read_signed, read_unsigned, scan_wide};
use super::skip::expect_word;
use super::text::{scan_string, unescape};
use crate::error::DecodeReason;
use crate::projected::{Field, Kind, Slot, SlotValue, Unescaped};

/// Reads the value at `at`, which is not white space, into `slot`; says where it ends.
#[inline]
pub(super) fn read_value(
    input: &[u8],
    at: usize,
    field: &Field,
    slot: &mut Slot,
    unescaped: &mut Unescaped,
) -> Result<usize, Fault> {
    if field.optional && input.get(at) == Some(&b'n') {
        *slot = Slot::ABSENT;
        return expect_word(input, at, b"null");
    }
    let (start, value, end) = match field.kind.0 {
        Kind::Double => {
            let (number, end) = read_f64(input, at)?;
            (at, SlotValue::Double(number), end)
        }
        Kind::Unsigned => {
            let (number, end) = read_unsigned(input, at)?;
            (at, SlotValue::Unsigned(number), end)
        }
        Kind::Signed => {
            let (number, end) = read_signed(input, at)?;
            (at, SlotValue::Signed(number), end)
        }
        Kind::Text => {
            let (text, end) = read_text(input, at, unescaped)?;
            (at + 1, text, end)
        }
        Kind::Bool => {
            let (truth, end) = read_bool(input, at)?;
            (at, SlotValue::Bool(truth), end)
        }
        Kind::Single => {
            let (number, end) = read_f32(input, at)?;
            (at, SlotValue::Single(number), end)
        }
        Kind::Wide => {
            let end = scan_wide(input, at)?;
            (at, SlotValue::Wide { end }, end)
        }
    };
    *slot = Slot { start, value };
    Ok(end)
}

#[inline]
fn read_text(input: &[u8], at: usize, unescaped: &mut Unescaped) -> Result<(SlotValue, usize), Fault> {
    match input.get(at) {
        Some(b'"') => {}
        Some(_) => return Err(Fault::new(DecodeReason::ExpectedString, at)),
        None => return Err(Fault::end(input)),
    }
    let token = scan_string(input, at + 1)?;
    if token.escaped {
        let text = read_escaped(input, at + 1, token.end - 1, unescaped)?;
        return Ok((text, token.end));
    }
    // Whether it is UTF-8 is seen when it is made a string, once.
    Ok((SlotValue::Text { end: token.end - 1 }, token.end))
}

#[cold]
fn read_escaped(
    input: &[u8],
    start: usize,
    end: usize,
    unescaped: &mut Unescaped,
) -> Result<SlotValue, Fault> {
    let from = unescaped.bytes.len();
    unescape(input, start, end, &mut unescaped.bytes)?;
    if std::str::from_utf8(&unescaped.bytes[from..]).is_err() {
        return Err(Fault::new(DecodeReason::InvalidUtf8, start));
    }
    unescaped.texts.push(from..unescaped.bytes.len());
    Ok(SlotValue::Unescaped(unescaped.texts.len() - 1))
}

fn read_bool(input: &[u8], at: usize) -> Result<(bool, usize), Fault> {
    match input.get(at) {
        Some(b't') => Ok((true, expect_word(input, at, b"true")?)),
        Some(b'f') => Ok((false, expect_word(input, at, b"false")?)),
        Some(_) => Err(Fault::new(DecodeReason::ExpectedBool, at)),
        None => Err(Fault::end(input)),
    }
}
