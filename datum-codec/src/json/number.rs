//! JSON numbers: their grammar, and their exact values.
//!
//! Each reader first tries a short way that looks at eight digits at a time and covers what records mostly hold;
//! what it does not cover goes the long way, over the grammar and the standard library's parser. Both give the same
//! values: floats are correctly rounded, integers are in range or refused.

use super::fault::Fault;
use crate::error::DecodeReason;

/// A number whose end has been found and whose grammar is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberToken {
    pub(super) end: usize,
    /// No fraction and no exponent.
    integer: bool,
}

/// Steps over the number at `at`, of which only the grammar is checked.
#[inline]
pub(super) fn scan_number(input: &[u8], at: usize) -> Result<NumberToken, Fault> {
    let first = at + usize::from(input.get(at) == Some(&b'-'));
    let mut end = first + digit_run(input, first);
    if end == first {
        return Err(missing_digit(input, end));
    }
    if input[first] == b'0' && end > first + 1 {
        return Err(Fault::new(DecodeReason::InvalidNumber, first + 1));
    }
    let mut integer = true;
    if input.get(end) == Some(&b'.') {
        integer = false;
        end = some_digits(input, end + 1)?;
    }
    if let Some(b'e' | b'E') = input.get(end) {
        integer = false;
        let sign = usize::from(matches!(input.get(end + 1), Some(b'+' | b'-')));
        end = some_digits(input, end + 1 + sign)?;
    }
    Ok(NumberToken { end, integer })
}

fn some_digits(input: &[u8], at: usize) -> Result<usize, Fault> {
    match digit_run(input, at) {
        0 => Err(missing_digit(input, at)),
        count => Ok(at + count),
    }
}

#[cold]
fn missing_digit(input: &[u8], at: usize) -> Fault {
    if at < input.len() { Fault::new(DecodeReason::InvalidNumber, at) } else { Fault::end(input) }
}

/// How many digits stand at `at`.
#[inline]
fn digit_run(input: &[u8], at: usize) -> usize {
    let mut count = 0;
    while let Some(word) = eight_bytes(input, at + count) {
        let digits = leading_digits(word);
        count += digits as usize;
        if digits < 8 {
            return count;
        }
    }
    let rest = input.get(at + count..).unwrap_or_default();
    count + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// An unsigned integer of at most 64 bits.
#[inline]
pub(super) fn read_unsigned(input: &[u8], at: usize) -> Result<(u64, usize), Fault> {
    match short_unsigned(input, at) {
        Some(found) => Ok(found),
        None => long_integer(input, at),
    }
}

/// A signed integer of at most 64 bits.
#[inline]
pub(super) fn read_signed(input: &[u8], at: usize) -> Result<(i64, usize), Fault> {
    let negative = input.get(at) == Some(&b'-');
    match short_unsigned(input, at + usize::from(negative)) {
        Some((value, end)) if !(negative && value == 0) => {
            // At most fifteen digits, so that neither conversion can fail.
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            Ok((if negative { -value } else { value }, end))
        }
        _ => long_integer(input, at),
    }
}

/// Finds the end of an integer of 128 bits, which its type parses. Other than shorter ones, it may be written `-0`.
pub(super) fn scan_wide(input: &[u8], at: usize) -> Result<usize, Fault> {
    let token = expect_number(input, at)?;
    if !token.integer {
        return Err(Fault::new(DecodeReason::ExpectedInteger, at));
    }
    Ok(token.end)
}

/// A float of 64 bits, correctly rounded; one that rounds to infinity is refused.
#[inline]
pub(super) fn read_f64(input: &[u8], at: usize) -> Result<(f64, usize), Fault> {
    match short_f64(input, at) {
        Some(found) => Ok(found),
        None => long_f64(input, at),
    }
}

#[cold]
fn long_f64(input: &[u8], at: usize) -> Result<(f64, usize), Fault> {
    let (value, end) = parse_as::<f64>(input, at, expect_number(input, at)?)?;
    if value.is_infinite() {
        return Err(Fault::new(DecodeReason::NumberOutOfRange, at));
    }
    Ok((value, end))
}

/// A float of 32 bits, rounded once, from the text; one that rounds to infinity is refused.
pub(super) fn read_f32(input: &[u8], at: usize) -> Result<(f32, usize), Fault> {
    let (value, end) = parse_as::<f32>(input, at, expect_number(input, at)?)?;
    if value.is_infinite() {
        return Err(Fault::new(DecodeReason::NumberOutOfRange, at));
    }
    Ok((value, end))
}

#[cold]
fn long_integer<T: std::str::FromStr>(input: &[u8], at: usize) -> Result<(T, usize), Fault> {
    let token = expect_number(input, at)?;
    if !token.integer || &input[at..token.end] == b"-0" {
        return Err(Fault::new(DecodeReason::ExpectedInteger, at));
    }
    parse_as(input, at, token)
}

fn expect_number(input: &[u8], at: usize) -> Result<NumberToken, Fault> {
    match input.get(at) {
        Some(b'-' | b'0'..=b'9') => scan_number(input, at),
        Some(_) => Err(Fault::new(DecodeReason::ExpectedNumber, at)),
        None => Err(Fault::end(input)),
    }
}

fn parse_as<T: std::str::FromStr>(input: &[u8], at: usize, token: NumberToken) -> Result<(T, usize), Fault> {
    let text = std::str::from_utf8(&input[at..token.end]).ok();
    match text.and_then(|text| text.parse().ok()) {
        Some(value) => Ok((value, token.end)),
        None => Err(Fault::new(DecodeReason::NumberOutOfRange, at)),
    }
}

/// An integer of one to fifteen digits that is not the beginning of a float.
#[inline]
fn short_unsigned(input: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = eight_bytes(input, at)?;
    let mut digits = leading_digits(word);
    let mut value = leading_value(word, digits);
    if digits == 8 {
        let word = eight_bytes(input, at + 8)?;
        let more = leading_digits(word);
        value = value * POWERS_OF_TEN[more as usize] + leading_value(word, more);
        digits += more;
    }
    let end = at + digits as usize;
    let leading_zero = digits > 1 && input[at] == b'0';
    match input.get(end) {
        Some(b'.' | b'e' | b'E') | None => None,
        _ if digits == 0 || digits == 16 || leading_zero => None,
        _ => Some((value, end)),
    }
}

/// A float of at most seven digits before the point, at most sixteen behind it, no exponent, whose digits
/// make an integer below 2⁵³. That integer and the power of ten to divide it by are exact, so that the division's
/// rounding is the only one (Clinger, "How to read floating point numbers accurately", 1990).
#[inline]
#[expect(clippy::cast_precision_loss, reason = "exact below 2⁵³")]
fn short_f64(input: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = input.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let word = eight_bytes(input, first)?;
    let digits = leading_digits(word);
    if digits == 0 || digits == 8 || (digits > 1 && input[first] == b'0') {
        return None;
    }
    let mut value = leading_value(word, digits);
    let mut end = first + digits as usize;
    let mut decimals = 0;
    if input.get(end) == Some(&b'.') {
        let word = eight_bytes(input, end + 1)?;
        decimals = leading_digits(word);
        value = value * POWERS_OF_TEN[decimals as usize] + leading_value(word, decimals);
        if decimals == 8 {
            let word = eight_bytes(input, end + 9)?;
            let more = leading_digits(word);
            value =
                value.checked_mul(POWERS_OF_TEN[more as usize])?.checked_add(leading_value(word, more))?;
            decimals += more;
        }
        if decimals == 0 || decimals == 16 {
            return None;
        }
        end += 1 + decimals as usize;
    }
    match input.get(end) {
        Some(b'e' | b'E') | None => return None,
        _ if value > MAX_EXACT => return None,
        _ => {}
    }
    let value = value as f64 / FLOAT_POWERS_OF_TEN[decimals as usize];
    Some((if negative { -value } else { value }, end))
}

#[inline]
fn eight_bytes(input: &[u8], at: usize) -> Option<u64> {
    input.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// How many of the bytes, from the lowest on, are digits.
#[inline]
const fn leading_digits(word: u64) -> u32 {
    // A digit's high nibble becomes zero, and its low one stays below ten: adding 0x76 does not reach 0x80.
    // What carries into the next byte comes from a byte that is itself marked.
    let word = word ^ ZEROS;
    let others = (word.wrapping_add(ONES * 0x76) | word) & (ONES << 7);
    others.trailing_zeros() / 8
}

/// The value of the lowest `count` bytes, all digits, the lowest one the most significant.
#[inline]
const fn leading_value(word: u64, count: u32) -> u64 {
    // Leading zeros are shifted in, then neighbours are joined: digits to pairs, pairs to fours, fours to eight.
    let digits = match (word ^ ZEROS).checked_shl(64 - 8 * count) {
        Some(digits) => digits,
        None => return 0,
    };
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & (MASK_OF_PAIRS * 0xFF);
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF
}

const ONES: u64 = u64::MAX / 255;
const ZEROS: u64 = ONES * b'0' as u64;
const MASK_OF_PAIRS: u64 = 0x0001_0001_0001_0001;

/// Up to 2⁵³ every integer is a float.
const MAX_EXACT: u64 = 1 << 53;

const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Powers of ten are exact floats up to 10²².
const FLOAT_POWERS_OF_TEN: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
