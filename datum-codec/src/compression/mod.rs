//! Block compression: gzip, Snappy, LZ4 and Zstandard, each in the framing that Kafka's record batches use.
//!
//! A [`Compressor`] and a [`Decompressor`] keep their contexts and tables between calls; make one of each per task and
//! reuse it. Neither allocates per call once warm, except for output that grows.
//!
//! # Bounds
//! Decompression never trusts a size that the data claims. Output grows step by step with what was really produced and
//! stops at the caller's limit with [`DecompressError::TooLarge`]; so a few hostile bytes cannot cost more memory than
//! the limit, nor more than a small multiple of the input before the data has proved itself.
//!
//! # Errors
//! Damaged, cut or foreign data is a typed [`DecompressError`]; nothing here panics on any input (property-tested and
//! fuzzed). Checksums inside the frames are verified where they are present.
//!
//! # Costs
//! LZ4 frames are walked here and each independent block goes to the C library's block decoder, which takes three quarters of
//! `lz4_flex`'s time on batches of JSON; frame decoders over a reader cost two to three times as much. Blocks of 256 KiB and more decode about 30 % faster than the 64 KiB that most producers
//! write, so [`Compressor`] chooses the block size by the input.

mod error;
mod gzip;
mod lz4;
mod output;
mod snappy;
mod zstd;

pub use error::{CompressError, DecompressError, Fault};

use output::Output;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// gzip (RFC 1952), one or more members.
    Gzip,
    /// Snappy: written in the framing of the xerial library, as the Java client does; read with or without it.
    Snappy,
    /// The LZ4 frame format.
    Lz4,
    /// Zstandard (RFC 8878), one or more frames.
    Zstd,
}

impl Codec {
    /// Every codec, for tests and listings.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The usual lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Compresses whole blocks; keeps its contexts.
#[derive(Default)]
pub struct Compressor {
    gzip: Option<gzip::Deflater>,
    snappy: Option<snap::raw::Encoder>,
    lz4: lz4::Encoder,
    zstd: Option<zstd::Compressor>,
}

impl Compressor {
    /// A compressor; contexts are made at first use.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `input`, compressed, to `out`.
    ///
    /// `level` is the codec's own: gzip 1 to 9 (default 6), Zstandard -7 to 22 (default 3); LZ4 and Snappy have one level
    /// and ignore it. A level outside the range is taken as the nearest one inside. Higher levels are smaller and slower.
    ///
    /// # Errors
    /// [`CompressError`]: the codec's library failed, for instance without memory, or the input exceeds 4 GiB. `out` is
    /// then as it was.
    pub fn compress(
        &mut self,
        codec: Codec,
        level: Option<i32>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressError> {
        let before = out.len();
        let result = match codec {
            Codec::Gzip => self.gzip.get_or_insert_default().compress(level, input, out),
            Codec::Snappy => {
                snappy::compress(self.snappy.get_or_insert_with(snap::raw::Encoder::new), input, out)
            }
            Codec::Lz4 => self.lz4.compress(input, out),
            Codec::Zstd => zstd::compress(&mut self.zstd, level, input, out),
        };
        if result.is_err() {
            out.truncate(before);
        }
        result
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// Decompresses whole blocks; keeps its contexts.
#[derive(Default)]
pub struct Decompressor {
    gzip: Option<flate2::Decompress>,
    snappy: snap::raw::Decoder,
    zstd: Option<zstd::Decompressor>,
}

impl Decompressor {
    /// A decompressor; contexts are made at first use.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decompresses all of `input` into the start of `out` and returns how many bytes that gave.
    ///
    /// `out` is a scratch buffer: its content is overwritten from the start and it grows as needed, never above
    /// `max_output` bytes; its length afterwards says nothing. Give the same one again and nothing is allocated or zeroed.
    ///
    /// # Errors
    /// [`DecompressError`]; `out`'s content is then unspecified.
    pub fn decompress(
        &mut self,
        codec: Codec,
        input: &[u8],
        out: &mut Vec<u8>,
        max_output: usize,
    ) -> Result<usize, DecompressError> {
        let mut output = Output::new(codec, out, max_output);
        match codec {
            Codec::Gzip => {
                let inflater = self.gzip.get_or_insert_with(|| flate2::Decompress::new(false));
                gzip::decompress(inflater, input, &mut output)?;
            }
            Codec::Snappy => snappy::decompress(&mut self.snappy, input, &mut output)?,
            Codec::Lz4 => lz4::decompress(input, &mut output)?,
            Codec::Zstd => zstd::decompress(&mut self.zstd, input, &mut output)?,
        }
        Ok(output.written())
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
