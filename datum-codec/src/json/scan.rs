//! Many bytes at once: where a string ends or breaks.
//!
//! The one module of this crate with `unsafe` in it: calls of SSE2 instructions, which touch no memory here. Elsewhere
//! the same is done within a machine word.

#![cfg_attr(
    target_feature = "sse2",
    allow(unsafe_code, reason = "the processor's instructions are unsafe to call")
)]

/// The first quote, backslash or control character from `at` on; the input's length if there is none.
#[inline(always)]
pub(super) fn find_special(input: &[u8], mut at: usize) -> usize {
    while let Some(block) = input.get(at..).and_then(<[u8]>::first_chunk) {
        if let Some(distance) = first_special(block) {
            return at + distance;
        }
        at += BLOCK;
    }
    let rest = input.get(at..).unwrap_or_default();
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20)).map_or(input.len(), |i| at + i)
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
use by_word::{BLOCK, first_special};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use sse2::{BLOCK, first_special};

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };

    pub(super) const BLOCK: usize = 16;

    /// Where the first special byte stands.
    #[inline(always)]
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_possible_truncation,
        reason = "bits are passed on as they are"
    )]
    pub(super) fn first_special(block: &[u8; BLOCK]) -> Option<usize> {
        let both = u128::from_le_bytes(*block);
        // SAFETY: these need SSE2, without which this module is not compiled, and work on registers alone.
        let marks = unsafe {
            // One load of sixteen bytes, once compiled.
            let bytes = _mm_set_epi64x((both >> 64) as i64, both as i64);
            let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
            let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
            // Unsigned: a byte is below 0x20 if it is the smaller of itself and 0x1F.
            let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
            _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) as u32
        };
        (marks != 0).then_some(marks.trailing_zeros() as usize)
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod by_word {
    pub(super) const BLOCK: usize = 8;

    /// Where the first special byte stands.
    #[inline(always)]
    pub(super) const fn first_special(block: &[u8; BLOCK]) -> Option<usize> {
        let word = u64::from_le_bytes(*block);
        // Each sets the high bit of each byte that is special. Above the lowest one, bits may also be set for bytes that
        // are not, since the subtractions borrow upwards; the lowest is always right. Of a byte below 0x80, each
        // subtraction sets the high bit if it goes below zero; other bytes are never special.
        let control = word.wrapping_sub(ONES * 0x20);
        let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
        let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
        let marks = (control | quote | backslash) & !word & (ONES << 7);
        if marks == 0 { None } else { Some((marks.trailing_zeros() / 8) as usize) }
    }

    const ONES: u64 = u64::MAX / 255;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop, proptest};

    use super::{by_word, find_special};

    const EDGES: [u8; 16] =
        [b'a', 0x1F, 0x20, 0x21, b'"', b'#', b'[', b'\\', b']', 0x7F, 0x80, 0x9F, 0xA2, 0xDC, 0xFF, 0];

    fn plain_search(bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|b| matches!(b, b'"' | b'\\') || *b < 0x20)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn specials_are_found_where_a_plain_search_finds_them(
            bytes in prop::collection::vec(prop::sample::select(EDGES.to_vec()), 0..70),
            plain in prop::collection::vec(any::<bool>(), 70),
        ) {
            // Most bytes are made plain, so that runs are long enough to cross words and blocks.
            let bytes: Vec<u8> = bytes.iter().zip(&plain).map(|(b, p)| if *p { b'x' } else { *b }).collect();
            for start in 0..=bytes.len() {
                let expected = plain_search(&bytes[start..]).map_or(bytes.len(), |i| start + i);
                assert_eq!(find_special(&bytes, start), expected);
            }
            for word in bytes.windows(by_word::BLOCK) {
                let word = word.first_chunk().unwrap();
                assert_eq!(by_word::first_special(word), plain_search(word));
            }
        }
    }

    #[test]
    fn each_byte_alone_is_judged_right() {
        for byte in 0..=u8::MAX {
            let mut bytes = [b'x'; 40];
            for at in 0..bytes.len() {
                bytes[at] = byte;
                assert_eq!(find_special(&bytes, 0), plain_search(&bytes).unwrap_or(40), "{byte:#x} at {at}");
                bytes[at] = b'x';
            }
        }
    }
}
