//! What of the vector instructions needs `unsafe`: calling what only some processors can run, loads and stores, and a
//! look at a record without asking at each byte whether it has one more.
//!
//! Two ways lead through here: `indexed`, which reads a record at once, and `walk`, which goes from value to value.

#![allow(unsafe_code, reason = "vector loads, calls of what only some processors can run, ASCII as text")]

use std::arch::x86_64::{__m128i, __m256i, _mm_loadu_si128, _mm256_loadu_si256, _mm256_storeu_si256};
use std::marker::PhantomData;
use std::str::Utf8Error;

pub(super) use super::index::Index;
use super::shape::{MAX_LENGTH, Step};
pub(super) use super::survey::Scratch;
use super::{indexed, walk};
use crate::projected::{Field, Slot, Unescaped};

/// Shows that this processor has AVX2 and the sets of bit manipulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        all.then_some(Self(()))
    }

    /// Fills the slots, if the record is seen to fit.
    #[inline]
    pub(super) fn read_indexed(
        self,
        index: &Index,
        scratch: &mut Scratch,
        input: &[u8],
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> bool {
        // SAFETY: that `self` exists shows that the processor has what the function is compiled for.
        unsafe { indexed::read(index, scratch, input, fields, slots, unescaped) }.is_some()
    }

    /// Where the record ends, if it fits.
    #[inline]
    pub(super) fn read(
        self,
        steps: &[Step],
        input: &[u8],
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> Option<usize> {
        // SAFETY: that `self` exists shows that the processor has what the function is compiled for.
        unsafe { walk::read(steps, input, fields, slots, unescaped) }
    }
}

/// How many bytes a step looks at: a literal, whose length is taken for 31 at most, and the beginning of a value.
pub(super) const REACH: usize = 31 + VALUE;

const _: () = assert!(MAX_LENGTH <= 31, "a step must not look further");

/// How many bytes of a value are looked at: a quote or sign, and two blocks of 32.
pub(super) const VALUE: usize = 65;

/// A stretch of the record, or the copy of its end, each byte under the offset it has in the record.
#[derive(Clone, Copy)]
pub(super) struct Window<'w> {
    /// Where the record's byte at offset zero would be, which need not be anywhere: so an offset is all that stands
    /// between the end of a value and the load of the next.
    origin: *const u8,
    /// The offset of the first byte.
    start: usize,
    /// How far behind the first byte a step may begin.
    span: usize,
    lifetime: PhantomData<&'w [u8]>,
}

impl<'w> Window<'w> {
    /// From the first byte on; or, if the record is so short that this would be nothing, `tail`'s.
    pub(super) fn first(input: &'w [u8], tail: &'w Tail) -> Self {
        match input.len().checked_sub(REACH) {
            Some(span) => Self { origin: input.as_ptr(), start: 0, span, lifetime: PhantomData },
            None => tail.window(),
        }
    }

    /// The bytes from this offset of the record on.
    #[inline(always)]
    pub(super) fn reach(self, at: usize) -> Option<&'w [u8; REACH]> {
        if at.wrapping_sub(self.start) > self.span {
            return None;
        }
        // SAFETY: `origin + start` is where a slice or array of `span + REACH` bytes begins that both constructors
        // borrow for `'w`, and `at` lies between `start` and `start + span`. An array of bytes has no alignment.
        Some(unsafe { &*self.origin.wrapping_add(at).cast() })
    }
}

/// The end of the record, copied.
pub(super) struct Tail {
    bytes: [u8; 2 * REACH],
    /// The offset in the record of the first byte copied.
    start: usize,
}

impl Tail {
    pub(super) const EMPTY: Self = Self { bytes: [0; 2 * REACH], start: 0 };

    #[inline(always)]
    pub(super) fn fill(&mut self, input: &[u8]) {
        match input.last_chunk::<REACH>() {
            // Of known length, this takes three moves.
            Some(end) => self.bytes[..REACH].copy_from_slice(end),
            None => self.bytes[..input.len()].copy_from_slice(input),
        }
        self.start = input.len().saturating_sub(REACH);
    }

    pub(super) const fn window(&self) -> Window<'_> {
        let origin = self.bytes.as_ptr().wrapping_sub(self.start);
        Window { origin, start: self.start, span: REACH, lifetime: PhantomData }
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is to 32 readable bytes, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn load_half(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference is to 16 readable bytes, and the load asks for no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn load_words(words: &[u16; 16]) -> __m256i {
    // SAFETY: the reference is to 32 readable bytes, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn store_words(words: &mut [u16; 16], lanes: __m256i) {
    // SAFETY: the reference is to 32 writable bytes, and the store asks for no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), lanes) }
}

/// These bytes as text, which it mostly takes a look at their highest bits to see.
#[inline]
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, Utf8Error> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        return Ok(unsafe { str::from_utf8_unchecked(bytes) });
    }
    str::from_utf8(bytes)
}
