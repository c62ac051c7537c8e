//! Reading a whole record at once by the index of its shape, with AVX2; see the module `index` for why it is right.
//!
//! First one pass over the record finds the places, counts quotes, and looks for what may not be there; it is the
//! module `survey`. Then the literals are compared, and the wanted values read, each from where it must be.
//!
//! A number is a single look at sixteen bytes. Where its point is and how long it is choose a shuffle that moves its
//! digits to the end of the lanes; so a malformed number is one of whose lanes does not hold a digit. Sixteen digits
//! become an integer in four multiplications, as Wojciech Muła describes ("SIMD-ized conversion of numbers", 2014).
//! Whatever is longer, or has an exponent, goes through the functions that parse in full.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_madd_epi16, _mm_maddubs_epi16,
    _mm_movemask_epi8, _mm_or_si128, _mm_packus_epi32, _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi32,
    _mm_setzero_si128, _mm_shuffle_epi8, _mm_sub_epi8, _mm_subs_epu8, _mm_testz_si128, _mm256_adds_epu16,
    _mm256_and_si256, _mm256_or_si256, _mm256_setzero_si256, _mm256_sub_epi16, _mm256_subs_epu16,
    _mm256_testz_si256, _mm256_xor_si256,
};

use super::index::{Index, LANES, Pattern};
use super::number::divide_wide;
use super::number_table::{Cell, WIDE_POWERS_OF_TEN, cell};
use super::shape::{read_long, skip_long};
use super::skip::is_white_space;
use super::survey::{LONGEST, PLACES, Scratch, survey};
use super::vector::{load, load_half, load_words, store_words};
use crate::projected::{Field, Slot, SlotValue, Unescaped};

/// Fills the slots, if the record is seen to fit.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn read(
    index: &Index,
    scratch: &mut Scratch,
    input: &[u8],
    fields: &[Field],
    slots: &mut [Slot],
    unescaped: &mut Unescaped,
) -> Option<()> {
    let mut record = input;
    while let Some((last, rest)) = record.split_last()
        && is_white_space(*last)
    {
        record = rest;
    }
    if record.len() > LONGEST {
        return None;
    }
    survey(index, scratch, record)?;
    if let Some(ordinals) = &index.ordinals {
        for (i, ordinal) in ordinals.iter().enumerate() {
            scratch.places[i % PLACES] = scratch.places[usize::from(*ordinal) % PLACES];
        }
    }
    scratch.places[(index.patterns.len() - 1) % PLACES] = u16::try_from(record.len()).ok()?;
    literals(index, scratch)?;
    if !short_numbers(index, scratch, slots) && numbers(index, scratch, slots).is_none() {
        again(index, scratch, input, fields, slots, unescaped)?;
    }
    for wanted in &index.texts {
        let (start, length) = scratch.value(wanted.literal);
        slots[usize::from(wanted.field)] = Slot { start, value: SlotValue::Text { end: start + length } };
    }
    if index.others.len() + index.words.len() > 0 {
        others(index, scratch, input, fields, slots, unescaped)?;
    }
    Some(())
}

/// Finds where literals and values begin, and whether it is these literals that stand there.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn literals(index: &Index, scratch: &mut Scratch) -> Option<()> {
    let mut differ = _mm256_setzero_si256();
    let spans = &mut scratch.spans;
    for (i, group) in index.groups.iter().enumerate() {
        let from = i * LANES % PLACES;
        let places: &[u16; LANES + 1] = scratch.places[from..].first_chunk()?;
        let (these, next) = (load_words(places.first_chunk()?), load_words(places.last_chunk()?));
        let value = _mm256_adds_epu16(these, load_words(&group.after));
        let end = _mm256_subs_epu16(next, load_words(&group.before_next));
        let over = _mm256_subs_epu16(value, end);
        differ = _mm256_or_si256(differ, _mm256_and_si256(over, load_words(&group.followed)));
        let begin = _mm256_subs_epu16(these, load_words(&group.before));
        store_words(spans.begin[from..].first_chunk_mut()?, begin);
        store_words(spans.value[from..].first_chunk_mut()?, value);
        store_words(spans.length[from..].first_chunk_mut()?, _mm256_sub_epi16(end, value));
    }
    for (pattern, begin) in index.patterns.iter().zip(scratch.spans.begin.iter()) {
        differ = _mm256_or_si256(differ, pattern.differs(load(scratch.at(usize::from(*begin)))));
    }
    for piece in &index.pieces {
        let begin = usize::from(scratch.spans.begin[usize::from(piece.literal) % PLACES]);
        let found = load(scratch.at(begin + usize::from(piece.offset)));
        differ = _mm256_or_si256(differ, piece.pattern.differs(found));
    }
    (scratch.spans.begin[0] == 0 && _mm256_testz_si256(differ, differ) == 1).then_some(())
}

impl Pattern {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn differs(&self, found: __m256i) -> __m256i {
        _mm256_and_si256(_mm256_xor_si256(found, load(&self.bytes)), load(&self.care))
    }
}

/// Reads all numbers; says whether each was one without a sign, of sixteen characters at most.
///
/// Nothing is called here, so that all constants stay in registers.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn short_numbers(index: &Index, scratch: &Scratch, slots: &mut [Slot]) -> bool {
    let mut digits = Digits::new();
    for wanted in &index.doubles {
        let (start, length) = scratch.value(wanted.literal);
        if length > SHORT {
            return false;
        }
        let found = digits.double(scratch.at(start), length);
        slots[usize::from(wanted.field)] = Slot { start, value: SlotValue::Double(found) };
    }
    for wanted in &index.unsigned {
        let (start, length) = scratch.value(wanted.literal);
        if length > SHORT {
            return false;
        }
        let found = digits.integer(scratch.at(start), length);
        slots[usize::from(wanted.field)] = Slot { start, value: SlotValue::Unsigned(found) };
    }
    for wanted in &index.signed {
        let (start, length) = scratch.value(wanted.literal);
        if length > SHORT {
            return false;
        }
        let found = digits.integer(scratch.at(start), length).cast_signed();
        slots[usize::from(wanted.field)] = Slot { start, value: SlotValue::Signed(found) };
    }
    for literal in &index.numbers {
        let (start, length) = scratch.value(*literal);
        if length > SHORT {
            return false;
        }
        digits.double(scratch.at(start), length);
    }
    digits.right()
}

/// The same for numbers with a sign, and for longer ones that are not very long.
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn numbers(index: &Index, scratch: &Scratch, slots: &mut [Slot]) -> Option<()> {
    for wanted in &index.doubles {
        let (start, length) = scratch.value(wanted.literal);
        let value = SlotValue::Double(double(scratch, start, length)?);
        slots[usize::from(wanted.field)] = Slot { start, value };
    }
    for wanted in &index.unsigned {
        let (start, length) = scratch.value(wanted.literal);
        let value = SlotValue::Unsigned(integer(scratch, start, length)?);
        slots[usize::from(wanted.field)] = Slot { start, value };
    }
    for wanted in &index.signed {
        let (start, length) = scratch.value(wanted.literal);
        let value = SlotValue::Signed(signed(scratch, start, length)?);
        slots[usize::from(wanted.field)] = Slot { start, value };
    }
    for literal in &index.numbers {
        let (start, length) = scratch.value(*literal);
        let mut digits = Digits::new();
        if length <= SHORT {
            digits.double(scratch.at(start), length);
        }
        if (length > SHORT || !digits.right()) && skip_long(scratch.from(start), 0) != Some(length) {
            return None;
        }
    }
    Some(())
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn double(scratch: &Scratch, start: usize, length: usize) -> Option<f64> {
    let negative = scratch.at::<1>(start)[0] == b'-';
    let (start, length) = (start + usize::from(negative), length - usize::from(negative));
    let mut digits = Digits::new();
    let found = if length > SHORT {
        digits.long_double(scratch.at(start), length)?
    } else {
        digits.double(scratch.at(start), length)
    };
    digits.right().then_some(if negative { -found } else { found })
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn integer(scratch: &Scratch, start: usize, length: usize) -> Option<u64> {
    let mut digits = Digits::new();
    let found = digits.integer(scratch.at(start), length);
    (length <= SHORT && digits.right()).then_some(found)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn signed(scratch: &Scratch, start: usize, length: usize) -> Option<i64> {
    if scratch.at::<1>(start)[0] != b'-' {
        return integer(scratch, start, length).map(u64::cast_signed);
    }
    // `-0` is no integer.
    let found = integer(scratch, start + 1, length - 1)?.cast_signed();
    (found != 0).then_some(-found)
}

/// The length of the longest number that is read at one look.
const SHORT: usize = 16;

/// What is wrong with the numbers read so far.
struct Digits {
    /// Lanes that held something other than a digit.
    others: __m128i,
    /// Negative if there was a zero in front of a digit.
    fault: i64,
}

impl Digits {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn new() -> Self {
        Self { others: _mm_setzero_si128(), fault: 0 }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn right(&self) -> bool {
        self.fault >= 0 && _mm_testz_si128(self.others, self.others) == 1
    }

    /// A float of one to sixteen characters.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn double(&mut self, bytes: &[u8; 16], length: usize) -> f64 {
        let characters = load_half(bytes);
        let points = _mm_movemask_epi8(_mm_cmpeq_epi8(characters, _mm_set1_epi8(b'.'.cast_signed())));
        let cell = cell(points.trailing_zeros() as usize, length);
        // With a point there are fifteen digits at most, so both are exact floats, and the division's rounding is the
        // only one (Clinger, "How to read floating point numbers accurately", 1990). Without one, the conversion's is.
        self.value(characters, cell) as i64 as f64 / cell.divisor
    }

    /// An integer of one to sixteen digits.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn integer(&mut self, bytes: &[u8; 16], length: usize) -> u64 {
        self.value(load_half(bytes), cell(0, length))
    }

    /// The integer that the digits make.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn value(&mut self, characters: __m128i, cell: &Cell) -> u64 {
        let digits = _mm_sub_epi8(characters, _mm_set1_epi8(b'0'.cast_signed()));
        let digits = _mm_shuffle_epi8(digits, load_half(&cell.to_the_end));
        self.others = _mm_or_si128(self.others, _mm_subs_epu8(digits, _mm_set1_epi8(9)));
        // Neighbours are joined, to twos, fours and eights.
        let twos = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x01_0A));
        let fours = _mm_madd_epi16(twos, _mm_set1_epi32(0x0001_0064));
        let eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(0x0001_2710));
        let both = _mm_cvtsi128_si64(eights).cast_unsigned();
        let value = (both & 0xFFFF_FFFF) * 100_000_000 + (both >> 32);
        self.fault |= value.wrapping_sub(cell.least).cast_signed();
        value
    }

    /// A float of seventeen to thirty-two characters, with nineteen digits at most and a point among the first sixteen.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn long_double(&mut self, bytes: &[u8; 33], length: usize) -> Option<f64> {
        let whole_part: &[u8; 16] = bytes.first_chunk()?;
        let points =
            _mm_movemask_epi8(_mm_cmpeq_epi8(load_half(whole_part), _mm_set1_epi8(b'.'.cast_signed())));
        let point = points.trailing_zeros() as usize;
        let decimals = length.wrapping_sub(point + 1);
        if !(1..SHORT).contains(&point) || decimals > SHORT || point + decimals > 19 {
            return None;
        }
        let whole = self.integer(whole_part, point);
        // A fraction may begin with zeros.
        let least = self.fault;
        let fraction = self.integer(bytes[point + 1..].first_chunk()?, decimals);
        self.fault = least;
        let value = whole.checked_mul(WIDE_POWERS_OF_TEN[decimals])?.checked_add(fraction)?;
        // About half of these are above 2⁵³, which no processor foresees; so all go one way.
        divide_wide(value, decimals)
    }
}

/// Reads all numbers the long way.
#[cold]
#[inline(never)]
fn again(
    index: &Index,
    scratch: &Scratch,
    input: &[u8],
    fields: &[Field],
    slots: &mut [Slot],
    unescaped: &mut Unescaped,
) -> Option<()> {
    for wanted in index.doubles.iter().chain(&index.unsigned).chain(&index.signed) {
        let (start, length) = scratch.value(wanted.literal);
        let end = read_long(input, start, usize::from(wanted.field), fields, slots, unescaped)?;
        if end != start + length {
            return None;
        }
    }
    words(&index.numbers, scratch, input)
}

/// Reads the values that have no list of their kind.
#[inline(never)]
fn others(
    index: &Index,
    scratch: &Scratch,
    input: &[u8],
    fields: &[Field],
    slots: &mut [Slot],
    unescaped: &mut Unescaped,
) -> Option<()> {
    for wanted in &index.others {
        let (start, length) = scratch.value(wanted.literal);
        let end = read_long(input, start, usize::from(wanted.field), fields, slots, unescaped)?;
        if end != start + length {
            return None;
        }
    }
    words(&index.words, scratch, input)
}

fn words(literals: &[u16], scratch: &Scratch, input: &[u8]) -> Option<()> {
    for literal in literals {
        let (start, length) = scratch.value(*literal);
        if skip_long(input, start) != Some(start + length) {
            return None;
        }
    }
    Some(())
}
