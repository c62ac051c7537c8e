//! Zstandard, RFC 8878, over reused contexts.

use super::{Codec, CompressError, DecompressError, Fault, Output};
use zstd::zstd_safe::{
    CCtx, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, compress_bound, find_frame_compressed_size,
    get_frame_content_size,
};

pub(super) type Compressor = CCtx<'static>;
pub(super) type Decompressor = DCtx<'static>;

const DEFAULT_LEVEL: i32 = 3;
const LEVELS: std::ops::RangeInclusive<i32> = -7..=22;
/// The window that a frame may always ask for, as a power of two: 8 MiB, what all but the highest levels write at most.
const MIN_WINDOW_LOG: u32 = 23;
/// The largest window that any frame may ask for, as a power of two: 128 MiB, what the highest level writes and other readers
/// accept. The context allocates it by the frame's claim, so within these two it follows the limit of the output.
const MAX_WINDOW_LOG: u32 = 27;
/// First step of output when nothing is known about the ratio.
const STEP: usize = 64 << 10;

pub(super) fn compress(
    context: &mut Option<Compressor>,
    level: Option<i32>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    let context = match context {
        Some(context) => context,
        None => context.insert(CCtx::try_create().ok_or(library())?),
    };
    let level = level.unwrap_or(DEFAULT_LEVEL).clamp(*LEVELS.start(), *LEVELS.end());
    let at = out.len();
    out.resize(at + compress_bound(input.len()), 0);
    let len = context.compress(&mut out[at..], input, level).map_err(|_| library())?;
    out.truncate(at + len);
    Ok(())
}

pub(super) fn decompress(
    context: &mut Option<Decompressor>,
    input: &[u8],
    output: &mut Output<'_>,
) -> Result<(), DecompressError> {
    let context = match context {
        Some(context) => context,
        None => context.insert(DCtx::try_create().ok_or(no_context())?),
    };
    context.reset(ResetDirective::SessionOnly).map_err(|_| no_context())?;
    let window = DParameter::WindowLogMax(window_log(output.left()));
    context.set_parameter(window).map_err(|_| no_context())?;
    if let Some(size) = size_that_fits(input, output) {
        let (buffer, at) = output.room(size)?;
        let produced = context.decompress(&mut buffer[at..], input).map_err(|_| corrupt(Fault::Stream))?;
        output.advance(produced);
        return Ok(());
    }
    stream(context, input, output)
}

/// The claimed size, if the input is one frame and the claim fits what is there already: then it costs nothing to believe.
fn size_that_fits(input: &[u8], output: &Output<'_>) -> Option<usize> {
    let claimed = usize::try_from(get_frame_content_size(input).ok()??).ok()?;
    let alone = find_frame_compressed_size(input).is_ok_and(|size| size == input.len());
    (alone && claimed > 0 && claimed <= output.ready()).then_some(claimed)
}

fn stream(context: &mut Decompressor, input: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    let mut source = InBuffer::around(input);
    // An empty input is no frame; after each frame the context says 0.
    let mut pending = 1;
    while pending != 0 || source.pos() < input.len() {
        let rest = input.len() - source.pos();
        let wanted = output.ready().max(STEP.max(rest.saturating_mul(3)).min(output.left()));
        // At the limit one more byte is asked for, since the frame may just end here.
        let mut past_limit = [0u8; 1];
        let full = output.left() == 0;
        let before = source.pos();
        let produced = {
            let (buffer, at): (&mut [u8], usize) =
                if full { (&mut past_limit, 0) } else { output.room(wanted)? };
            let mut target = OutBuffer::around(&mut buffer[at..]);
            pending =
                context.decompress_stream(&mut target, &mut source).map_err(|_| corrupt(Fault::Stream))?;
            target.pos()
        };
        if full && produced > 0 {
            return Err(output.too_large());
        }
        output.advance(produced);
        if produced == 0 && source.pos() == before && pending != 0 {
            return Err(DecompressError::Truncated { codec: Codec::Zstd });
        }
    }
    Ok(())
}

fn window_log(limit: usize) -> u32 {
    limit
        .checked_next_power_of_two()
        .map_or(MAX_WINDOW_LOG, usize::ilog2)
        .clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG)
}

fn library() -> CompressError {
    CompressError::Library { codec: Codec::Zstd }
}

fn no_context() -> DecompressError {
    DecompressError::NoContext { codec: Codec::Zstd }
}

fn corrupt(fault: Fault) -> DecompressError {
    DecompressError::Corrupt { codec: Codec::Zstd, fault }
}
