//! Records out of batches: what a builder wrote, what compaction left, what an enemy sent.

use super::*;
use crate::wire::batch::{
    Attributes, BatchBuilder, BatchSet, NewHeader, NewRecord, Producer, Seal, TimestampType,
};
use bytes::Bytes;
use datum_codec::compression::Compressor;
use proptest::prelude::*;

/// An owned record, to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn build(records: &[Plain], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for record in records {
        let headers: Vec<NewHeader<'_>> =
            record.headers.iter().map(|(key, value)| NewHeader { key, value: value.as_deref() }).collect();
        builder
            .append(&NewRecord {
                timestamp: record.timestamp,
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers: &headers,
            })
            .unwrap();
    }
    let producer = Some(Producer { id: 7, epoch: 1, base_sequence: 3 });
    builder.close(&Seal { codec, producer, ..Seal::default() }, &mut Compressor::new()).unwrap()
}

fn plain(record: Record<'_>) -> Plain {
    Plain {
        timestamp: record.timestamp(),
        key: record.key().map(<[u8]>::to_vec),
        value: record.value().map(<[u8]>::to_vec),
        headers: record.headers().map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect(),
    }
}

use crate::wire::batch::Record;

fn value(text: &str) -> Plain {
    Plain { timestamp: 1_000, key: None, value: Some(text.as_bytes().to_vec()), headers: Vec::new() }
}

fn decode(bytes: Vec<u8>) -> Result<RecordBatch, BatchError> {
    decode_with(&mut BatchDecoder::new(), bytes)
}

fn decode_with(decoder: &mut BatchDecoder, bytes: Vec<u8>) -> Result<RecordBatch, BatchError> {
    let available = bytes.len();
    let raw =
        BatchSet::new(Bytes::from(bytes)).next().ok_or(BatchError::Truncated { needed: 0, available })??;
    decoder.decode(&raw)
}

/// A batch around hand-written record bytes.
fn around(records: &[u8], record_count: i32, last_offset_delta: i32, attributes: Attributes) -> Vec<u8> {
    let header = BatchHeader {
        base_offset: 100,
        length: i32::try_from(records.len() + 49).unwrap(),
        leader_epoch: 0,
        crc: 0,
        attributes,
        last_offset_delta,
        base_timestamp: 1_000,
        max_timestamp: 5_000,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count,
    };
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(records);
    BatchHeader::write_crc(&mut bytes).unwrap();
    bytes
}

/// Length 6, attributes, timestamp delta 1, offset delta 0, null key, null value, no headers.
const SMALLEST: [u8; 7] = [12, 0, 2, 0, 1, 1, 0];

#[test]
fn duplicate_and_non_utf8_header_keys_are_kept() {
    let header = |key: &[u8], value: Option<&[u8]>| (key.to_vec(), value.map(<[u8]>::to_vec));
    let record = Plain {
        headers: vec![
            header(b"a", Some(b"1")),
            header(b"a", None),
            header(b"\xff\xfe", Some(b"")),
            header(b"", Some(b"x")),
        ],
        ..value("v")
    };
    let batch = decode(build(std::slice::from_ref(&record), Codec::Lz4)).unwrap();
    let seen = batch.get(0).unwrap();
    assert_eq!(plain(seen), record);
    assert_eq!(seen.headers().next().unwrap().key_str(), Ok("a"));
    assert!(seen.headers().nth(2).unwrap().key_str().is_err());
}

/// A compacted batch: of a thousand offsets one record survives, then a batch of none over a million.
#[test]
fn next_offset_passes_what_compaction_removed() {
    let one = decode(around(&SMALLEST, 1, 999, Attributes::default())).unwrap();
    assert_eq!((one.len(), one.get(0).unwrap().offset(), one.next_offset()), (1, 100, 1_100));
    for codec in Codec::ALL {
        let attributes = Attributes::default().with_codec(codec);
        let none = decode(around(&[], 0, 999_999, attributes)).unwrap();
        assert_eq!((none.len(), none.is_empty(), none.next_offset()), (0, true, 1_000_100));
    }
}

#[test]
fn log_append_time_gives_every_record_the_largest_timestamp() {
    let create = decode(around(&SMALLEST, 1, 0, Attributes::default())).unwrap();
    assert_eq!(create.get(0).unwrap().timestamp(), 1_001);
    let attributes = Attributes::default().with_timestamp_type(TimestampType::LogAppendTime);
    let append = decode(around(&SMALLEST, 1, 0, attributes)).unwrap();
    assert_eq!(append.get(0).unwrap().timestamp(), 5_000);
}

#[test]
fn a_fetch_may_begin_inside_a_batch() {
    let records: Vec<Plain> = (0..10).map(|i| value(&i.to_string())).collect();
    let mut bytes = build(&records, Codec::Zstd);
    BatchHeader::assign(&mut bytes, 50, 0).unwrap();
    let batch = decode(bytes).unwrap();
    assert_eq!([49, 50, 55, 59, 60, 99].map(|offset| batch.position_of(offset)), [0, 0, 5, 9, 10, 10]);
    let offsets: Vec<i64> = batch.iter_from(batch.position_of(57)).map(|r| r.offset()).collect();
    assert_eq!(offsets, [57, 58, 59]);
    assert_eq!(batch.iter_from(99).len(), 0);
}

#[test]
fn shared_values_outlive_the_batch_and_buffers_are_reused() {
    let mut decoder = BatchDecoder::new();
    let bytes = build(&[value("one"), value("two")], Codec::Lz4);
    let batch = decode_with(&mut decoder, bytes.clone()).unwrap();
    let kept = batch.get(1).unwrap().value_bytes().unwrap();
    let at = batch.get(0).unwrap().value().unwrap().as_ptr();
    drop(batch);
    let second = decode_with(&mut decoder, bytes.clone()).unwrap();
    assert_ne!(second.get(0).unwrap().value().unwrap().as_ptr(), at, "the first buffer is still shared");
    assert_eq!(kept, &b"two"[..]);
    drop((second, kept));
    let third = decode_with(&mut decoder, bytes).unwrap();
    assert_eq!(third.get(0).unwrap().value().unwrap().as_ptr(), at, "the first buffer came back last");
}

#[test]
fn uncompressed_records_are_slices_of_the_frame() {
    let frame = Bytes::from(build(&[value("here")], Codec::None));
    let raw = BatchSet::new(frame.clone()).next().unwrap().unwrap();
    let batch = BatchDecoder::new().decode(&raw).unwrap();
    let value = batch.get(0).unwrap().value().unwrap();
    assert!(frame.as_ptr_range().contains(&value.as_ptr()));
}

#[test]
fn the_record_count_is_never_trusted() {
    let lying = around(&SMALLEST, i32::MAX, i32::MAX - 1, Attributes::default());
    let result = decode(lying);
    assert_eq!(result.unwrap_err(), BatchError::Record { position: 1, fault: RecordFault::Truncated });
    let two = [SMALLEST, [12, 0, 2, 2, 1, 1, 0]].concat();
    let fewer = decode(around(&two, 1, 1, Attributes::default()));
    assert_eq!(fewer.unwrap_err(), BatchError::TrailingRecords { left: 7 });
}

#[test]
fn malformed_records_name_their_fault() {
    let fault = |record: &[u8]| match decode(around(record, 1, 0, Attributes::default())) {
        Err(BatchError::Record { position: 0, fault }) => fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault(&[1]), RecordFault::Length);
    assert_eq!(fault(&[0]), RecordFault::Truncated, "no room for attributes");
    assert_eq!(fault(&[14, 0, 2, 0, 1, 1, 0]), RecordFault::Truncated, "longer than the body");
    assert_eq!(fault(&[12, 0, 2, 2, 1, 1, 0]), RecordFault::OffsetDelta, "above the last");
    assert_eq!(fault(&[12, 0, 2, 1, 1, 1, 0]), RecordFault::OffsetDelta, "negative");
    assert_eq!(fault(&[12, 0, 2, 0, 3, 1, 0]), RecordFault::KeyLength);
    assert_eq!(fault(&[12, 0, 2, 0, 1, 20, 0]), RecordFault::ValueLength);
    assert_eq!(fault(&[12, 0, 2, 0, 1, 1, 1]), RecordFault::HeaderCount);
    assert_eq!(fault(&[16, 0, 2, 0, 1, 1, 2, 1, 1]), RecordFault::HeaderLength, "a null header key");
    assert_eq!(fault(&[14, 0, 2, 0, 1, 1, 0, 0]), RecordFault::TrailingBytes);
    let huge_headers = [20, 0, 2, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(fault(&huge_headers), RecordFault::Truncated);
    let same = [SMALLEST, SMALLEST].concat();
    let twice = decode(around(&same, 2, 1, Attributes::default()));
    assert_eq!(twice.unwrap_err(), BatchError::Record { position: 1, fault: RecordFault::OffsetDelta });
}

#[test]
fn expansion_beyond_the_limit_is_a_typed_error() {
    let record = Plain { value: Some(vec![0; 100_000]), ..value("") };
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let bytes = build(std::slice::from_ref(&record), codec);
        let limit = 50_000;
        let refused = decode_with(&mut BatchDecoder::with_max_body(limit), bytes.clone());
        assert_eq!(refused.unwrap_err(), BatchError::BodyTooLarge { limit });
        assert_eq!(decode(bytes).unwrap().len(), 1);
    }
}

#[test]
fn a_damaged_batch_fails_its_crc_before_anything_else_looks_at_it() {
    let bytes = build(&[value("v")], Codec::Gzip);
    for i in 21..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] = damaged[i].wrapping_add(1);
        let error = decode(damaged).unwrap_err();
        let counts = matches!(error, BatchError::NegativeCount { .. } | BatchError::CountMismatch { .. });
        assert!(counts || matches!(error, BatchError::Crc { .. }), "byte {i}: {error}");
    }
}

fn blob() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200))
}

fn any_plain() -> impl Strategy<Value = Plain> {
    let headers = proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..5), blob()), 0..4);
    (-1i64..4_000_000_000_000, blob(), blob(), headers).prop_map(|(timestamp, key, value, headers)| Plain {
        timestamp,
        key,
        value,
        headers,
    })
}

proptest! {
    #[test]
    fn what_is_built_is_decoded(
        records in proptest::collection::vec(any_plain(), 1..40),
        codec in proptest::sample::select(&Codec::ALL[..]),
        base in 0i64..1_000_000_000,
    ) {
        let mut bytes = build(&records, codec);
        BatchHeader::assign(&mut bytes, base, 4).unwrap();
        let batch = decode(bytes).unwrap();
        prop_assert_eq!(batch.iter().map(plain).collect::<Vec<_>>(), records.clone());
        prop_assert!(batch.iter().map(|r| r.offset()).eq(base..batch.next_offset()));
        prop_assert_eq!(batch.header().max_timestamp, records.iter().map(|r| r.timestamp).max().unwrap());
        let back: Vec<i64> = batch.iter().rev().map(|r| r.offset()).collect();
        prop_assert!(back.iter().rev().copied().eq(base..batch.next_offset()));
    }

    /// Damage behind a CRC that was made to fit, as an enemy would: never a panic, never much memory.
    #[test]
    fn hostile_batches_never_panic(
        records in proptest::collection::vec(any_plain(), 1..5),
        codec in proptest::sample::select(&Codec::ALL[..]),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = build(&records, codec);
        for (at, byte) in flips {
            let at = 21 + at.index(bytes.len() - 21);
            bytes[at] = byte;
        }
        BatchHeader::write_crc(&mut bytes).unwrap();
        let mut decoder = BatchDecoder::with_max_body(64 << 10);
        if let Ok(batch) = decode_with(&mut decoder, bytes) {
            for record in &batch {
                let _ = plain(record);
            }
            prop_assert!(batch.body_len() <= 64 << 10);
        }
    }

    #[test]
    fn noise_never_panics(bytes: Vec<u8>) {
        for raw in BatchSet::new(bytes.into()).flatten() {
            let _ = BatchDecoder::new().decode(&raw);
        }
    }
}
