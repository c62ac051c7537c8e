//! gzip, RFC 1952, around raw deflate, so that the deflate state can be reused.

use super::{Codec, CompressError, DecompressError, Fault, Output};
use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const HEADER_LEN: usize = 10;
const TRAILER_LEN: usize = 8;
const FLAG_HEADER_CRC: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
const FLAGS_RESERVED: u8 = 0b1110_0000;
const DEFAULT_LEVEL: i32 = 6;
/// First step of output when nothing is known about the ratio.
const STEP: usize = 16 << 10;

/// A deflate state and the level it was made for.
#[derive(Default)]
pub(super) struct Deflater(Option<(i32, Compress)>);

impl Deflater {
    pub(super) fn compress(
        &mut self,
        level: Option<i32>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressError> {
        let level = level.unwrap_or(DEFAULT_LEVEL).clamp(1, 9);
        if self.0.as_ref().is_none_or(|(made_for, _)| *made_for != level) {
            self.0 = Some((level, Compress::new(Compression::new(level.unsigned_abs()), false)));
        }
        let Some((_, deflate)) = &mut self.0 else { return Err(library()) };
        deflate.reset();

        out.extend_from_slice(&[MAGIC[0], MAGIC[1], MAGIC[2], 0, 0, 0, 0, 0, 0, 0xff]);
        out.reserve(input.len() / 2 + 64);
        let mut consumed = 0;
        loop {
            let before = (deflate.total_in(), deflate.total_out());
            let status = deflate
                .compress_vec(&input[consumed..], out, FlushCompress::Finish)
                .map_err(|_| library())?;
            consumed += delta(before.0, deflate.total_in());
            match status {
                Status::StreamEnd => break,
                Status::Ok | Status::BufError => out.reserve(out.len().max(STEP)),
            }
        }
        let mut crc = Crc::new();
        crc.update(input);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&modulo_4_gib(input.len()));
        Ok(())
    }
}

pub(super) fn decompress(
    inflate: &mut Decompress,
    mut input: &[u8],
    output: &mut Output<'_>,
) -> Result<(), DecompressError> {
    loop {
        input = member(inflate, input, output)?;
        if input.is_empty() {
            return Ok(());
        }
    }
}

/// Reads one member and returns what follows it.
fn member<'a>(
    inflate: &mut Decompress,
    input: &'a [u8],
    output: &mut Output<'_>,
) -> Result<&'a [u8], DecompressError> {
    let mut rest = header(input)?;
    let start = output.written();
    inflate.reset(false);
    loop {
        let wanted = output.ready().max(STEP.max(rest.len().saturating_mul(2)).min(output.left()));
        // At the limit one more byte is asked for, since the stream may just end here.
        let mut past_limit = [0u8; 1];
        let full = output.left() == 0;
        let (status, read, produced) = if full {
            inflate_into(inflate, rest, &mut past_limit)?
        } else {
            let (buffer, at) = output.room(wanted)?;
            inflate_into(inflate, rest, &mut buffer[at..])?
        };
        if full && produced > 0 {
            return Err(output.too_large());
        }
        rest = &rest[read..];
        output.advance(produced);
        match status {
            Status::StreamEnd => break,
            Status::Ok | Status::BufError if read == 0 && produced == 0 => return Err(truncated()),
            Status::Ok | Status::BufError => {}
        }
    }
    let Some((trailer, after)) = rest.split_first_chunk::<TRAILER_LEN>() else { return Err(truncated()) };
    let content = output.since(start);
    let mut crc = Crc::new();
    crc.update(content);
    if trailer[..4] != crc.sum().to_le_bytes() {
        return Err(corrupt(Fault::Checksum));
    }
    if trailer[4..] != modulo_4_gib(content.len()) {
        return Err(corrupt(Fault::Size));
    }
    Ok(after)
}

fn inflate_into(
    inflate: &mut Decompress,
    input: &[u8],
    output: &mut [u8],
) -> Result<(Status, usize, usize), DecompressError> {
    let before = (inflate.total_in(), inflate.total_out());
    let status =
        inflate.decompress(input, output, FlushDecompress::None).map_err(|_| corrupt(Fault::Stream))?;
    Ok((status, delta(before.0, inflate.total_in()), delta(before.1, inflate.total_out())))
}

/// Steps over a member's header.
fn header(input: &[u8]) -> Result<&[u8], DecompressError> {
    let Some((fixed, mut rest)) = input.split_first_chunk::<HEADER_LEN>() else { return Err(truncated()) };
    if fixed[..3] != MAGIC {
        return Err(corrupt(Fault::Magic));
    }
    let flags = fixed[3];
    if flags & FLAGS_RESERVED != 0 {
        return Err(corrupt(Fault::Header));
    }
    if flags & FLAG_EXTRA != 0 {
        let (len, after) = rest.split_first_chunk::<2>().ok_or_else(truncated)?;
        rest = after.get(usize::from(u16::from_le_bytes(*len))..).ok_or_else(truncated)?;
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            let end = memchr::memchr(0, rest).ok_or_else(truncated)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & FLAG_HEADER_CRC != 0 {
        rest = rest.get(2..).ok_or_else(truncated)?;
    }
    Ok(rest)
}

fn delta(before: u64, after: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}

fn modulo_4_gib(len: usize) -> [u8; 4] {
    let [a, b, c, d, ..] = (len as u64).to_le_bytes();
    [a, b, c, d]
}

fn library() -> CompressError {
    CompressError::Library { codec: Codec::Gzip }
}

fn truncated() -> DecompressError {
    DecompressError::Truncated { codec: Codec::Gzip }
}

fn corrupt(fault: Fault) -> DecompressError {
    DecompressError::Corrupt { codec: Codec::Gzip, fault }
}
