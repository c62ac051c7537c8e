//! The batches of a Fetch answer or a Produce request, one after the other.

use super::{BatchError, BatchHeader, HEADER_LEN};
use bytes::Bytes;

/// A whole batch, its bytes a slice of the frame it came in.
#[derive(Clone, Debug)]
pub struct RawBatch {
    /// What its header says; format and length are checked, the CRC is not.
    pub header: BatchHeader,
    /// The batch, header included.
    pub bytes: Bytes,
}

/// Bytes after the last whole batch. A broker cuts its answer at the size limit, so this is normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// How many bytes of the cut batch are there.
    pub available: usize,
    /// How many it has altogether, if enough of it is there to know. If nothing whole came before it, ask for that much.
    pub needed: Option<usize>,
}

/// Iterates over the batches of a record set; stops at a cut tail, and after an error.
///
/// Brokers may also send whole batches that end before the offset asked for: the caller drops what is below it.
#[derive(Clone, Debug)]
pub struct BatchSet {
    rest: Bytes,
    failed: bool,
}

impl BatchSet {
    /// Over the record set of one partition.
    #[must_use]
    pub fn new(records: Bytes) -> Self {
        Self { rest: records, failed: false }
    }

    /// After the iteration: the cut batch at the end, if there is one.
    #[must_use]
    pub fn tail(&self) -> Option<Tail> {
        if self.rest.is_empty() || self.failed {
            return None;
        }
        let header = BatchHeader::read(&self.rest).ok();
        Some(Tail { available: self.rest.len(), needed: header.map(|header| header.size()) })
    }

    /// The offset after the last whole batch, from the headers alone: lets the next Fetch leave before this one is
    /// decoded. `None` if there is no whole batch; stops before a malformed one.
    #[must_use]
    pub fn next_offset(&self) -> Option<i64> {
        let mut rest = &self.rest[..];
        let mut next = None;
        while let Ok(header) = BatchHeader::read(rest) {
            let Some(after) = rest.get(header.size()..) else { break };
            next = Some(header.next_offset());
            rest = after;
        }
        next
    }
}

impl Iterator for BatchSet {
    type Item = Result<RawBatch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.failed {
            return None;
        }
        match BatchHeader::read(&self.rest) {
            Ok(header) if header.size() <= self.rest.len() => {
                let bytes = self.rest.split_to(header.size());
                Some(Ok(RawBatch { header, bytes }))
            }
            Ok(_) => None,
            Err(BatchError::Truncated { .. }) if self.rest.len() < HEADER_LEN => None,
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for BatchSet {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::batch::control::{ControlBatch, Marker};

    fn two() -> Vec<u8> {
        let marker = |base_offset| ControlBatch {
            base_offset,
            leader_epoch: 0,
            timestamp: 5,
            producer_id: 1,
            producer_epoch: 0,
            marker: Marker::Commit { coordinator_epoch: 0 },
        };
        [marker(10).encode(), marker(11).encode()].concat()
    }

    #[test]
    fn whole_batches_then_nothing() {
        let mut set = BatchSet::new(two().into());
        assert_eq!(set.next_offset(), Some(12));
        let offsets: Vec<i64> = set.by_ref().map(|b| b.unwrap().header.base_offset).collect();
        assert_eq!((offsets, set.tail()), (vec![10, 11], None));
    }

    #[test]
    fn every_cut_ends_quietly_and_tells_the_size() {
        let bytes = two();
        let one = bytes.len() / 2;
        for cut in 0..bytes.len() {
            let mut set = BatchSet::new(Bytes::copy_from_slice(&bytes[..cut]));
            let whole = set.by_ref().map(Result::unwrap).count();
            assert_eq!(whole, cut / one, "cut at {cut}");
            let available = cut % one;
            let expected =
                (available > 0).then(|| Tail { available, needed: (available >= HEADER_LEN).then_some(one) });
            assert_eq!(set.tail(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn an_old_format_is_an_error_once() {
        let mut bytes = two();
        let one = bytes.len() / 2;
        bytes[one + 16] = 1;
        let mut set = BatchSet::new(bytes.into());
        assert_eq!(set.next_offset(), Some(11));
        assert!(set.next().is_some_and(|b| b.is_ok()));
        assert!(matches!(set.next(), Some(Err(BatchError::OldFormat { magic: 1 }))));
        assert!(set.next().is_none());
    }
}
