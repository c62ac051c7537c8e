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
    match short_signed(input, at) {
        Some(found) => Ok(found),
        None => long_integer(input, at),
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
#[inline(always)]
pub(super) fn short_unsigned(input: &[u8], at: usize) -> Option<(u64, usize)> {
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

/// An integer of one to fifteen digits and perhaps a minus sign, but not `-0`, that is not the beginning of a float.
#[inline(always)]
#[expect(clippy::cast_possible_wrap, reason = "fifteen digits at most")]
pub(super) fn short_signed(input: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = input.get(at) == Some(&b'-');
    let (value, end) = short_unsigned(input, at + usize::from(negative))?;
    match (negative, value as i64) {
        (true, 0) => None,
        (true, value) => Some((-value, end)),
        (false, value) => Some((value, end)),
    }
}

/// A float without exponent whose digits make an integer of 64 bits, with at most sixteen of them behind the point.
#[inline(always)]
pub(super) fn short_f64(input: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = input.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let word = eight_bytes(input, first)?;
    let whole = leading_digits(word);
    if whole == 0 || whole == 8 || (whole > 1 && input[first] == b'0') {
        return None;
    }
    let end = first + whole as usize;
    let (value, decimals, end) = match input.get(end)? {
        b'.' => decimals(input, word, whole, end)?,
        b'e' | b'E' => return None,
        _ => (leading_value(word, whole), 0, end),
    };
    let value = divide(value, decimals as usize)?;
    Some((if negative { -value } else { value }, end))
}

/// The digits before the point, `whole` of them at the start of `word`, and those behind it, as one integer; how many
/// the latter are, and where they end. `point` is where the point is.
#[inline(always)]
fn decimals(input: &[u8], word: u64, whole: u32, point: usize) -> Option<(u64, u32, usize)> {
    // The point is squeezed out of the word, so that both parts are converted at once; what moves in is no digit.
    let before = (1 << (8 * whole)) - 1;
    let joined = (word & before) | (((word >> 8) | NO_DIGIT) & !before);
    let digits = leading_digits(joined);
    let end = point + 1 + (digits - whole) as usize;
    match input.get(end)? {
        b'0'..=b'9' => many_decimals(input, leading_value(word, whole), point),
        b'e' | b'E' => None,
        _ if digits == whole => None,
        _ => Some((leading_value(joined, digits), digits - whole, end)),
    }
}

/// The same where the digits behind the point reach beyond the first word.
fn many_decimals(input: &[u8], whole: u64, point: usize) -> Option<(u64, u32, usize)> {
    let word = eight_bytes(input, point + 1)?;
    let mut digits = leading_digits(word);
    let mut value = whole * POWERS_OF_TEN[digits as usize] + leading_value(word, digits);
    if digits == 8 {
        let word = eight_bytes(input, point + 9)?;
        let more = leading_digits(word);
        value = value.checked_mul(POWERS_OF_TEN[more as usize])?.checked_add(leading_value(word, more))?;
        digits += more;
    }
    let end = point + 1 + digits as usize;
    let more = matches!(input.get(end), Some(b'e' | b'E' | b'0'..=b'9') | None);
    (!more).then_some((value, digits, end))
}

/// `value` by the power of ten, correctly rounded.
///
/// Up to 2⁵³ both are exact floats, so that the division's rounding is the only one (Clinger, "How to read floating
/// point numbers accurately", 1990).
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "exact up to 2⁵³")]
pub(super) fn divide(value: u64, decimals: usize) -> Option<f64> {
    if value > MAX_EXACT {
        return divide_wide(value, decimals);
    }
    let divisor = FLOAT_POWERS_OF_TEN.get(decimals)?;
    Some(value as f64 / divisor)
}

/// The same for any `value`, by multiplication with the reciprocal of the power of five.
///
/// Of the 128 bits of the reciprocal the upper half suffices unless the product's upper bits, of which a float keeps
/// 53 and the one behind them, end in nine ones, into which the lower half may yet carry; a tie is one only where the
/// remaining bits are zero (Lemire, "Number parsing at a gigabyte per second", 2021; that the product is always exact
/// enough here, Mushtak and Lemire, "Fast number parsing without fallback", 2022).
#[expect(clippy::cast_possible_truncation, reason = "halves are taken")]
#[expect(clippy::cast_precision_loss, reason = "the rounding is the purpose")]
pub(super) fn divide_wide(value: u64, decimals: usize) -> Option<f64> {
    if decimals == 0 || value == 0 {
        return Some(value as f64);
    }
    let Reciprocal { digits, exponent } = RECIPROCALS.get(decimals)?;
    let zeros = value.leading_zeros();
    let value = u128::from(value << zeros);
    let mut product = value * (digits >> 64);
    if (product >> 64) & 0x1FF == 0x1FF {
        product += (value * (digits & u128::from(u64::MAX))) >> 64;
    }
    let (upper, lower) = ((product >> 64) as u64, product as u64);
    let top = upper >> 63;
    let shift = top + 9;
    // 53 bits, and one to be rounded off.
    let mut mantissa = upper >> shift;
    let tie = lower <= 1 && mantissa & 3 == 1 && mantissa << shift == upper;
    if !tie || decimals > LONGEST_TIE {
        mantissa += mantissa & 1;
    }
    // What rounding carries into the next bit, carries into the exponent.
    let exponent = exponent + top - u64::from(zeros) - 1;
    Some(f64::from_bits((exponent << 52) + (mantissa >> 1)))
}

#[inline(always)]
fn eight_bytes(input: &[u8], at: usize) -> Option<u64> {
    input.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// How many of the bytes, from the lowest on, are digits.
#[inline(always)]
const fn leading_digits(word: u64) -> u32 {
    // A digit's high nibble becomes zero, and its low one stays below ten: adding 0x76 does not reach 0x80.
    // What carries into the next byte comes from a byte that is itself marked.
    let word = word ^ ZEROS;
    let others = (word.wrapping_add(ONES * 0x76) | word) & (ONES << 7);
    others.trailing_zeros() / 8
}

/// The value of the lowest `count` bytes, all digits, the lowest one the most significant.
#[inline(always)]
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

/// A byte that is no digit, at the top.
const NO_DIGIT: u64 = 0xFF << 56;

/// Up to 2⁵³ every integer is a float.
const MAX_EXACT: u64 = 1 << 53;

const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Powers of ten are exact floats up to 10²².
const FLOAT_POWERS_OF_TEN: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];

/// The reciprocal of a power of five.
struct Reciprocal {
    /// Its first 128 bits, the last one rounded up.
    digits: u128,
    /// The exponent of a float that is the reciprocal of the power of ten, times 2⁶³, its bias included, less one.
    exponent: u64,
}

/// By decimals, of which there are as many as ten has powers in 64 bits.
const RECIPROCALS: [Reciprocal; 20] = {
    let mut reciprocals = [const { Reciprocal { digits: 0, exponent: 0 } }; 20];
    let mut decimals = 1;
    let mut power = 1_u64;
    while decimals < reciprocals.len() {
        power *= 5;
        // The power lies below 2^bits, so 2^(bits + 127) by it has 128 bits. They come out one by one, as on paper.
        let bits = u64::BITS - power.leading_zeros();
        let mut rest = 1_u128 << (bits - 1);
        let mut digits = 0_u128;
        let mut i = 0;
        while i < 128 {
            rest <<= 1;
            digits <<= 1;
            if rest >= power as u128 {
                rest -= power as u128;
                digits |= 1;
            }
            i += 1;
        }
        reciprocals[decimals] =
            Reciprocal { digits: digits + 1, exponent: 1_022 + 64 - bits as u64 - decimals as u64 };
        decimals += 1;
    }
    reciprocals
};

/// Only with so few decimals can a number of 64 bits lie halfway between two floats: it is an odd number of 54 bits
/// then, times the power of five.
const LONGEST_TIE: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};

    use super::{digit_run, divide_wide, read_f64, read_signed, read_unsigned, short_f64};

    fn same_as_standard(text: &str) {
        let expected: f64 = text.parse().unwrap();
        for input in [text.to_owned(), format!("{text}, and some bytes behind")] {
            let (found, end) = read_f64(input.as_bytes(), 0).unwrap();
            assert_eq!((found.to_bits(), end), (expected.to_bits(), text.len()), "{input}");
        }
    }

    fn divide_by_text(value: u64, decimals: u32) -> f64 {
        format!("{value}e-{decimals}").parse().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn floats_are_rounded_as_the_standard_library_rounds_them(bits in any::<u64>(), wide in any::<u64>()) {
            let any_float = f64::from_bits(bits);
            if any_float.is_finite() {
                same_as_standard(&any_float.to_string());
                same_as_standard(&format!("{any_float:e}"));
            }
            // Of the sizes that records hold.
            let usual = (wide >> 11) as f64 / 2_f64.powi((bits % 60) as i32);
            same_as_standard(&usual.to_string());
            same_as_standard(&format!("{usual:.2}"));
            same_as_standard(&format!("-{usual:.15}"));
        }

        #[test]
        fn products_with_reciprocals_are_rounded_as_quotients_are(
            value in any::<u64>(), shift in 0_u32..64, decimals in 0_u32..20, odd in any::<u64>(),
        ) {
            let value = value >> shift;
            prop_assert_eq!(divide_wide(value, decimals as usize), Some(divide_by_text(value, decimals)));
            // A tie, if it has few decimals, and its neighbours.
            let tie = (odd >> 10 | 1 | 1 << 53).checked_mul(5_u64.pow(decimals));
            for value in tie.into_iter().flat_map(|tie| [tie - 1, tie, tie + 1]) {
                prop_assert_eq!(divide_wide(value, decimals as usize), Some(divide_by_text(value, decimals)));
            }
        }

        /// Halfway between two floats, and one digit above and below.
        #[test]
        fn ties_are_rounded_to_even(mantissa in (1_u64 << 52)..(1 << 53), shift in 1_u32..10) {
            // (2m + 1) / 2^shift has shift decimals and lies halfway between two neighbours.
            let numerator = u128::from(2 * mantissa + 1);
            let scaled = numerator * 5_u128.pow(shift);
            let divisor = 10_u128.pow(shift);
            let (whole, fraction) = (scaled / divisor, scaled % divisor);
            let tie = format!("{whole}.{fraction:0width$}", width = shift as usize);
            same_as_standard(&tie);
            same_as_standard(&format!("{tie}1"));
            same_as_standard(&format!("{tie}000000000001"));
            same_as_standard(&(tie[..tie.len() - 1].to_owned() + "4"));
        }

        #[test]
        fn integers_are_read_as_the_standard_library_reads_them(number in any::<i64>(), shift in 0_u32..64) {
            let number = number >> shift;
            let text = format!("{number},         ");
            prop_assert_eq!(read_signed(text.as_bytes(), 0).ok().map(|found| found.0), Some(number));
            let unsigned = number.unsigned_abs();
            let text = format!("{unsigned},         ");
            prop_assert_eq!(read_unsigned(text.as_bytes(), 0).ok().map(|found| found.0), Some(unsigned));
            prop_assert_eq!(digit_run(text.as_bytes(), 0), text.find(',').unwrap());
        }
    }

    #[test]
    fn the_short_way_covers_what_records_hold() {
        for text in ["0", "7", "0.5", "12.34", "12345.67", "1234567.89", "-3.25", "49.81234567890123"] {
            let input = format!("{text}, and some bytes behind");
            assert_eq!(short_f64(input.as_bytes(), 0), Some((text.parse().unwrap(), text.len())), "{text}");
        }
        for text in ["00.5", "1e3", "1.e3", "1.5e3", ".5", "1.", "-", "x", "12345678901234567890.5"] {
            let input = format!("{text}, and some bytes behind");
            assert_eq!(short_f64(input.as_bytes(), 0), None, "{text}");
        }
    }
}
