//! Record batches: as they come, and with length, format and CRC made right so that the records are reached.
#![no_main]

use bytes::Bytes;
use datum_kafka::wire::batch::control::Marker;
use datum_kafka::wire::batch::{BatchDecoder, BatchHeader, BatchSet, HEADER_LEN};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    walk(Bytes::copy_from_slice(input));
    if input.len() < HEADER_LEN {
        return;
    }
    let mut batch = input.to_vec();
    let length = i32::try_from(batch.len() - 12).expect("inputs are small");
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[16] = 2;
    BatchHeader::write_crc(&mut batch).expect("a whole batch");
    walk(batch.into());
});

fn walk(bytes: Bytes) {
    let mut decoder = BatchDecoder::with_max_body(LIMIT);
    let mut set = BatchSet::new(bytes.clone());
    let _ = set.next_offset();
    for batch in set.by_ref().flatten() {
        let _ = Marker::read(&batch.bytes);
        let Ok(records) = decoder.decode(&batch) else { continue };
        assert!(records.body_len() <= LIMIT.max(batch.bytes.len()));
        let mut least = i64::MIN;
        for record in &records {
            assert!(record.offset() >= least && record.offset() < records.next_offset());
            least = record.offset() + 1;
            let _ = (record.timestamp(), record.key(), record.value_bytes());
            assert_eq!(record.headers().count(), record.headers().len(), "checked headers are all there");
        }
    }
    let _ = set.tail();
}
