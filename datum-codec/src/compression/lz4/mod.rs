//! The LZ4 frame format, walked here, over the block functions of two libraries.
//!
//! Independent blocks go to the C library through its safe binding, because it is faster (132 against 173 ns for a record of 467
//! bytes). Linked blocks, which no Kafka client writes, go to `lz4_flex`; so does a block that the C library refuses, because that
//! library does not say why.
//!
//! ```text
//! magic 04 22 4d 18 │ FLG │ BD │ [content size u64] │ header checksum
//! block: size u32 (top bit: stored) │ data │ [block checksum u32]      repeated
//! end mark 0 │ [content checksum u32]
//! ```
//! All numbers are little-endian, all checksums are xxHash-32. Blocks are independent, or linked: then they refer to the
//! 64 KiB of output before them. Several frames and skippable frames may follow each other.
//!
//! Source: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>.

mod encode;
mod xxh32;

pub(super) use encode::Encoder;

use super::{Codec, DecompressError, Fault, Output};
use lz4_flex::block::{decompress_into, decompress_into_with_dict};
use xxh32::xxh32;

const MAGIC: u32 = 0x184d_2204;
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184d_2a50..=0x184d_2a5f;
const VERSION_MASK: u8 = 0b1100_0000;
const VERSION: u8 = 0b0100_0000;
const INDEPENDENT: u8 = 1 << 5;
const BLOCK_CHECKSUM: u8 = 1 << 4;
const CONTENT_SIZE: u8 = 1 << 3;
const CONTENT_CHECKSUM: u8 = 1 << 2;
const RESERVED: u8 = 1 << 1;
const DICTIONARY: u8 = 1;
const STORED: u32 = 1 << 31;
/// How far a linked block may refer back.
const HISTORY: usize = 64 << 10;
/// One byte of a block cannot make more than 255 bytes; 16 covers the last literals.
const MAX_RATIO: usize = 255;
const RATIO_SLACK: usize = 16;

pub(super) fn decompress(input: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    let mut rest = Cursor(input);
    loop {
        let magic = rest.u32()?;
        if magic == MAGIC {
            frame(&mut rest, output)?;
        } else if SKIPPABLE.contains(&magic) {
            let size = rest.u32()?;
            rest.take(to_usize(size)?)?;
        } else {
            return Err(corrupt(Fault::Magic));
        }
        if rest.0.is_empty() {
            return Ok(());
        }
    }
}

/// One frame after its magic.
fn frame(rest: &mut Cursor<'_>, output: &mut Output<'_>) -> Result<(), DecompressError> {
    let header = Header::read(rest)?;
    let start = output.written();
    loop {
        let size = rest.u32()?;
        if size == 0 {
            break;
        }
        let data = rest.take(to_usize(size & !STORED)?)?;
        if header.block_checksum && rest.u32()? != xxh32(data) {
            return Err(corrupt(Fault::Checksum));
        }
        if data.len() > header.max_block {
            return Err(corrupt(Fault::Size));
        }
        if size & STORED != 0 {
            output.append(data)?;
        } else {
            block(data, &header, start, output)?;
        }
    }
    if header.content_size.is_some_and(|size| size != (output.written() - start) as u64) {
        return Err(corrupt(Fault::Size));
    }
    if header.content_checksum && rest.u32()? != xxh32(output.since(start)) {
        return Err(corrupt(Fault::Checksum));
    }
    Ok(())
}

/// One compressed block of a frame whose output began at `start`.
fn block(data: &[u8], header: &Header, start: usize, output: &mut Output<'_>) -> Result<(), DecompressError> {
    let most = header.max_block.min(data.len().saturating_mul(MAX_RATIO).saturating_add(RATIO_SLACK));
    let capped = output.left() < most;
    let too_large = output.too_large();
    let (buffer, at) = output.room(most)?;
    let (before, free) = buffer.split_at_mut(at);
    let produced = if header.independent {
        // Sizes fit: a block and its output are at most 4 MiB, as the caller has checked.
        match lz4::block::decompress_to_buffer(data, i32::try_from(free.len()).ok(), free) {
            Ok(produced) => Ok(produced),
            Err(_) => decompress_into(data, free),
        }
    } else {
        let history = &before[start.max(at.saturating_sub(HISTORY))..];
        decompress_into_with_dict(data, free, history)
    };
    match produced {
        Ok(produced) => {
            output.advance(produced);
            Ok(())
        }
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if capped => Err(too_large),
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => Err(corrupt(Fault::Size)),
        Err(_) => Err(corrupt(Fault::Stream)),
    }
}

/// What a frame's header says.
struct Header {
    independent: bool,
    block_checksum: bool,
    content_checksum: bool,
    content_size: Option<u64>,
    max_block: usize,
}

impl Header {
    fn read(rest: &mut Cursor<'_>) -> Result<Self, DecompressError> {
        let descriptor = rest.0;
        let &[flags, sizes] = rest.array::<2>()?;
        if flags & VERSION_MASK != VERSION || flags & (RESERVED | DICTIONARY) != 0 {
            return Err(corrupt(Fault::Header));
        }
        let max_block = match sizes {
            0x40 => 64 << 10,
            0x50 => 256 << 10,
            0x60 => 1 << 20,
            0x70 => 4 << 20,
            _ => return Err(corrupt(Fault::Header)),
        };
        let content_size = match flags & CONTENT_SIZE {
            0 => None,
            _ => Some(u64::from_le_bytes(*rest.array()?)),
        };
        let covered = &descriptor[..descriptor.len() - rest.0.len()];
        let &[checksum] = rest.array::<1>()?;
        if checksum != header_checksum(covered) {
            return Err(corrupt(Fault::Checksum));
        }
        Ok(Self {
            independent: flags & INDEPENDENT != 0,
            block_checksum: flags & BLOCK_CHECKSUM != 0,
            content_checksum: flags & CONTENT_CHECKSUM != 0,
            content_size,
            max_block,
        })
    }
}

/// The second byte of the descriptor's hash.
fn header_checksum(descriptor: &[u8]) -> u8 {
    xxh32(descriptor).to_le_bytes()[1]
}

/// The bytes not yet read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], DecompressError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], DecompressError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, DecompressError> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

fn to_usize(size: u32) -> Result<usize, DecompressError> {
    usize::try_from(size).map_err(|_| corrupt(Fault::Size))
}

fn truncated() -> DecompressError {
    DecompressError::Truncated { codec: Codec::Lz4 }
}

fn corrupt(fault: Fault) -> DecompressError {
    DecompressError::Corrupt { codec: Codec::Lz4, fault }
}

#[cfg(test)]
mod tests;
