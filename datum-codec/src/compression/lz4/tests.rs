//! Frames written by hand or by the reference library, and frames that lie.

use super::{
    CONTENT_CHECKSUM, CONTENT_SIZE, INDEPENDENT, MAGIC, STORED, VERSION, header_checksum, xxh32::xxh32,
};
use crate::compression::{Codec, DecompressError, Decompressor, Fault};

const LIMIT: usize = 16 << 20;

fn read(frame: &[u8]) -> Result<Vec<u8>, DecompressError> {
    let mut out = Vec::new();
    let len = Decompressor::new().decompress(Codec::Lz4, frame, &mut out, LIMIT)?;
    out.truncate(len);
    Ok(out)
}

fn frame(flags: u8, size_code: u8, extra: &[u8], blocks: &[(u32, &[u8])], tail: &[u8]) -> Vec<u8> {
    let mut descriptor = vec![VERSION | flags, size_code];
    descriptor.extend_from_slice(extra);
    let mut out = MAGIC.to_le_bytes().to_vec();
    out.extend_from_slice(&descriptor);
    out.push(header_checksum(&descriptor));
    for (size, data) in blocks {
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(data);
    }
    out.extend_from_slice(&0u32.to_le_bytes());
    out.extend_from_slice(tail);
    out
}

fn stored(data: &[u8]) -> (u32, &[u8]) {
    (u32::try_from(data.len()).unwrap() | STORED, data)
}

#[test]
fn stored_blocks_content_size_and_checksum() {
    let size = 5u64.to_le_bytes();
    let sum = xxh32(b"hello").to_le_bytes();
    let flags = INDEPENDENT | CONTENT_SIZE | CONTENT_CHECKSUM;
    let good = frame(flags, 0x40, &size, &[stored(b"hel"), stored(b"lo")], &sum);
    assert_eq!(read(&good).unwrap(), b"hello");

    let wrong_size = frame(flags, 0x40, &6u64.to_le_bytes(), &[stored(b"hello")], &sum);
    assert_eq!(read(&wrong_size), Err(DecompressError::Corrupt { codec: Codec::Lz4, fault: Fault::Size }));
    let wrong_sum = frame(flags, 0x40, &size, &[stored(b"hellO")], &sum);
    assert_eq!(read(&wrong_sum), Err(DecompressError::Corrupt { codec: Codec::Lz4, fault: Fault::Checksum }));
}

/// A linked block: its only match reaches into the block before it.
#[test]
fn linked_blocks_see_the_output_before_them() {
    // Token: no literals, match of 4 + 4; offset 8; then five last literals.
    let second: &[u8] = &[0x04, 8, 0, 0x50, b'v', b'w', b'x', b'y', b'z'];
    let blocks = [stored(b"abcdefgh"), (9, second)];
    assert_eq!(read(&frame(0, 0x40, &[], &blocks, &[])).unwrap(), b"abcdefghabcdefghvwxyz");
    let independent = read(&frame(INDEPENDENT, 0x40, &[], &blocks, &[]));
    assert_eq!(independent, Err(DecompressError::Corrupt { codec: Codec::Lz4, fault: Fault::Stream }));
}

/// History ends where the frame began: a second frame does not see the first one's output.
#[test]
fn history_does_not_cross_frames() {
    let first = frame(0, 0x40, &[], &[stored(b"abcdefgh")], &[]);
    let second: &[u8] = &[0x04, 8, 0, 0x50, b'v', b'w', b'x', b'y', b'z'];
    let both = [first.clone(), frame(0, 0x40, &[], &[(9, second)], &[])].concat();
    assert!(read(&both).is_err());
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &first, &first].concat();
    assert_eq!(read(&skippable).unwrap(), b"abcdefghabcdefgh");
}

#[test]
fn headers_outside_the_format_are_refused() {
    let corrupt = |fault| Err(DecompressError::Corrupt { codec: Codec::Lz4, fault });
    assert_eq!(read(&frame(INDEPENDENT | 1, 0x40, &[0; 4], &[], &[])), corrupt(Fault::Header), "dictionary");
    assert_eq!(read(&frame(INDEPENDENT | 2, 0x40, &[], &[], &[])), corrupt(Fault::Header), "reserved bit");
    assert_eq!(read(&frame(INDEPENDENT, 0x30, &[], &[], &[])), corrupt(Fault::Header), "block size");
    let mut damaged = frame(INDEPENDENT, 0x40, &[], &[], &[]);
    damaged[6] ^= 1;
    assert_eq!(read(&damaged), corrupt(Fault::Checksum));
    let large = vec![0u8; (64 << 10) + 1];
    assert_eq!(read(&frame(INDEPENDENT, 0x40, &[], &[stored(&large)], &[])), corrupt(Fault::Size));
    assert_eq!(read(b"not lz4!"), corrupt(Fault::Magic));
    assert_eq!(read(b""), Err(DecompressError::Truncated { codec: Codec::Lz4 }));
}

/// A frame that promises 4 MiB blocks and has twenty bytes must not cost 4 MiB.
#[test]
fn a_small_block_does_not_buy_a_large_buffer() {
    let block: &[u8] = &[0x50, b'v', b'w', b'x', b'y', b'z'];
    let bytes = frame(INDEPENDENT, 0x70, &[], &[(6, block)], &[]);
    let mut out = Vec::new();
    assert_eq!(Decompressor::new().decompress(Codec::Lz4, &bytes, &mut out, LIMIT), Ok(5));
    assert!(out.capacity() < 4_096, "{}", out.capacity());
}
