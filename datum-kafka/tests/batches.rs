//! Record batches that other clients wrote and Apache Kafka stored, read from files; `fixtures/batches/README.md` says how
//! they were made.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read is a failed test")]

use bytes::Bytes;
use datum_codec::compression::Compressor;
use datum_kafka::wire::batch::{
    AbortedTransaction, AbortedTransactions, BatchBuilder, BatchDecoder, BatchHeader, BatchSet, Codec,
    NewHeader, NewRecord, RawBatch, Record, RecordBatch, Seal, TimestampType, Visibility,
};

const TIME: i64 = 1_700_000_000_000;

fn log(name: &str) -> Vec<RawBatch> {
    let path = format!("{}/tests/fixtures/batches/{name}.log", env!("CARGO_MANIFEST_DIR"));
    let bytes = Bytes::from(std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")));
    let mut set = BatchSet::new(bytes);
    let batches = set.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(set.tail(), None, "{name}");
    batches
}

fn decode(batch: &RawBatch) -> RecordBatch {
    BatchDecoder::new().decode(batch).unwrap()
}

/// What the programs wrote as record `i`.
fn expected(i: i64) -> (Option<String>, Option<String>, Vec<(String, Option<String>)>) {
    let key = (i % 10 != 9).then(|| format!("key-{i}"));
    let value = (i % 13 != 12).then(|| format!("value-{i};").repeat(usize::try_from(i % 7).unwrap()));
    let headers =
        if i % 5 == 4 { vec![("h".into(), Some(i.to_string())), ("h".into(), None)] } else { vec![] };
    (key, value, headers)
}

fn seen(record: Record<'_>) -> (Option<String>, Option<String>, Vec<(String, Option<String>)>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers = record.headers().map(|h| (h.key_str().unwrap().to_owned(), h.value.map(text))).collect();
    (record.key().map(text), record.value().map(text), headers)
}

#[test]
fn every_codec_of_both_clients() {
    for client in ["java", "librdkafka"] {
        for codec in Codec::ALL {
            let name = format!("{client}-{}", codec.name());
            let batches = log(&name);
            let [batch] = &batches[..] else { panic!("{name}: one batch") };
            assert_eq!(batch.header.attributes.codec(), Ok(codec), "{name}");
            assert_eq!(batch.header.check_appendable(&batch.bytes), Ok(()), "{name}");
            let records = decode(batch);
            assert_eq!((records.len(), records.next_offset()), (100, 100), "{name}");
            for (i, record) in (0..).zip(&records) {
                assert_eq!(record.offset(), i, "{name}");
                assert_eq!(record.timestamp(), TIME + 10 * i, "{name} record {i}");
                assert_eq!(seen(record), expected(i), "{name} record {i}");
            }
            assert_eq!(batch.header.max_timestamp, TIME + 990, "{name}");
        }
    }
}

/// Our builder, given the same records, writes the same uncompressed bytes as librdkafka; the fields that name a producer and
/// its log are the only ones that differ.
#[test]
fn our_uncompressed_batch_is_theirs() {
    let theirs = &log("librdkafka-none")[0];
    let mut builder = BatchBuilder::new();
    for i in 0..100 {
        let (key, value, headers) = expected(i);
        let headers: Vec<NewHeader<'_>> = headers
            .iter()
            .map(|(key, value)| NewHeader { key: key.as_bytes(), value: value.as_deref().map(str::as_bytes) })
            .collect();
        builder
            .append(&NewRecord {
                timestamp: TIME + 10 * i,
                key: key.as_deref().map(str::as_bytes),
                value: value.as_deref().map(str::as_bytes),
                headers: &headers,
            })
            .unwrap();
    }
    let mut ours = builder.close(&Seal::default(), &mut Compressor::new()).unwrap();
    BatchHeader::assign(&mut ours, theirs.header.base_offset, theirs.header.leader_epoch).unwrap();
    BatchHeader::assign_producer(
        &mut ours,
        theirs.header.producer_id,
        theirs.header.producer_epoch,
        theirs.header.base_sequence,
    )
    .unwrap();
    assert!(ours == theirs.bytes, "CRC included");
}

#[test]
fn log_append_time_is_the_brokers() {
    let batch = &log("append-time")[0];
    assert_eq!(batch.header.attributes.timestamp_type(), TimestampType::LogAppendTime);
    let stamps: Vec<i64> = decode(batch).iter().map(|record| record.timestamp()).collect();
    assert_eq!(stamps, [batch.header.max_timestamp; 3]);
    assert!(stamps[0] > TIME + 2, "not the producer's");
}

#[test]
fn committed_transactions_alone_are_visible() {
    let batches = log("transactions");
    let producer_id = batches[0].header.producer_id;
    let first_offset = batches[2].header.base_offset;
    let mut aborted = AbortedTransactions::new(vec![AbortedTransaction { producer_id, first_offset }]);
    let mut values = Vec::new();
    for batch in &batches {
        if aborted.judge(batch).unwrap() == Visibility::Visible {
            values.extend(
                decode(batch).iter().map(|r| String::from_utf8(r.value().unwrap().to_vec()).unwrap()),
            );
        }
    }
    assert_eq!(values, ["first-0", "first-1", "first-2", "second-0", "second-1", "second-2"]);
    let next: Vec<i64> = batches.iter().map(|batch| batch.header.next_offset()).collect();
    assert_eq!(next, [3, 4, 7, 8, 11, 12], "three records and a marker each");
}

/// Of a compacted batch the last records may survive alone, of others nothing: the next offset passes both.
#[test]
fn compacted_logs_have_gaps_and_an_end() {
    let batches = log("compacted");
    let offsets: Vec<Vec<i64>> =
        batches.iter().map(|batch| decode(batch).iter().map(|record| record.offset()).collect()).collect();
    assert_eq!(offsets, [(55..60).collect::<Vec<_>>(), (60..80).collect()]);
    assert_eq!(batches[0].header.base_offset, 40);
    assert_eq!(batches[0].header.next_offset(), 60);
    assert_eq!(batches[0].header.check_counts(), Ok(()));
    assert!(batches[0].header.check_appendable(&batches[0].bytes).is_err(), "gaps are for readers only");
}
