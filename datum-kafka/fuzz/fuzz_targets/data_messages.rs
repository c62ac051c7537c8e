//! Fetch and Produce answers; the first byte chooses the message, the second the version.
#![no_main]

use bytes::Bytes;
use datum_kafka::wire::{fetch, produce};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [choice, version, body @ ..] = input else { return };
    let version = i16::from(version % 20);
    if choice % 2 == 0 {
        let body = Bytes::copy_from_slice(body);
        if let Ok(answer) = fetch::FetchResponse::decode(version, &body) {
            let records: usize =
                answer.topics.iter().flat_map(|t| &t.partitions).map(|p| p.records.len()).sum();
            assert!(records <= body.len(), "records are slices of the body");
        }
    } else {
        let _ = produce::ProduceResponse::decode(version, body);
    }
});
