//! From a batch's bytes to its records: CRC, decompression, one walk that checks and indexes every record.
//!
//! The steps, and what each one refuses:
//! 1. counts and CRC ([`BatchHeader::check_counts`], [`BatchHeader::check_crc`]; the CRC is always checked, it costs
//!    about 15 ns per 600-byte record);
//! 2. decompression into a pooled buffer, up to the limit;
//! 3. the walk: each record's length, key, value and headers must lie inside it and fill it; offsets must ascend within
//!    the batch; nothing may follow the last record.
//!
//! The stated record count only ends the walk. Memory for the index is reserved by the least size of a record instead.

use super::pool::{Pool, PooledIndex};
use super::record::{Entry, Span};
use super::{BatchError, BatchHeader, Codec, HEADER_LEN, RawBatch, RecordBatch, RecordFault};
use crate::wire::varint;
use datum_codec::compression::{self, DecompressError, Decompressor};
use std::sync::Arc;

/// Decodes batches; keeps its decompression contexts and gets its buffers back from the batches it made.
///
/// One per consuming task. The batches may outlive it.
#[derive(Debug)]
pub struct BatchDecoder {
    decompressor: Decompressor,
    pool: Arc<Pool>,
    max_body: usize,
}

impl Default for BatchDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchDecoder {
    /// The default limit of a decompressed batch, 128 MiB: a hundred times Kafka's default `message.max.bytes`, and no
    /// more than a small machine can bear.
    pub const DEFAULT_MAX_BODY: usize = 128 << 20;

    /// A decoder with the default limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_body(Self::DEFAULT_MAX_BODY)
    }

    /// A decoder that refuses batches whose records take more than `max_body` bytes when decompressed.
    ///
    /// Positions are kept in 32 bits, so values above 2 GiB count as 2 GiB.
    #[must_use]
    pub fn with_max_body(max_body: usize) -> Self {
        let max_body = max_body.min(i32::MAX as usize);
        Self { decompressor: Decompressor::new(), pool: Arc::default(), max_body }
    }

    /// Decodes one batch. Control batches are decoded like others; ask the header before giving records to users.
    ///
    /// An uncompressed batch shares the frame it came in; a compressed one has a buffer of its own.
    ///
    /// # Errors
    /// [`BatchError`], naming what is wrong and in which record. The decoder stays usable.
    pub fn decode(&mut self, batch: &RawBatch) -> Result<RecordBatch, BatchError> {
        let RawBatch { header, bytes } = batch;
        header.check_counts()?;
        header.check_crc(bytes)?;
        let codec = header.attributes.codec()?;
        let packed = bytes.slice(HEADER_LEN..header.size());
        let body = match compression_codec(codec) {
            // A batch that compaction has emptied keeps its codec and loses its records.
            Some(_) if header.record_count == 0 && packed.is_empty() => packed,
            Some(codec) => {
                let mut buffer = self.pool.take_body();
                match self.decompressor.decompress(codec, &packed, &mut buffer, self.max_body) {
                    Ok(len) => Pool::share(&self.pool, buffer, len),
                    Err(source) => {
                        self.pool.give_body(buffer);
                        return Err(refused(source, self.max_body));
                    }
                }
            }
            None => packed,
        };
        let mut index = Pool::take_index(&self.pool);
        walk(&body, header, &mut index)?;
        Ok(RecordBatch::new(*header, body, index))
    }
}

/// The compression behind a batch's codec, if it has one.
#[must_use]
pub(super) fn compression_codec(codec: Codec) -> Option<compression::Codec> {
    match codec {
        Codec::None => None,
        Codec::Gzip => Some(compression::Codec::Gzip),
        Codec::Snappy => Some(compression::Codec::Snappy),
        Codec::Lz4 => Some(compression::Codec::Lz4),
        Codec::Zstd => Some(compression::Codec::Zstd),
    }
}

fn refused(source: DecompressError, limit: usize) -> BatchError {
    match source {
        DecompressError::TooLarge { .. } => BatchError::BodyTooLarge { limit },
        source => BatchError::Decompress { source },
    }
}

/// Checks and indexes all records of a body.
fn walk(body: &[u8], header: &BatchHeader, index: &mut PooledIndex) -> Result<(), BatchError> {
    let count = usize::try_from(header.record_count).unwrap_or_default();
    index.entries.reserve(count.min(body.len() / MIN_RECORD));
    let mut at = 0;
    let mut least_delta = 0;
    for position in 0..count {
        let fault = |fault| BatchError::Record { position, fault };
        let (start, end) = extent(body, at).map_err(fault)?;
        let entry = record(body, start, end).map_err(fault)?;
        if entry.offset_delta < least_delta || entry.offset_delta > header.last_offset_delta {
            return Err(fault(RecordFault::OffsetDelta));
        }
        least_delta = entry.offset_delta.saturating_add(1);
        index.entries.push(entry);
        at = end;
    }
    match body.len() - at {
        0 => Ok(()),
        left => Err(BatchError::TrailingRecords { left }),
    }
}

/// Where the record at `at` begins and ends, its length prefix excluded.
#[inline]
fn extent(body: &[u8], at: usize) -> Result<(usize, usize), RecordFault> {
    let (len, used) = varint::read_varint(&body[at..]).ok_or(RecordFault::Truncated)?;
    let start = at + used;
    let len = usize::try_from(len).map_err(|_| RecordFault::Length)?;
    if len > body.len() - start {
        return Err(RecordFault::Truncated);
    }
    Ok((start, start + len))
}

/// Reads the record in `body[start..end]`.
#[inline]
fn record(body: &[u8], start: usize, end: usize) -> Result<Entry, RecordFault> {
    // The first byte holds attributes, of which none is defined.
    let Some((_, rest)) = body[start..end].split_first() else { return Err(RecordFault::Truncated) };
    let mut parts = Parts { rest, end };
    let timestamp_delta = parts.varlong()?;
    let offset_delta = parts.varint()?;
    let key = parts.span(RecordFault::KeyLength)?;
    let value = parts.span(RecordFault::ValueLength)?;
    let header_count = u32::try_from(parts.varint()?).map_err(|_| RecordFault::HeaderCount)?;
    let headers_at = parts.position();
    if header_count > 0 {
        parts.headers(header_count)?;
    }
    if !parts.rest.is_empty() {
        return Err(RecordFault::TrailingBytes);
    }
    Ok(Entry { timestamp_delta, offset_delta, key, value, headers_at, header_count })
}

/// What is left of a record that ends at `end` of the body.
struct Parts<'a> {
    rest: &'a [u8],
    end: usize,
}

impl Parts<'_> {
    #[inline]
    fn position(&self) -> u32 {
        position(self.end - self.rest.len())
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<i32, RecordFault> {
        let (value, used) = varint::read_varint(self.rest).ok_or(RecordFault::Truncated)?;
        self.rest = &self.rest[used..];
        Ok(value)
    }

    #[inline(always)]
    fn varlong(&mut self) -> Result<i64, RecordFault> {
        let (value, used) = varint::read_varlong(self.rest).ok_or(RecordFault::Truncated)?;
        self.rest = &self.rest[used..];
        Ok(value)
    }

    /// A blob's place; null has length -1.
    #[inline(always)]
    fn span(&mut self, fault: RecordFault) -> Result<Span, RecordFault> {
        let len = self.varint()?;
        let start = self.position();
        match usize::try_from(len) {
            Ok(bytes) => self.rest = self.rest.get(bytes..).ok_or(fault)?,
            Err(_) if len == -1 => {}
            Err(_) => return Err(fault),
        }
        Ok(Span { start, len })
    }

    #[inline(never)]
    fn headers(&mut self, count: u32) -> Result<(), RecordFault> {
        // A header takes at least two bytes, so a lying count ends here after at most half as many turns as there are bytes.
        for _ in 0..count {
            let key = self.span(RecordFault::HeaderLength)?;
            if key.len < 0 {
                return Err(RecordFault::HeaderLength);
            }
            self.span(RecordFault::HeaderLength)?;
        }
        Ok(())
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a body is at most 2 GiB, by the batch's length field or the limit"
)]
fn position(at: usize) -> u32 {
    at as u32
}

/// Length, attributes, timestamp delta, offset delta, key length, value length, header count: one byte each.
const MIN_RECORD: usize = 7;

#[cfg(test)]
mod tests;
