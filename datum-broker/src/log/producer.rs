//! What a partition remembers of its producers: epochs, the last five batches, and the open transaction.
//!
//! The rules are those of Kafka's producer state (KIP-98, KIP-360): a batch that repeats one of the last five is
//! answered with the first one's offset; a gap is out of order; an older epoch is fenced; a new epoch starts at
//! sequence 0; a producer of whom nothing is known may start anywhere, since retention may have eaten its history.

use std::collections::{BTreeMap, VecDeque};

use datum_kafka::wire::batch::{BatchHeader, add_sequence};

use crate::code::Code;

/// How many batches a producer may have in flight and still be recognised when it repeats one.
const REMEMBERED: usize = 5;

/// A batch that may come again.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    first_sequence: i32,
    last_sequence: i32,
    first_offset: i64,
    timestamp: i64,
}

/// One producer, in one partition.
#[derive(Clone, Debug)]
struct Producer {
    epoch: i16,
    last: VecDeque<Remembered>,
    /// First offset of its open transaction.
    open: Option<i64>,
    used_at: i64,
}

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Append,
    /// It is in the log already, at this base offset and with this time stamp.
    Duplicate {
        base_offset: i64,
        timestamp: i64,
    },
}

/// A transaction that a marker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub producer_id: i64,
    pub first_offset: i64,
}

/// All producers of one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    known: BTreeMap<i64, Producer>,
    /// Open transactions by first offset; the first key is the last stable offset.
    open: BTreeMap<i64, i64>,
}

impl Producers {
    /// Judges a client's batch.
    ///
    /// # Errors
    /// `InvalidProducerEpoch` for an older epoch than known, `OutOfOrderSequenceNumber` for a gap.
    pub(crate) fn judge(&self, header: &BatchHeader) -> Result<Verdict, Code> {
        let Some(producer) = self.known.get(&header.producer_id) else { return Ok(Verdict::Append) };
        if header.producer_epoch < producer.epoch {
            return Err(Code::InvalidProducerEpoch);
        }
        if header.producer_epoch > producer.epoch {
            return match header.base_sequence {
                0 => Ok(Verdict::Append),
                _ => Err(Code::OutOfOrderSequenceNumber),
            };
        }
        let last_sequence = header.last_sequence();
        let repeated = producer.last.iter().find(|known| {
            known.first_sequence == header.base_sequence && known.last_sequence == last_sequence
        });
        if let Some(known) = repeated {
            return Ok(Verdict::Duplicate { base_offset: known.first_offset, timestamp: known.timestamp });
        }
        let expected = producer.last.back().map_or(0, |last| add_sequence(last.last_sequence, 1));
        if header.base_sequence == expected {
            Ok(Verdict::Append)
        } else {
            Err(Code::OutOfOrderSequenceNumber)
        }
    }

    /// The epoch known of a producer, if any.
    pub(crate) fn epoch(&self, producer_id: i64) -> Option<i16> {
        self.known.get(&producer_id).map(|producer| producer.epoch)
    }

    /// Whether this producer has an open transaction here.
    pub(crate) fn has_open(&self, producer_id: i64) -> bool {
        self.known.get(&producer_id).is_some_and(|producer| producer.open.is_some())
    }

    /// Notes a batch that [`Self::judge`] let through and that now stands at `base_offset`.
    pub(crate) fn note(&mut self, header: &BatchHeader, base_offset: i64, timestamp: i64, now: i64) {
        let producer = self.known.entry(header.producer_id).or_insert_with(|| Producer {
            epoch: header.producer_epoch,
            last: VecDeque::with_capacity(REMEMBERED),
            open: None,
            used_at: now,
        });
        if producer.epoch != header.producer_epoch {
            producer.epoch = header.producer_epoch;
            producer.last.clear();
        }
        if producer.last.len() == REMEMBERED {
            producer.last.pop_front();
        }
        producer.last.push_back(Remembered {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            first_offset: base_offset,
            timestamp,
        });
        producer.used_at = now;
        if header.attributes.is_transactional() && producer.open.is_none() {
            producer.open = Some(base_offset);
            self.open.insert(base_offset, header.producer_id);
        }
    }

    /// Notes an end marker; answers with the transaction it ended, if one was open.
    pub(crate) fn end(&mut self, producer_id: i64, epoch: i16, now: i64) -> Option<Ended> {
        let producer = self.known.entry(producer_id).or_insert_with(|| Producer {
            epoch,
            last: VecDeque::with_capacity(REMEMBERED),
            open: None,
            used_at: now,
        });
        if producer.epoch != epoch {
            producer.epoch = epoch;
            producer.last.clear();
        }
        producer.used_at = now;
        let first_offset = producer.open.take()?;
        self.open.remove(&first_offset);
        Some(Ended { producer_id, first_offset })
    }

    /// First offset of the oldest open transaction.
    pub(crate) fn first_open(&self) -> Option<i64> {
        self.open.keys().next().copied()
    }

    /// Forgets producers that wrote at `end` or beyond, where the log was cut.
    pub(crate) fn forget_from(&mut self, end: i64) {
        self.known.retain(|_, producer| producer.last.back().is_none_or(|last| last.first_offset < end));
        let known = &self.known;
        self.open.retain(|_, id| known.contains_key(id));
    }

    /// Forgets producers that wrote nothing since `before` and have nothing open.
    pub(crate) fn expire(&mut self, before: i64) {
        self.known.retain(|_, producer| producer.open.is_some() || producer.used_at >= before);
    }
}

#[cfg(test)]
mod tests {
    use datum_kafka::wire::batch::Attributes;

    use super::*;

    fn batch(epoch: i16, sequence: i32, count: i32, transactional: bool) -> BatchHeader {
        BatchHeader {
            base_offset: 0,
            length: 100,
            leader_epoch: -1,
            crc: 0,
            attributes: Attributes::default().with_transactional(transactional),
            last_offset_delta: count - 1,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: 9,
            producer_epoch: epoch,
            base_sequence: sequence,
            record_count: count,
        }
    }

    #[test]
    fn a_repeated_batch_is_answered_with_its_first_offset() {
        let mut producers = Producers::default();
        for n in 0..7 {
            producers.note(&batch(0, n * 10, 10, false), i64::from(n) * 10, 5, 0);
        }
        assert_eq!(
            producers.judge(&batch(0, 20, 10, false)),
            Ok(Verdict::Duplicate { base_offset: 20, timestamp: 5 })
        );
        assert_eq!(
            producers.judge(&batch(0, 10, 10, false)),
            Err(Code::OutOfOrderSequenceNumber),
            "six back"
        );
        assert_eq!(producers.judge(&batch(0, 60, 5, false)), Err(Code::OutOfOrderSequenceNumber), "shorter");
        assert_eq!(producers.judge(&batch(0, 70, 1, false)), Ok(Verdict::Append));
        assert_eq!(producers.judge(&batch(0, 71, 1, false)), Err(Code::OutOfOrderSequenceNumber), "a gap");
    }

    #[test]
    fn epochs_fence_and_restart_at_zero() {
        let mut producers = Producers::default();
        assert_eq!(producers.judge(&batch(3, 17, 1, false)), Ok(Verdict::Append), "nothing known: anywhere");
        producers.note(&batch(3, 17, 1, false), 0, 0, 0);
        assert_eq!(producers.judge(&batch(2, 18, 1, false)), Err(Code::InvalidProducerEpoch));
        assert_eq!(producers.judge(&batch(4, 18, 1, false)), Err(Code::OutOfOrderSequenceNumber));
        assert_eq!(producers.judge(&batch(4, 0, 1, false)), Ok(Verdict::Append));
    }

    #[test]
    fn the_oldest_open_transaction_is_the_bound() {
        let mut producers = Producers::default();
        producers.note(&batch(0, 0, 1, true), 4, 0, 0);
        producers.note(&BatchHeader { producer_id: 10, ..batch(0, 0, 1, true) }, 5, 0, 0);
        assert_eq!(producers.first_open(), Some(4));
        assert_eq!(producers.end(9, 0, 0), Some(Ended { producer_id: 9, first_offset: 4 }));
        assert_eq!(producers.first_open(), Some(5));
        assert_eq!(producers.end(9, 0, 0), None);
        producers.expire(1);
        assert!(producers.has_open(10) && producers.epoch(9).is_none());
    }

    #[test]
    fn a_marker_with_a_new_epoch_fences() {
        let mut producers = Producers::default();
        producers.note(&batch(0, 0, 3, true), 0, 0, 0);
        producers.end(9, 1, 0);
        assert_eq!(producers.judge(&batch(0, 3, 1, true)), Err(Code::InvalidProducerEpoch));
        assert_eq!(producers.judge(&batch(1, 0, 1, true)), Ok(Verdict::Append));
    }
}
