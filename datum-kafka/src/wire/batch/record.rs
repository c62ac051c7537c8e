//! A decoded batch: the records' bytes once, and where each part of each record lies in them.

use super::pool::PooledIndex;
use super::{BatchHeader, TimestampType};
use crate::wire::varint;
use bytes::Bytes;
use std::str::Utf8Error;

/// Where a record's parts lie in the body. Positions fit 32 bits because the body does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) key: Span,
    pub(super) value: Span,
    pub(super) headers_at: u32,
    pub(super) header_count: u32,
}

/// A slice of the body, or null.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: u32,
    /// -1 is null.
    pub(super) len: i32,
}

impl Span {
    fn of(self, body: &[u8]) -> Option<&[u8]> {
        let start = self.start as usize;
        let len = usize::try_from(self.len).ok()?;
        body.get(start..start + len)
    }
}

/// The records of one batch, decompressed and indexed, none of them copied.
///
/// Records are views ([`RecordBatch::iter`], [`RecordBatch::get`]); a part that has to outlive the batch is shared by
/// reference count ([`Record::value_bytes`]), which keeps the whole batch's bytes alive. Dropping the batch, and what was
/// shared from it, gives its buffers back to the decoder.
#[derive(Debug)]
pub struct RecordBatch {
    header: BatchHeader,
    body: Bytes,
    index: PooledIndex,
}

impl RecordBatch {
    pub(super) fn new(header: BatchHeader, body: Bytes, index: PooledIndex) -> Self {
        Self { header, body, index }
    }

    /// What the batch's header says.
    #[must_use]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none; compaction leaves such batches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The offset after this batch, also when its last records were compacted away.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.header.next_offset()
    }

    /// Bytes of the decompressed records, which this batch keeps in memory.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.body.len()
    }

    /// The record at a position of the batch (not at an offset).
    #[must_use]
    pub fn get(&self, position: usize) -> Option<Record<'_>> {
        self.index.get(position).map(|entry| Record { batch: self, entry })
    }

    /// The position of the first record at or after `offset`; the length if there is none. A fetch may begin inside a
    /// batch: what is before the offset asked for has to be skipped.
    #[must_use]
    pub fn position_of(&self, offset: i64) -> usize {
        let base = self.header.base_offset;
        self.index.partition_point(|entry| base + i64::from(entry.offset_delta) < offset)
    }

    /// The records in offset order.
    pub fn iter(&self) -> Records<'_> {
        self.iter_from(0)
    }

    /// The records from a position on, in offset order.
    pub fn iter_from(&self, position: usize) -> Records<'_> {
        let entries = self.index.get(position..).unwrap_or_default();
        Records { batch: self, entries: entries.iter() }
    }
}

impl<'a> IntoIterator for &'a RecordBatch {
    type Item = Record<'a>;
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

/// Iterates over a batch's records.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    batch: &'a RecordBatch,
    entries: std::slice::Iter<'a, Entry>,
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        self.entries.next().map(|entry| Record { batch: self.batch, entry })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl DoubleEndedIterator for Records<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entries.next_back().map(|entry| Record { batch: self.batch, entry })
    }
}

impl ExactSizeIterator for Records<'_> {}
impl std::iter::FusedIterator for Records<'_> {}

/// One record, seen in its batch.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    batch: &'a RecordBatch,
    entry: &'a Entry,
}

impl<'a> Record<'a> {
    /// Its offset in the partition.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.batch.header.base_offset + i64::from(self.entry.offset_delta)
    }

    /// Milliseconds since 1970: the producer's, or with log append time the broker's, which is the batch's largest.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        let header = &self.batch.header;
        match header.attributes.timestamp_type() {
            TimestampType::CreateTime => header.base_timestamp.saturating_add(self.entry.timestamp_delta),
            TimestampType::LogAppendTime => header.max_timestamp,
        }
    }

    /// The key, or null.
    #[inline]
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.entry.key.of(&self.batch.body)
    }

    /// The value, or null (a tombstone).
    #[inline]
    #[must_use]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.entry.value.of(&self.batch.body)
    }

    /// The key, shared; costs a reference count and keeps the batch's bytes alive.
    #[must_use]
    pub fn key_bytes(&self) -> Option<Bytes> {
        self.key().map(|key| self.batch.body.slice_ref(key))
    }

    /// The value, shared; costs a reference count and keeps the batch's bytes alive.
    #[must_use]
    pub fn value_bytes(&self) -> Option<Bytes> {
        self.value().map(|value| self.batch.body.slice_ref(value))
    }

    /// The headers, in the order they were written; keys may repeat.
    #[must_use]
    pub fn headers(&self) -> Headers<'a> {
        let rest = self.batch.body.get(self.entry.headers_at as usize..).unwrap_or_default();
        Headers { rest, left: self.entry.header_count }
    }
}

/// Iterates over a record's headers.
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    rest: &'a [u8],
    left: u32,
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The key's bytes. The protocol says UTF-8, brokers do not check; see [`Header::key_str`].
    pub key: &'a [u8],
    /// The value, or null.
    pub value: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// The key as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn key_str(&self) -> Result<&'a str, Utf8Error> {
        std::str::from_utf8(self.key)
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    /// The index has checked all lengths, so `None` comes only at the end.
    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (key, rest) = take_blob(self.rest)?;
        let (value, rest) = take_blob(rest)?;
        self.rest = rest;
        Some(Header { key: key?, value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Headers<'_> {}
impl std::iter::FusedIterator for Headers<'_> {}

/// A blob with its varint length (-1 is null), and what follows it; `None` if the bytes end or the length is below -1.
#[inline]
pub(super) fn take_blob(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (len, at) = varint::read_varint(bytes)?;
    let rest = &bytes[at..];
    match usize::try_from(len) {
        Ok(len) => rest.split_at_checked(len).map(|(blob, rest)| (Some(blob), rest)),
        Err(_) => (len == -1).then_some((None, rest)),
    }
}
