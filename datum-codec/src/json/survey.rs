//! One pass over a record, which finds the places of all keys, counts quotes, and looks for what may not be there.
//!
//! It also copies the record to where there are bytes behind its end, so that whatever begins in it can be loaded whole.

use std::arch::x86_64::{
    __m256i, _mm_add_epi64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm256_add_epi8, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_extracti128_si256, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_sub_epi8, _mm256_subs_epu8, _mm256_testz_si256,
};

use std::fmt;

use super::index::{Index, LANES, MOST};
use super::vector::load;

/// Where a record is copied to, and what is known of its literals.
pub(super) struct Scratch {
    /// Any offset of 16 bits is followed by two blocks.
    copy: Box<[u8; COPY]>,
    /// The offsets of the quotes that colons follow.
    pub(super) places: Box<[u16; PLACES]>,
    pub(super) spans: Box<Spans>,
}

/// By literals.
pub(super) struct Spans {
    /// Where each begins.
    pub(super) begin: [u16; PLACES],
    /// Where the value behind it begins.
    pub(super) value: [u16; PLACES],
    /// How long that is.
    pub(super) length: [u16; PLACES],
}

const COPY: usize = u16::MAX as usize + 1 + 2 * BLOCK;

/// A survey writes a block's places before it sees that they are too many.
pub(super) const PLACES: usize = 1_024;

const _: () = assert!(PLACES >= MOST + BLOCK + LANES && PLACES.is_power_of_two());

const BLOCK: usize = 64;

/// The length of the longest record surveyed. Quotes are counted in bytes, one per block.
pub(super) const LONGEST: usize = 255 * BLOCK;

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        let copy = vec![0; COPY].into_boxed_slice().try_into().expect("it has this length");
        let spans = Spans { begin: [0; PLACES], value: [0; PLACES], length: [0; PLACES] };
        Self { copy, places: Box::new([0; PLACES]), spans: Box::new(spans) }
    }
}

impl Scratch {
    /// Where the value behind this literal begins, and how long it is.
    #[inline]
    pub(super) fn value(&self, literal: u16) -> (usize, usize) {
        let literal = usize::from(literal) % PLACES;
        (usize::from(self.spans.value[literal]), usize::from(self.spans.length[literal]))
    }

    /// So many bytes of the copy.
    #[inline]
    pub(super) fn at<const N: usize>(&self, offset: usize) -> &[u8; N] {
        const { assert!(N <= 2 * BLOCK) };
        let offset = offset & usize::from(u16::MAX);
        self.copy[offset..].first_chunk().expect("two blocks follow every offset")
    }

    pub(super) fn from(&self, offset: usize) -> &[u8] {
        &self.copy[offset..]
    }

    /// Writes blanks behind the record to be copied, and copies its end, which is not a whole block.
    #[inline]
    fn prepare(&mut self, record: &[u8]) {
        let length = record.len();
        self.copy[length..length + BLOCK].fill(b' ');
        match record.last_chunk::<BLOCK>() {
            Some(end) => self.copy[length - BLOCK..length].copy_from_slice(end),
            None => self.copy[..length].copy_from_slice(record),
        }
    }
}

/// Copies the record and finds its places; says whether there are as many of them, and of quotes, as there should be,
/// and nothing that should not be there.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn survey(index: &Index, scratch: &mut Scratch, record: &[u8]) -> Option<()> {
    scratch.prepare(record);
    let copy = &mut scratch.copy;
    let places = &mut scratch.places;
    let mut marks = Marks {
        quotes: [_mm256_setzero_si256(); 2],
        least: _mm256_set1_epi8(-1),
        backslashes: _mm256_setzero_si256(),
    };
    let mut at = 0;
    let mut found = 0;
    while at + BLOCK < record.len() {
        let block: &[u8; BLOCK + 1] = record[at..].first_chunk().expect("seen above");
        let mask = marks.block(block);
        copy[at..at + BLOCK].copy_from_slice(&block[..BLOCK]);
        found = note(places, found, mask, at);
        if found > MOST {
            return None;
        }
        at += BLOCK;
    }
    let mask = marks.block(copy[at..].first_chunk().expect("the copy is longer"));
    found = note(places, found, mask, at);
    let quotes = sum(marks.quotes[0]) + sum(marks.quotes[1]);
    let control = _mm256_subs_epu8(_mm256_set1_epi8(0x20), marks.least);
    let bad = _mm256_or_si256(control, marks.backslashes);
    (found == index.places && quotes == index.quotes && _mm256_testz_si256(bad, bad) == 1).then_some(())
}

/// What a survey has seen so far.
struct Marks {
    /// Less one for each quote, in the lane it was met in; of the first and second half of each block.
    quotes: [__m256i; 2],
    /// The least byte of each lane.
    least: __m256i,
    /// All bits of lanes that met a backslash.
    backslashes: __m256i,
}

impl Marks {
    /// Takes note of a block; says at which of its bytes there is a quote that a colon follows.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn block(&mut self, block: &[u8; BLOCK + 1]) -> u64 {
        let low = self.half::<0>(block);
        let high = self.half::<1>(block);
        u64::from(low) | u64::from(high) << 32
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn half<const HALF: usize>(&mut self, block: &[u8; BLOCK + 1]) -> u32 {
        let Some(bytes) = block[32 * HALF..].first_chunk() else { return 0 };
        let Some(next) = block[32 * HALF + 1..].first_chunk() else { return 0 };
        let (bytes, next) = (load(bytes), load(next));
        let quotes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'"'.cast_signed()));
        let colons = _mm256_cmpeq_epi8(next, _mm256_set1_epi8(b':'.cast_signed()));
        let backslashes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'\\'.cast_signed()));
        self.quotes[HALF] = _mm256_add_epi8(self.quotes[HALF], quotes);
        self.least = _mm256_min_epu8(self.least, bytes);
        self.backslashes = _mm256_or_si256(self.backslashes, backslashes);
        _mm256_movemask_epi8(_mm256_and_si256(quotes, colons)).cast_unsigned()
    }
}

/// How many there are, given less one for each by lanes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn sum(negative: __m256i) -> u64 {
    let zero = _mm256_setzero_si256();
    let sums = _mm256_sad_epu8(_mm256_sub_epi8(zero, negative), zero);
    let sums = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    (_mm_cvtsi128_si64(sums) + _mm_extract_epi64::<1>(sums)).cast_unsigned()
}

/// Writes down the places of a block's set bits, four at a time; says how many places there are then.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[expect(clippy::cast_possible_truncation, reason = "no record surveyed is that long")]
fn note(places: &mut [u16; PLACES], found: usize, mut mask: u64, at: usize) -> usize {
    let count = mask.count_ones() as usize;
    let mut from = found;
    loop {
        let Some(four) = places[from..].first_chunk_mut::<4>() else { return MOST + 1 };
        for place in four {
            *place = (at + mask.trailing_zeros() as usize) as u16;
            mask &= mask.wrapping_sub(1);
        }
        if mask == 0 {
            return found + count;
        }
        from += 4;
    }
}
