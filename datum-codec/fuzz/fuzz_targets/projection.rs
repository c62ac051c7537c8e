//! The projected decoder, with and without vector instructions, against serde_json: same values, same records refused.
//!
//! The input is cut at zero bytes into several records for one decoder, so that shapes learnt from one meet the next;
//! each record comes four times: before its shape may have been learnt, after, and when that is read at once. A second
//! input format is not needed: JSON never holds a zero byte.
//!
//! ```text
//! mkdir -p fuzz/corpus/projection
//! RUSTC_BOOTSTRAP=1 cargo fuzz run projection fuzz/corpus/projection fuzz/seeds/projection -- -max_total_time=20 -seed=1
//! ```

#![no_main]

use datum_codec::{Json, Projected, ProjectedJson};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;

/// Every kind of value; short keys, which a fuzzer finds quickly.
#[derive(Debug, Projected, Deserialize)]
#[allow(dead_code, reason = "compared by its debug text")]
struct Kinds {
    a: Option<u64>,
    b: Option<f64>,
    c: Option<String>,
    d: Option<bool>,
    e: Option<i64>,
    f: Option<f32>,
    g: Option<i128>,
    h: Option<u8>,
}

#[derive(Debug, Projected, Deserialize)]
#[allow(dead_code, reason = "compared by its debug text")]
struct Required {
    a: u64,
    b: f64,
}

/// Real field names, one of each kind: the seeds hold sample records of every layout.
#[derive(Debug, Projected, Deserialize)]
#[allow(dead_code, reason = "compared by its debug text")]
struct Sample {
    region: String,
    latency_ms: f64,
    error_count: u64,
    request_size: i64,
    queue_depth: Option<u32>,
    throughput: f32,
}

#[derive(Debug, Projected)]
struct Nested {
    #[projected(path = "a.b")]
    ab: i32,
    #[projected(path = "a.c")]
    ac: Option<String>,
    #[projected(path = "o.p.q")]
    opq: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct NaiveNested {
    a: NaiveA,
    o: Option<NaiveO>,
}

#[derive(Debug, Deserialize)]
struct NaiveA {
    b: i32,
    c: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NaiveO {
    p: Option<NaiveP>,
}

#[derive(Debug, Deserialize)]
struct NaiveP {
    q: Option<f64>,
}

fuzz_target!(|input: &[u8]| {
    let mut kinds = [Json::<Kinds>::projected(), Json::<Kinds>::projected_portably()];
    let mut required = [Json::<Required>::projected(), Json::<Required>::projected_portably()];
    let mut samples = [Json::<Sample>::projected(), Json::<Sample>::projected_portably()];
    let mut nested = [Json::<Nested>::projected(), Json::<Nested>::projected_portably()];
    for record in input.split(|byte| *byte == 0) {
        for _ in 0..4 {
            kinds.iter_mut().for_each(|decoder| same(decoder, record));
            required.iter_mut().for_each(|decoder| same(decoder, record));
            samples.iter_mut().for_each(|decoder| same(decoder, record));
            nested.iter_mut().for_each(|decoder| same_nested(decoder, record));
        }
    }
});

fn same<T>(decoder: &mut ProjectedJson<T>, record: &[u8])
where
    T: datum_codec::OwnedProjected + std::fmt::Debug + for<'de> Deserialize<'de>,
{
    let naive = serde_json::from_slice::<T>(record);
    let found = decoder.decode(record);
    assert_eq!(naive.is_ok(), found.is_ok(), "{naive:?} against {found:?}");
    if let (Ok(naive), Ok(found)) = (naive, found) {
        assert_eq!(format!("{naive:?}"), format!("{found:?}"));
    }
}

fn same_nested(decoder: &mut ProjectedJson<Nested>, record: &[u8]) {
    let naive = serde_json::from_slice::<NaiveNested>(record);
    let found = decoder.decode(record);
    assert_eq!(naive.is_ok(), found.is_ok(), "{naive:?} against {found:?}");
    if let (Ok(naive), Ok(found)) = (naive, found) {
        let opq = naive.o.and_then(|o| o.p).and_then(|p| p.q);
        let naive = (naive.a.b, naive.a.c, opq);
        assert_eq!(format!("{naive:?}"), format!("{:?}", (found.ab, found.ac, found.opq)));
    }
}
