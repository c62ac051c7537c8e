//! Control batches: the markers with which a transaction's outcome stands in the log.
//!
//! A marker is a batch of its own with the control and transactional bits set and one record whose key is
//! `version: i16, type: i16` (0 abort, 1 commit) and whose value is `version: i16, coordinator epoch: i32`. Other types
//! exist (quorum records in the cluster's own log) and newer ones may come: a client steps over those.

use super::header::LENGTH_END;
use super::{Attributes, BatchError, BatchHeader, ControlFault, HEADER_LEN};
use crate::wire::varint;

/// What a control batch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The producer's transaction ended without effect: its records since the last marker do not exist for
    /// `read_committed`.
    Abort {
        /// Epoch of the transaction coordinator that wrote it.
        coordinator_epoch: i32,
    },
    /// The producer's transaction was committed.
    Commit {
        /// Epoch of the transaction coordinator that wrote it.
        coordinator_epoch: i32,
    },
    /// Something else that is not for clients; to be stepped over.
    Other {
        /// The type in the record's key.
        kind: i16,
    },
}

/// A marker with its place, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlBatch {
    /// Its offset.
    pub base_offset: i64,
    /// Epoch of the leader that appends it.
    pub leader_epoch: i32,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// The producer whose transaction ends.
    pub producer_id: i64,
    /// That producer's epoch.
    pub producer_epoch: i16,
    /// The outcome.
    pub marker: Marker,
}

impl ControlBatch {
    /// The batch's bytes, CRC included.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let record = encode_record(self.marker);
        let mut out = Vec::with_capacity(HEADER_LEN + record.len());
        let header = BatchHeader {
            base_offset: self.base_offset,
            length: length_of(record.len()),
            leader_epoch: self.leader_epoch,
            crc: 0,
            attributes: Attributes::default().with_control(true).with_transactional(true),
            last_offset_delta: 0,
            base_timestamp: self.timestamp,
            max_timestamp: self.timestamp,
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: -1,
            record_count: 1,
        };
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&record);
        BatchHeader::write_crc(&mut out).expect("a whole batch was just written");
        out
    }
}

impl Marker {
    /// Reads the marker of a whole control batch, whose CRC the caller has checked.
    ///
    /// # Errors
    /// [`BatchError::Control`], or what [`BatchHeader::read`] returns.
    pub fn read(batch: &[u8]) -> Result<Self, BatchError> {
        let header = BatchHeader::read(batch)?;
        if !header.attributes.is_control() {
            return Err(fault(ControlFault::NotControl));
        }
        if header.record_count < 1 {
            return Err(fault(ControlFault::Empty));
        }
        let records = batch.get(HEADER_LEN..header.size());
        let (key, value) = records.and_then(first_record).ok_or_else(|| fault(ControlFault::Malformed))?;
        let kind = match key {
            Some(&[_, _, a, b, ..]) => i16::from_be_bytes([a, b]),
            _ => return Err(fault(ControlFault::Key)),
        };
        if !matches!(kind, 0 | 1) {
            return Ok(Self::Other { kind });
        }
        let coordinator_epoch = match value {
            Some(&[_, _, a, b, c, d, ..]) => i32::from_be_bytes([a, b, c, d]),
            _ => return Err(fault(ControlFault::Value)),
        };
        Ok(if kind == 0 { Self::Abort { coordinator_epoch } } else { Self::Commit { coordinator_epoch } })
    }
}

type KeyValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Key and value of the first record; control batches are never compressed.
fn first_record(records: &[u8]) -> Option<KeyValue<'_>> {
    let (length, at) = varint::read_varint(records)?;
    let record = records.get(at..)?.get(..usize::try_from(length).ok()?)?;
    let rest = record.get(1..)?;
    let rest = rest.get(varint::read_varlong(rest)?.1..)?;
    let rest = rest.get(varint::read_varint(rest)?.1..)?;
    let (key, rest) = blob(rest)?;
    let (value, _) = blob(rest)?;
    Some((key, value))
}

fn blob(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, at) = varint::read_varint(bytes)?;
    let rest = bytes.get(at..)?;
    match usize::try_from(length) {
        Ok(length) => rest.split_at_checked(length).map(|(blob, rest)| (Some(blob), rest)),
        Err(_) => (length == -1).then_some((None, rest)),
    }
}

fn encode_record(marker: Marker) -> Vec<u8> {
    let (kind, epoch) = match marker {
        Marker::Abort { coordinator_epoch } => (0i16, coordinator_epoch),
        Marker::Commit { coordinator_epoch } => (1, coordinator_epoch),
        Marker::Other { kind } => (kind, 0),
    };
    // Attributes 0, timestamp delta 0, offset delta 0, then key and value with their lengths, and no headers.
    let mut body = vec![0, 0, 0];
    varint::put_varint(&mut body, 4);
    body.extend_from_slice(&0i16.to_be_bytes());
    body.extend_from_slice(&kind.to_be_bytes());
    varint::put_varint(&mut body, 6);
    body.extend_from_slice(&0i16.to_be_bytes());
    body.extend_from_slice(&epoch.to_be_bytes());
    body.push(0);
    let mut record = Vec::with_capacity(body.len() + 1);
    varint::put_varint(&mut record, i32::try_from(body.len()).unwrap_or(i32::MAX));
    record.extend_from_slice(&body);
    record
}

fn length_of(records: usize) -> i32 {
    i32::try_from(HEADER_LEN - LENGTH_END + records).expect("a marker is 17 bytes")
}

fn fault(reason: ControlFault) -> BatchError {
    BatchError::Control { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(marker: Marker) -> ControlBatch {
        ControlBatch {
            base_offset: 3,
            leader_epoch: 1,
            timestamp: 9,
            producer_id: 8,
            producer_epoch: 2,
            marker,
        }
    }

    #[test]
    fn markers_round_trip() {
        for marker in [
            Marker::Abort { coordinator_epoch: 7 },
            Marker::Commit { coordinator_epoch: -1 },
            Marker::Other { kind: 5 },
        ] {
            let bytes = batch(marker).encode();
            let header = BatchHeader::read(&bytes).unwrap();
            assert_eq!(header.check_appendable(&bytes), Ok(()));
            assert!(header.attributes.is_transactional());
            assert_eq!((header.next_offset(), header.producer_id, header.producer_epoch), (4, 8, 2));
            assert_eq!(Marker::read(&bytes), Ok(marker));
        }
    }

    #[test]
    fn damaged_markers_are_typed_errors_and_never_panic() {
        let bytes = batch(Marker::Commit { coordinator_epoch: 7 }).encode();
        for i in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[i] ^= 1 << bit;
                let _ = Marker::read(&damaged);
            }
            let _ = Marker::read(&bytes[..i]);
        }
        let mut plain = bytes.clone();
        plain[22] &= !0b10_0000;
        assert_eq!(Marker::read(&plain), Err(fault(ControlFault::NotControl)));
        let mut empty = bytes.clone();
        empty[60] = 0;
        assert_eq!(Marker::read(&empty), Err(fault(ControlFault::Empty)));
        let mut short_key = bytes;
        short_key[65] = 3;
        assert_eq!(Marker::read(&short_key), Err(fault(ControlFault::Malformed)));
    }
}
