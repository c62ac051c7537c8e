//! Snappy, raw or in the framing of the xerial library.
//!
//! The framing: `\x82SNAPPY\0`, two 32-bit versions, then chunks of a 32-bit big-endian length and one raw Snappy block.
//! The Java client writes it; librdkafka writes one raw block. Readers of either accept both, and so do we.

use super::{Codec, CompressError, DecompressError, Fault, Output};
use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const HEADER_LEN: usize = 16;
/// Raw bytes per chunk. Snappy itself works in 64 KiB pieces, so larger chunks only save four bytes each; readers size
/// their buffers by it.
const CHUNK: usize = 256 << 10;
/// A copy element makes at most 64 bytes out of 3 (or 11 out of 2), so no block can expand by more.
const MAX_RATIO: usize = 22;

pub(super) fn compress(encoder: &mut Encoder, input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes());
    for chunk in input.chunks(CHUNK) {
        let at = out.len();
        out.resize(at + 4 + max_compress_len(chunk.len()), 0);
        let len = encoder.compress(chunk, &mut out[at + 4..]).map_err(|_| library())?;
        let prefix = u32::try_from(len).map_err(|_| library())?;
        out[at..at + 4].copy_from_slice(&prefix.to_be_bytes());
        out.truncate(at + 4 + len);
    }
    Ok(())
}

pub(super) fn decompress(
    decoder: &mut Decoder,
    input: &[u8],
    output: &mut Output<'_>,
) -> Result<(), DecompressError> {
    if !input.starts_with(&MAGIC) {
        return block(decoder, input, output);
    }
    let mut rest = input.get(HEADER_LEN..).ok_or_else(truncated)?;
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let len = usize::try_from(u32::from_be_bytes(*len)).map_err(|_| truncated())?;
        let (chunk, after) = after.split_at_checked(len).ok_or_else(truncated)?;
        block(decoder, chunk, output)?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(truncated()) }
}

fn block(decoder: &mut Decoder, input: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    if input.is_empty() {
        return Err(truncated());
    }
    let claimed = decompress_len(input).map_err(|_| corrupt(Fault::Header))?;
    if claimed > input.len().saturating_mul(MAX_RATIO) {
        return Err(corrupt(Fault::Size));
    }
    if claimed > output.left() {
        return Err(output.too_large());
    }
    let (buffer, at) = output.room(claimed)?;
    let produced = decoder.decompress(input, &mut buffer[at..]).map_err(|_| corrupt(Fault::Stream))?;
    output.advance(produced);
    Ok(())
}

fn library() -> CompressError {
    CompressError::Library { codec: Codec::Snappy }
}

fn truncated() -> DecompressError {
    DecompressError::Truncated { codec: Codec::Snappy }
}

fn corrupt(fault: Fault) -> DecompressError {
    DecompressError::Corrupt { codec: Codec::Snappy, fault }
}
