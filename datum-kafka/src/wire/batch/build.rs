//! From records to a batch: each record is encoded when it comes, closing fills the header around them.
//!
//! There is no list of records in between: a record's bytes go once into a growing buffer, its deltas relative to the
//! first record. Closing compresses that buffer, writes the header and computes the CRC.

use super::decode::compression_codec;
use super::header::LENGTH_END;
use super::{Attributes, BatchError, BatchHeader, Codec, HEADER_LEN};
use crate::wire::varint;
use datum_codec::compression::Compressor;

/// A record to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRecord<'a> {
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// The key, or null.
    pub key: Option<&'a [u8]>,
    /// The value, or null.
    pub value: Option<&'a [u8]>,
    /// The headers; keys may repeat.
    pub headers: &'a [NewHeader<'a>],
}

/// A header of a record to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewHeader<'a> {
    /// The key; should be UTF-8.
    pub key: &'a [u8],
    /// The value, or null.
    pub value: Option<&'a [u8]>,
}

/// What a batch is closed with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seal {
    /// How to compress the records.
    pub codec: Codec,
    /// The codec's level; its default if there is none.
    pub level: Option<i32>,
    /// Identity and sequence, for idempotence.
    pub producer: Option<Producer>,
    /// Whether the batch belongs to a transaction.
    pub transactional: bool,
}

/// Who writes a batch, and which of the producer's records come in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// The producer id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Sequence of the first record.
    pub base_sequence: i32,
}

/// A batch under construction. Reuse it: closing leaves it empty.
#[derive(Debug)]
pub struct BatchBuilder {
    /// Room for the header, then the encoded records.
    buffer: Vec<u8>,
    base_timestamp: i64,
    max_timestamp: i64,
    count: i32,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty batch with room for `bytes` of encoded records.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(HEADER_LEN + bytes);
        buffer.resize(HEADER_LEN, 0);
        Self { buffer, base_timestamp: -1, max_timestamp: -1, count: 0 }
    }

    /// How many records are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or_default()
    }

    /// Whether it has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size in bytes if it were closed now without compression.
    #[must_use]
    pub fn size(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes that [`BatchBuilder::append`] would add for this record.
    #[must_use]
    pub fn size_of(&self, record: &NewRecord<'_>) -> usize {
        let body = self.body_len(record);
        varint::unsigned_long_len((body as u64) << 1) + body
    }

    /// Adds a record and returns its offset delta, which is its position in the batch.
    ///
    /// # Errors
    /// [`BatchError::TooLong`] if the batch would exceed 2 GiB; it is then as before.
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<i32, BatchError> {
        if self.is_empty() {
            self.base_timestamp = record.timestamp;
            self.max_timestamp = record.timestamp;
        }
        let body = self.body_len(record);
        let size = self.buffer.len() + varint::MAX_VARINT_BYTES + body;
        let too_long = BatchError::TooLong { size };
        // With the whole batch below 2 GiB, every length in it fits its prefix.
        let (Ok(body), Ok(_), Some(count)) =
            (i32::try_from(body), i32::try_from(size), self.count.checked_add(1))
        else {
            return Err(too_long);
        };
        let delta = self.count;
        let out = &mut self.buffer;
        out.reserve(size - out.len());
        varint::put_varint(out, body);
        out.push(0);
        varint::put_varlong(out, record.timestamp.wrapping_sub(self.base_timestamp));
        varint::put_varint(out, delta);
        put_blob(out, record.key);
        put_blob(out, record.value);
        varint::put_varlong(out, length(record.headers.len()));
        for header in record.headers {
            put_blob(out, Some(header.key));
            put_blob(out, header.value);
        }
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self.count = count;
        Ok(delta)
    }

    /// Closes the batch: compresses, writes header and CRC, and leaves the builder empty.
    ///
    /// Base offset and leader epoch are 0 and -1, as a producer sends them; see [`BatchHeader::assign`].
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::Compress`] or [`BatchError::TooLong`]; the records are then still there.
    pub fn close(&mut self, seal: &Seal, compressor: &mut Compressor) -> Result<Vec<u8>, BatchError> {
        if self.is_empty() {
            return Err(BatchError::Empty);
        }
        let compressed = match compression_codec(seal.codec) {
            None => None,
            Some(codec) => {
                let mut out = vec![0; HEADER_LEN];
                compressor
                    .compress(codec, seal.level, &self.buffer[HEADER_LEN..], &mut out)
                    .map_err(|source| BatchError::Compress { source })?;
                Some(out)
            }
        };
        let size = compressed.as_ref().map_or(self.buffer.len(), Vec::len);
        let length = i32::try_from(size - LENGTH_END).map_err(|_| BatchError::TooLong { size })?;
        let header = self.header(seal, length);
        // An uncompressed batch is the builder's own buffer; else that stays for the next batch.
        let mut batch = compressed.unwrap_or_else(|| std::mem::take(&mut self.buffer));
        batch[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        BatchHeader::write_crc(&mut batch)?;
        self.clear();
        Ok(batch)
    }

    /// Throws the records away.
    pub fn clear(&mut self) {
        self.buffer.resize(HEADER_LEN, 0);
        self.base_timestamp = -1;
        self.max_timestamp = -1;
        self.count = 0;
    }

    fn header(&self, seal: &Seal, length: i32) -> BatchHeader {
        let producer = seal.producer.unwrap_or(Producer { id: -1, epoch: -1, base_sequence: -1 });
        BatchHeader {
            base_offset: 0,
            length,
            leader_epoch: -1,
            crc: 0,
            attributes: Attributes::default().with_codec(seal.codec).with_transactional(seal.transactional),
            last_offset_delta: self.count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: producer.base_sequence,
            record_count: self.count,
        }
    }

    /// Length of a record without its length prefix.
    fn body_len(&self, record: &NewRecord<'_>) -> usize {
        let base = if self.is_empty() { record.timestamp } else { self.base_timestamp };
        let headers: usize = record.headers.iter().map(|h| blob_len(Some(h.key)) + blob_len(h.value)).sum();
        1 + varint::varlong_len(record.timestamp.wrapping_sub(base))
            + varint::varint_len(self.count)
            + blob_len(record.key)
            + blob_len(record.value)
            + varint::varlong_len(length(record.headers.len()))
            + headers
    }
}

fn put_blob(out: &mut Vec<u8>, blob: Option<&[u8]>) {
    match blob {
        None => varint::put_varint(out, -1),
        Some(bytes) => {
            varint::put_varlong(out, length(bytes.len()));
            out.extend_from_slice(bytes);
        }
    }
}

fn blob_len(blob: Option<&[u8]>) -> usize {
    blob.map_or(1, |bytes| varint::varlong_len(length(bytes.len())) + bytes.len())
}

/// Lengths of slices fit 63 bits.
fn length(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_before_they_are_taken() {
        let mut builder = BatchBuilder::new();
        let headers = [NewHeader { key: b"k", value: None }, NewHeader { key: b"k", value: Some(b"2") }];
        let record = NewRecord { timestamp: 5, key: None, value: Some(&[7; 300]), headers: &headers };
        for i in 0..200 {
            let record = NewRecord { timestamp: 5 + i * 1_000, ..record };
            let told = builder.size_of(&record);
            let before = builder.size();
            assert_eq!(builder.append(&record), Ok(i32::try_from(i).unwrap()));
            assert_eq!(builder.size(), before + told, "record {i}");
        }
    }

    #[test]
    fn closing_leaves_an_empty_builder_and_an_empty_one_cannot_be_closed() {
        let mut builder = BatchBuilder::new();
        let compressor = &mut Compressor::new();
        assert_eq!(builder.close(&Seal::default(), compressor), Err(BatchError::Empty));
        for codec in Codec::ALL {
            builder.append(&NewRecord { timestamp: 9, value: Some(b"v"), ..NewRecord::default() }).unwrap();
            let batch = builder.close(&Seal { codec, ..Seal::default() }, compressor).unwrap();
            let header = BatchHeader::read(&batch).unwrap();
            assert_eq!(header.check_appendable(&batch), Ok(()));
            assert_eq!(header.attributes.codec(), Ok(codec));
            assert_eq!((header.base_timestamp, header.max_timestamp, header.producer_id), (9, 9, -1));
            assert_eq!((builder.len(), builder.size()), (0, HEADER_LEN));
        }
    }
}
