//! What all codecs have in common: round trips, limits, hostile input.

use super::{Codec, Compressor, DecompressError, Decompressor};
use proptest::prelude::*;

const LIMIT: usize = 64 << 20;

fn compress(codec: Codec, input: &[u8]) -> Vec<u8> {
    let mut out = b"kept".to_vec();
    Compressor::new().compress(codec, None, input, &mut out).unwrap();
    assert_eq!(&out[..4], b"kept");
    out.split_off(4)
}

fn decompress(codec: Codec, input: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
    let mut out = Vec::new();
    let len = Decompressor::new().decompress(codec, input, &mut out, limit)?;
    assert!(out.len() <= limit);
    out.truncate(len);
    Ok(out)
}

/// Text with repetitions, so that matches, literals and several blocks occur.
fn sample(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9u32;
    let mut out = Vec::with_capacity(len + 32);
    while out.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        out.extend_from_slice(format!("host-{:04}.example;", state >> 22).as_bytes());
    }
    out.truncate(len);
    out
}

#[test]
fn round_trips_at_the_edges_of_block_sizes() {
    for codec in Codec::ALL {
        for len in [0, 1, 12, 13, 65_535, 65_536, 65_537, 262_145, 1_048_577] {
            let input = sample(len);
            let packed = compress(codec, &input);
            assert!(decompress(codec, &packed, LIMIT).unwrap() == input, "{codec:?} {len}");
            assert!(len < 1_000 || packed.len() < len / 2, "{codec:?} {len} gave {}", packed.len());
        }
    }
}

#[test]
fn lz4_beyond_its_largest_block() {
    let input = sample((4 << 20) + 3);
    assert!(decompress(Codec::Lz4, &compress(Codec::Lz4, &input), LIMIT).unwrap() == input);
}

#[test]
fn incompressible_input_grows_little() {
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(300_000)
    .collect();
    for codec in Codec::ALL {
        let packed = compress(codec, &noise);
        assert!(packed.len() < noise.len() + 1_000, "{codec:?} {}", packed.len());
        assert!(decompress(codec, &packed, LIMIT).unwrap() == noise);
    }
}

#[test]
fn contexts_are_reusable_after_success_and_after_failure() {
    let (mut packer, mut unpacker) = (Compressor::new(), Decompressor::new());
    let mut scratch = Vec::new();
    for round in 0..4 {
        for codec in Codec::ALL {
            let input = sample(10_000 + round * 77);
            let mut packed = Vec::new();
            packer.compress(codec, Some(i32::try_from(round).unwrap()), &input, &mut packed).unwrap();
            let _ = unpacker.decompress(codec, &packed[..packed.len() / 2], &mut scratch, LIMIT);
            let len = unpacker.decompress(codec, &packed, &mut scratch, LIMIT).unwrap();
            assert!(scratch[..len] == input, "{codec:?}");
        }
    }
}

#[test]
fn the_limit_is_exact() {
    for codec in Codec::ALL {
        let input = sample(200_000);
        let packed = compress(codec, &input);
        assert!(decompress(codec, &packed, 200_000).unwrap() == input, "{codec:?}");
        for limit in [199_999, 65_536, 1, 0] {
            assert_eq!(
                decompress(codec, &packed, limit),
                Err(DecompressError::TooLarge { codec, limit }),
                "{codec:?} {limit}"
            );
        }
    }
}

/// A bomb costs the limit, not what it expands to.
#[test]
fn bombs_stop_at_the_limit() {
    let zeros = vec![0u8; 6 << 20];
    for codec in Codec::ALL {
        let bomb = compress(codec, &zeros);
        let mut out = Vec::new();
        let limit = 1 << 20;
        assert_eq!(
            Decompressor::new().decompress(codec, &bomb, &mut out, limit),
            Err(DecompressError::TooLarge { codec, limit })
        );
        assert!(out.capacity() <= 2 * limit, "{codec:?} {}", out.capacity());
    }
}

#[test]
fn every_cut_is_an_error() {
    for codec in Codec::ALL {
        let packed = compress(codec, &sample(3_000));
        for cut in 0..packed.len() {
            let result = decompress(codec, &packed[..cut], LIMIT);
            // The xerial framing has no end mark: a cut between its chunks is a shorter, legal stream.
            let legal = codec == Codec::Snappy && cut == 16;
            assert_eq!(result.is_err(), !legal, "{codec:?} cut at {cut}");
        }
    }
}

#[test]
fn several_members_and_frames_are_one_stream() {
    for codec in Codec::ALL {
        let one = compress(codec, b"first ");
        let mut both = one.clone();
        let second = compress(codec, b"second");
        both.extend_from_slice(if codec == Codec::Snappy { &second[16..] } else { &second });
        assert_eq!(decompress(codec, &both, LIMIT).unwrap(), b"first second", "{codec:?}");
    }
}

#[test]
fn snappy_without_framing_is_read() {
    let raw = snap::raw::Encoder::new().compress_vec(b"raw snappy, raw snappy, raw snappy").unwrap();
    assert_eq!(decompress(Codec::Snappy, &raw, LIMIT).unwrap(), b"raw snappy, raw snappy, raw snappy");
}

#[test]
fn gzip_headers_with_every_optional_field() {
    let plain = compress(Codec::Gzip, b"content");
    let mut full = plain[..10].to_vec();
    full[3] = 0b0001_1110;
    full.extend_from_slice(&[3, 0, b'x', b'y', b'z']);
    full.extend_from_slice(b"name\0comment\0");
    full.extend_from_slice(&[0, 0]);
    full.extend_from_slice(&plain[10..]);
    assert_eq!(decompress(Codec::Gzip, &full, LIMIT).unwrap(), b"content");
}

/// A claimed size of gigabytes in a few bytes must not be believed.
#[test]
fn claimed_sizes_are_not_trusted() {
    // Snappy: a varint length of 2^31 before two bytes of data.
    let snappy = [0x80, 0x80, 0x80, 0x80, 0x08, 0x00, 0x00];
    // Zstandard: magic, single segment with an 8-byte content size of 2^40, one empty last block.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0];
    for (codec, bytes) in [(Codec::Snappy, &snappy[..]), (Codec::Zstd, &zstd)] {
        let mut out = Vec::new();
        assert!(Decompressor::new().decompress(codec, bytes, &mut out, 4 << 30).is_err(), "{codec:?}");
        assert!(out.capacity() <= 1 << 20, "{codec:?} {}", out.capacity());
    }
}

/// A frame may ask for a window of 128 MiB in a few bytes: granted only where so much output is allowed.
#[test]
fn zstd_windows_follow_the_limit() {
    // Magic, no content size, window of 2^27, one last block of one repeated byte.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x1b, 0x00, 0x00, b'x'];
    assert_eq!(decompress(Codec::Zstd, &frame, 128 << 20).unwrap(), b"xxx");
    let refused = decompress(Codec::Zstd, &frame, 1 << 20);
    assert!(matches!(refused, Err(DecompressError::Corrupt { codec: Codec::Zstd, .. })), "{refused:?}");
    // A window of 8 MiB is always granted.
    let common = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3, 0x1b, 0x00, 0x00, b'x'];
    assert_eq!(decompress(Codec::Zstd, &common, 100).unwrap(), b"xxx");
}

fn any_codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(&Codec::ALL[..])
}

proptest! {
    #[test]
    fn any_input_round_trips(codec in any_codec(), input: Vec<u8>, level in proptest::option::of(-10i32..30)) {
        let mut packed = Vec::new();
        Compressor::new().compress(codec, level, &input, &mut packed).unwrap();
        prop_assert_eq!(decompress(codec, &packed, LIMIT).unwrap(), input);
    }

    #[test]
    fn noise_never_panics_and_stays_in_bounds(codec in any_codec(), input: Vec<u8>) {
        let _ = decompress(codec, &input, 1 << 20);
    }

    #[test]
    fn damaged_input_never_panics_and_stays_in_bounds(
        codec in any_codec(),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut packed = compress(codec, &sample(2_000));
        for (at, value) in flips {
            let at = at.index(packed.len());
            packed[at] = value;
        }
        packed.truncate(cut.index(packed.len()) + 1);
        let _ = decompress(codec, &packed, 8 << 10);
    }
}
