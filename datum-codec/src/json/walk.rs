//! Reading records by the steps of their shape with AVX2, 32 bytes at a time.
//!
//! The same steps as in the module `shape`: a literal is compared at once; the quote that ends a string, and what may
//! not stand in it, are found in one look, and so are the digits of a number and what follows them. This is the way of
//! records that have no index, or are not quite what it expects. Whatever is not plain (escapes, exponents, `null`,
//! nesting, more than nineteen digits) goes through the functions that parse in full, as it does on every machine.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_blendv_epi8, _mm_cvtsi128_si64, _mm_madd_epi16, _mm_maddubs_epi16,
    _mm_packus_epi32, _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi32, _mm_shuffle_epi8, _mm_sub_epi8,
    _mm256_add_epi8, _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::number::divide;
use super::shape::{Gap, Step, fill, read_long, skip_long};
use super::vector::{Tail, VALUE, Window, load, load_half};
use crate::projected::{Field, Slot, SlotValue, Unescaped};

/// The first bytes of a value, and whatever follows.
type Value = [u8; VALUE];

/// Where the record ends, if it fits.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn read(
    steps: &[Step],
    input: &[u8],
    fields: &[Field],
    slots: &mut [Slot],
    unescaped: &mut Unescaped,
) -> Option<usize> {
    let mut tail = Tail::EMPTY;
    tail.fill(input);
    let mut window = Window::first(input, &tail);
    let mut at = 0;
    for step in steps {
        let reach = match window.reach(at) {
            Some(reach) => reach,
            None => {
                window = tail.window();
                window.reach(at)?
            }
        };
        let length = usize::from(step.literal.length) & 31;
        let same = _mm256_cmpeq_epi8(load(reach.first_chunk()?), load(&step.literal.bytes));
        if (mask(same).trailing_ones() as usize) < length {
            return None;
        }
        let value: &Value = reach[length..].first_chunk()?;
        at += length;
        at = match step.gap {
            Gap::Nothing => at,
            Gap::Unwanted if value[0] == b'"' => match text(value, input, at) {
                Some(length) => at + length,
                None => skip_long(input, at)?,
            },
            Gap::Unwanted => match number::<0>(value, step.behind) {
                Some(number) => at + number.end,
                None => skip_long(input, at)?,
            },
            Gap::Double(index) => match double(value, step.behind) {
                Some((found, length)) => fill(slots, index, at, SlotValue::Double(found), at + length),
                None => read_long(input, at, index, fields, slots, unescaped)?,
            },
            Gap::Unsigned(index) => match integer::<0>(value, step.behind) {
                Some((found, length)) => fill(slots, index, at, SlotValue::Unsigned(found), at + length),
                None => read_long(input, at, index, fields, slots, unescaped)?,
            },
            Gap::Signed(index) => match signed(value, step.behind) {
                Some((found, length)) => fill(slots, index, at, SlotValue::Signed(found), at + length),
                None => read_long(input, at, index, fields, slots, unescaped)?,
            },
            Gap::Text(index) if value[0] == b'"' => match text(value, input, at) {
                Some(length) => {
                    let end = at + length;
                    fill(slots, index, at + 1, SlotValue::Text { end: end - 1 }, end)
                }
                None => read_long(input, at, index, fields, slots, unescaped)?,
            },
            Gap::Text(index) | Gap::Other(index) => read_long(input, at, index, fields, slots, unescaped)?,
        };
    }
    Some(at)
}

/// How long the string at `at` is with its quotes, if it is one without escapes. `value` is what stands there, and
/// begins with a quote.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn text(value: &Value, input: &[u8], at: usize) -> Option<usize> {
    let (quotes, others) = specials(load(value[1..].first_chunk()?));
    if quotes != 0 {
        let before = quotes ^ quotes.wrapping_sub(1);
        return if others & before == 0 { Some(quotes.trailing_zeros() as usize + 2) } else { None };
    }
    if others != 0 {
        return None;
    }
    let (quotes, others) = specials(load(value[33..].first_chunk()?));
    if quotes | others == 0 {
        return Some(long_text(input, at + 65)? - at);
    }
    let before = quotes ^ quotes.wrapping_sub(1);
    if others & before == 0 { Some(quotes.trailing_zeros() as usize + 34) } else { None }
}

/// Just behind the string of which a part begins at `at`.
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn long_text(input: &[u8], mut at: usize) -> Option<usize> {
    while let Some(block) = input.get(at..)?.first_chunk() {
        let (quotes, others) = specials(load(block));
        if quotes | others != 0 {
            let before = quotes ^ quotes.wrapping_sub(1);
            return (others & before == 0).then_some(at + quotes.trailing_zeros() as usize + 1);
        }
        at += 32;
    }
    let special = input[at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
    (input[at + special] == b'"').then_some(at + special + 1)
}

/// A bit for each quote; a bit for each backslash and control character.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn specials(block: __m256i) -> (u32, u32) {
    let quote = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'"'.cast_signed()));
    let backslash = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\\'.cast_signed()));
    let control = _mm256_cmpeq_epi8(_mm256_min_epu8(block, _mm256_set1_epi8(0x1F)), block);
    (mask(quote), mask(_mm256_or_si256(backslash, control)))
}

/// A number without sign and exponent.
#[derive(Clone, Copy)]
struct Number {
    /// Its characters, and whatever follows.
    characters: __m128i,
    /// How many digits stand before the point.
    whole: usize,
    /// How many characters there are in all, at most 32.
    end: usize,
}

/// The number that begins at `FROM`, which is at most one, if it is a plain one that `behind` follows.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn number<const FROM: usize>(bytes: &Value, behind: u8) -> Option<Number> {
    let characters = load(bytes[FROM..].first_chunk()?);
    // Digits become the ten lowest numbers there are.
    let lowered = _mm256_add_epi8(characters, _mm256_set1_epi8(0x80_u8.wrapping_sub(b'0').cast_signed()));
    let others = mask(_mm256_cmpgt_epi8(lowered, _mm256_set1_epi8(i8::MIN + 9)));
    let whole = others.trailing_zeros() as usize;
    if whole == 0 || (bytes[FROM] == b'0' && whole != 1) {
        return None;
    }
    let mut end = whole;
    if bytes[FROM + whole] == b'.' {
        end = (others & others.wrapping_sub(1)).trailing_zeros() as usize;
        if end == whole + 1 {
            return None;
        }
    }
    let number = Number { characters: _mm256_castsi256_si128(characters), whole, end };
    if bytes[FROM + end] == behind { Some(number) } else { None }
}

/// An integer of sixteen digits at most, and how many characters it and what stands before it take.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn integer<const FROM: usize>(bytes: &Value, behind: u8) -> Option<(u64, usize)> {
    let Number { characters, whole, end } = number::<FROM>(bytes, behind)?;
    if end == whole && end <= 16 { Some((joined(characters, end), FROM + end)) } else { None }
}

/// An integer of sixteen digits at most, and perhaps a minus sign, but not `-0`.
///
/// Where there is a sign, other code runs, so that the processor need not look at the sign before it loads the digits.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn signed(bytes: &Value, behind: u8) -> Option<(i64, usize)> {
    if bytes[0] == b'-' {
        return negative(bytes, behind);
    }
    let (found, end) = integer::<0>(bytes, behind)?;
    Some((found.cast_signed(), end))
}

#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn negative(bytes: &Value, behind: u8) -> Option<(i64, usize)> {
    let (found, end) = integer::<1>(bytes, behind)?;
    if found == 0 { None } else { Some((-found.cast_signed(), end)) }
}

/// A float without exponent, of nineteen digits at most, and perhaps a minus sign.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn double(bytes: &Value, behind: u8) -> Option<(f64, usize)> {
    if bytes[0] == b'-' {
        return negative_double(bytes, behind);
    }
    unsigned_double::<0>(bytes, behind)
}

#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn negative_double(bytes: &Value, behind: u8) -> Option<(f64, usize)> {
    let (found, end) = unsigned_double::<1>(bytes, behind)?;
    Some((-found, end))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn unsigned_double<const FROM: usize>(bytes: &Value, behind: u8) -> Option<(f64, usize)> {
    let Number { characters, whole, end } = number::<FROM>(bytes, behind)?;
    if whole > 16 {
        return None;
    }
    let (value, decimals) = if end == whole {
        (joined(characters, whole), 0)
    } else {
        // From the point on, each lane takes its neighbour, so that the digits close up.
        let shifted = load_half(bytes[FROM + 1..].first_chunk()?);
        let digits = _mm_blendv_epi8(shifted, characters, load_half(BEFORE[16 - whole..].first_chunk()?));
        let count = end - 1;
        let value = if count <= 16 { joined(digits, count) } else { joined_more(digits, bytes, FROM, end)? };
        (value, count - whole)
    };
    Some((divide(value, decimals)?, FROM + end))
}

/// The integer that sixteen digits make with up to three more, which follow in `bytes` behind a point.
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn joined_more(digits: __m128i, bytes: &Value, from: usize, end: usize) -> Option<u64> {
    if end > 20 {
        return None;
    }
    let more = bytes.get(from + 17..from + end)?;
    Some(more.iter().fold(joined(digits, 16), |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// The integer that the first `count` characters make, at most sixteen.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn joined(characters: __m128i, count: usize) -> u64 {
    let Some(shift) = TO_THE_END[count & 31..].first_chunk() else { return 0 };
    // The digits move to the last lanes, zeros before them; then neighbours are joined, to twos, fours and eights.
    let digits = _mm_sub_epi8(characters, _mm_set1_epi8(b'0'.cast_signed()));
    let digits = _mm_shuffle_epi8(digits, load_half(shift));
    let twos = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x01_0A));
    let fours = _mm_madd_epi16(twos, _mm_set1_epi32(0x0001_0064));
    let eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(0x0001_2710));
    let both = _mm_cvtsi128_si64(eights).cast_unsigned();
    (both & 0xFFFF_FFFF) * 100_000_000 + (both >> 32)
}

/// From `16 - n` on, n lanes that are set, then lanes that are not.
const BEFORE: [u8; 32] = {
    let mut lanes = [0; 32];
    let mut i = 0;
    while i < 16 {
        lanes[i] = 0xFF;
        i += 1;
    }
    lanes
};

/// From n on, a shuffle that moves the first n lanes to the end and clears the others.
const TO_THE_END: [u8; 48] = {
    let mut lanes = [0x80; 48];
    let mut lane = 0_u8;
    while lane < 16 {
        lanes[16 + lane as usize] = lane;
        lane += 1;
    }
    lanes
};

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn mask(lanes: __m256i) -> u32 {
    _mm256_movemask_epi8(lanes).cast_unsigned()
}
