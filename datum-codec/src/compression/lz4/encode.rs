//! Writes LZ4 frames of independent blocks.

use super::{INDEPENDENT, MAGIC, STORED, VERSION, header_checksum};
use crate::compression::{Codec, CompressError};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

/// Keeps the match table between calls.
#[derive(Default)]
pub(in crate::compression) struct Encoder {
    table: CompressTable,
}

impl Encoder {
    /// Appends one frame: independent blocks of the smallest legal size that holds the input (64 KiB to 4 MiB), since few
    /// large blocks compress better and decode faster; no checksums, because the batch around it has one.
    pub(in crate::compression) fn compress(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressError> {
        let (size_code, max_block) = block_size(input.len());
        let descriptor = [VERSION | INDEPENDENT, size_code];
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&descriptor);
        out.push(header_checksum(&descriptor));
        for block in input.chunks(max_block) {
            self.block(block, out)?;
        }
        out.extend_from_slice(&0u32.to_le_bytes());
        Ok(())
    }

    fn block(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        let at = out.len();
        out.resize(at + 4 + get_maximum_output_size(block.len()), 0);
        let len =
            compress_into_with_table(block, &mut out[at + 4..], &mut self.table).map_err(|_| library())?;
        let stored = len >= block.len();
        if stored {
            out[at + 4..at + 4 + block.len()].copy_from_slice(block);
        }
        let len = if stored { block.len() } else { len };
        let size = u32::try_from(len).map_err(|_| library())? | if stored { STORED } else { 0 };
        out[at..at + 4].copy_from_slice(&size.to_le_bytes());
        out.truncate(at + 4 + len);
        Ok(())
    }
}

fn block_size(input: usize) -> (u8, usize) {
    match input {
        0..=0x1_0000 => (0x40, 64 << 10),
        0x1_0001..=0x4_0000 => (0x50, 256 << 10),
        0x4_0001..=0x10_0000 => (0x60, 1 << 20),
        _ => (0x70, 4 << 20),
    }
}

fn library() -> CompressError {
    CompressError::Library { codec: Codec::Lz4 }
}
