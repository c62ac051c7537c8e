//! Which batches a `read_committed` consumer must not see.
//!
//! A Fetch answer names the aborted transactions that overlap it, as producer id and first offset. Walking its batches in
//! order, a producer's transaction is known to be aborted from its first offset to its abort marker. Markers are never
//! shown. A marker without an entry is legal: the fetch may have begun inside the transaction, after its last record.
//!
//! Source: KIP-98, "Consumer"; brokers exist that answer the list unsorted.

use super::control::Marker;
use super::{BatchError, RawBatch};
use std::collections::HashSet;

/// An entry of a Fetch answer's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// The producer whose transaction was aborted.
    pub producer_id: i64,
    /// Where that transaction begins.
    pub first_offset: i64,
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Its records are for the user.
    Visible,
    /// Its transaction was aborted: step over it.
    Aborted,
    /// It is a marker: step over it.
    Control,
}

/// The aborted transactions of one partition's Fetch answer, walked along with its batches.
#[derive(Clone, Debug, Default)]
pub struct AbortedTransactions {
    /// By descending first offset, so that the next one is at the end.
    waiting: Vec<AbortedTransaction>,
    active: HashSet<i64>,
}

impl AbortedTransactions {
    /// For the list of one partition's answer, in any order. With `read_uncommitted` the list is empty, and all but
    /// markers is visible.
    #[must_use]
    pub fn new(mut list: Vec<AbortedTransaction>) -> Self {
        list.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.first_offset));
        Self { waiting: list, active: HashSet::new() }
    }

    /// Judges the next batch; batches must come in the order of the answer, each once.
    ///
    /// What is stepped over is checked here, counts and CRC, because its header alone says where to go on; what is visible is
    /// checked when it is decoded ([`super::BatchDecoder`]).
    ///
    /// # Errors
    /// [`BatchError`] if a batch to be stepped over is damaged, or a control batch is unreadable.
    pub fn judge(&mut self, batch: &RawBatch) -> Result<Visibility, BatchError> {
        let header = &batch.header;
        while let Some(entry) = self.waiting.pop_if(|entry| entry.first_offset <= header.last_offset()) {
            self.active.insert(entry.producer_id);
        }
        let control = header.attributes.is_control();
        let aborted = header.attributes.is_transactional() && self.active.contains(&header.producer_id);
        if !control && !aborted {
            return Ok(Visibility::Visible);
        }
        header.check_counts()?;
        header.check_crc(&batch.bytes)?;
        if !control {
            return Ok(Visibility::Aborted);
        }
        if header.record_count > 0 && matches!(Marker::read(&batch.bytes)?, Marker::Abort { .. }) {
            self.active.remove(&header.producer_id);
        }
        Ok(Visibility::Control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::batch::control::ControlBatch;
    use crate::wire::batch::{BatchBuilder, BatchHeader, BatchSet, NewRecord, Producer, Seal};
    use bytes::Bytes;
    use datum_codec::compression::Compressor;

    fn data(base_offset: i64, producer_id: i64, transactional: bool) -> RawBatch {
        let mut builder = BatchBuilder::new();
        builder.append(&NewRecord { value: Some(b"v"), ..NewRecord::default() }).unwrap();
        let producer = Some(Producer { id: producer_id, epoch: 0, base_sequence: 0 });
        let seal = Seal { producer, transactional, ..Seal::default() };
        raw(builder.close(&seal, &mut Compressor::new()).unwrap(), base_offset)
    }

    fn marker(base_offset: i64, producer_id: i64, commit: bool) -> RawBatch {
        let coordinator_epoch = 0;
        let marker =
            if commit { Marker::Commit { coordinator_epoch } } else { Marker::Abort { coordinator_epoch } };
        let batch = ControlBatch {
            base_offset,
            leader_epoch: 0,
            timestamp: 0,
            producer_id,
            producer_epoch: 0,
            marker,
        };
        raw(batch.encode(), base_offset)
    }

    fn raw(mut bytes: Vec<u8>, base_offset: i64) -> RawBatch {
        BatchHeader::assign(&mut bytes, base_offset, 0).unwrap();
        BatchSet::new(Bytes::from(bytes)).next().unwrap().unwrap()
    }

    fn judge(list: &[(i64, i64)], batches: &[RawBatch]) -> Vec<Visibility> {
        let list =
            list.iter().map(|&(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset });
        let mut aborted = AbortedTransactions::new(list.collect());
        batches.iter().map(|batch| aborted.judge(batch).unwrap()).collect()
    }

    use Visibility::{Aborted, Control, Visible};

    #[test]
    fn from_the_first_offset_to_the_marker() {
        let batches = [
            data(0, 1, true),
            data(1, 2, true),
            data(2, 1, false),
            marker(3, 1, false),
            data(4, 1, true),
            marker(5, 2, true),
            data(6, 1, true),
            marker(7, 1, false),
        ];
        // Unsorted on purpose: producer 1 aborts twice.
        let seen = judge(&[(1, 6), (1, 0)], &batches);
        assert_eq!(seen, [Aborted, Visible, Visible, Control, Visible, Control, Aborted, Control]);
    }

    /// The fetch began inside the transaction, so its marker comes without an entry.
    #[test]
    fn a_marker_without_an_entry_is_stepped_over() {
        let seen = judge(&[], &[marker(10, 1, false), data(11, 1, true), marker(12, 1, true)]);
        assert_eq!(seen, [Control, Visible, Control]);
    }

    #[test]
    fn an_empty_control_batch_left_by_compaction_is_stepped_over() {
        let mut empty = marker(10, 1, false);
        let mut bytes = empty.bytes[..crate::wire::batch::HEADER_LEN].to_vec();
        bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
        bytes[57..61].copy_from_slice(&0i32.to_be_bytes());
        BatchHeader::write_crc(&mut bytes).unwrap();
        empty = raw(bytes, 10);
        assert_eq!(judge(&[], &[empty]), [Control]);
    }

    /// A flipped bit in what is stepped over must not move the position.
    #[test]
    fn damage_in_what_is_stepped_over_is_an_error() {
        for (good, list) in [(marker(0, 1, false), vec![]), (data(0, 1, true), vec![(1, 0)])] {
            let mut bytes = good.bytes.to_vec();
            bytes[25] ^= 1;
            let header = BatchHeader::read(&bytes).unwrap();
            assert_ne!(header.next_offset(), good.header.next_offset());
            let damaged = RawBatch { header, bytes: bytes.into() };
            let list = list
                .into_iter()
                .map(|(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset });
            let judged = AbortedTransactions::new(list.collect()).judge(&damaged);
            assert!(matches!(judged, Err(BatchError::Crc { .. })), "{judged:?}");
        }
    }
}
