//! The naive decoder: serde_json, for structs with the same fields.
//!
//! Both sides are compared by their debug text, in which `-0.0` differs from `0.0`.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use datum_codec::json::PathsTaken;
use datum_codec::{Json, OwnedProjected, Projected, ProjectedJson};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A projection and the struct that serde_json fills in its place.
pub(crate) trait Twin: OwnedProjected + Debug {
    type Naive: DeserializeOwned + Debug;
    fn naive(self) -> Self::Naive;
}

/// A decoder as this machine has it, and one without vector instructions.
pub(crate) struct Both<T> {
    native: ProjectedJson<T>,
    portable: ProjectedJson<T>,
}

impl<T: Twin> Both<T> {
    pub(crate) fn projected() -> Self {
        Self { native: Json::projected(), portable: Json::projected_portably() }
    }

    /// How both have read; it is the same.
    pub(crate) fn paths_taken(&self) -> PathsTaken {
        assert_eq!(self.native.paths_taken(), self.portable.paths_taken());
        self.native.paths_taken()
    }
}

/// Decodes with all and compares; says whether the record was accepted.
pub(crate) fn compare<T: Twin>(both: &mut Both<T>, input: &[u8]) -> bool {
    let accepted = compare_one(&mut both.native, input);
    compare_one(&mut both.portable, input);
    accepted
}

fn compare_one<T: Twin>(decoder: &mut ProjectedJson<T>, input: &[u8]) -> bool {
    let expected = serde_json::from_slice::<T::Naive>(input);
    let shared = Bytes::copy_from_slice(input);
    let found = decoder.decode(&shared);
    match (&expected, found) {
        (Ok(expected), Ok(found)) => {
            assert_eq!(format!("{:?}", found.naive()), format!("{expected:?}"), "{}", shown(input));
        }
        (Err(_), Err(error)) => assert!(error.offset() <= input.len(), "{error} in {}", shown(input)),
        (Ok(_), Err(error)) => panic!("refused: {error}, in {}", shown(input)),
        (Err(error), Ok(found)) => panic!("accepted as {found:?}, but {error}, in {}", shown(input)),
    }
    expected.is_ok()
}

/// Compares with a decoder that knows nothing, and again with one that has seen the record once and more.
pub(crate) fn check<T: Twin>(input: &[u8]) -> bool {
    let mut decoder = Both::<T>::projected();
    let accepted = compare(&mut decoder, input);
    for _ in 0..3 {
        compare(&mut decoder, input);
    }
    if accepted {
        let taken = decoder.paths_taken();
        assert_eq!(taken.by_shape + taken.in_full, 4);
    }
    accepted
}

fn shown(input: &[u8]) -> String {
    format!("`{}`", input.escape_ascii())
}

/// Every type, required.
#[expect(dead_code, reason = "compared by its debug text")]
#[derive(Debug, Projected, Deserialize)]
pub(crate) struct Required {
    pub(crate) a: u64,
    pub(crate) b: f64,
    pub(crate) c: String,
    pub(crate) d: bool,
    pub(crate) e: i64,
}

impl Twin for Required {
    type Naive = Self;
    fn naive(self) -> Self {
        self
    }
}

/// Every type, optional.
#[derive(Debug, Default, Projected)]
pub(crate) struct Optional {
    pub(crate) u8: Option<u8>,
    pub(crate) u16: Option<u16>,
    pub(crate) u32: Option<u32>,
    pub(crate) u64: Option<u64>,
    pub(crate) u128: Option<u128>,
    pub(crate) usize: Option<usize>,
    pub(crate) i8: Option<i8>,
    pub(crate) i16: Option<i16>,
    pub(crate) i32: Option<i32>,
    pub(crate) i64: Option<i64>,
    pub(crate) i128: Option<i128>,
    pub(crate) isize: Option<isize>,
    pub(crate) f32: Option<f32>,
    pub(crate) f64: Option<f64>,
    pub(crate) bool: Option<bool>,
    pub(crate) text: Option<String>,
    pub(crate) boxed: Option<Box<str>>,
    pub(crate) counted: Option<Arc<str>>,
    pub(crate) shared: Option<Bytes>,
    #[projected(rename = "type.of")]
    pub(crate) renamed: Option<u64>,
    pub(crate) r#loop: Option<Option<u64>>,
}

/// What serde_json fills in place of [`Optional`]: texts are strings.
#[expect(dead_code, reason = "compared by its debug text")]
#[derive(Debug, Deserialize)]
pub(crate) struct NaiveOptional {
    u8: Option<u8>,
    u16: Option<u16>,
    u32: Option<u32>,
    u64: Option<u64>,
    u128: Option<u128>,
    usize: Option<usize>,
    i8: Option<i8>,
    i16: Option<i16>,
    i32: Option<i32>,
    i64: Option<i64>,
    i128: Option<i128>,
    isize: Option<isize>,
    f32: Option<f32>,
    f64: Option<f64>,
    bool: Option<bool>,
    text: Option<String>,
    boxed: Option<String>,
    counted: Option<String>,
    shared: Option<String>,
    #[serde(rename = "type.of")]
    renamed: Option<u64>,
    r#loop: Option<Option<u64>>,
}

impl Twin for Optional {
    type Naive = NaiveOptional;
    fn naive(self) -> NaiveOptional {
        NaiveOptional {
            u8: self.u8,
            u16: self.u16,
            u32: self.u32,
            u64: self.u64,
            u128: self.u128,
            usize: self.usize,
            i8: self.i8,
            i16: self.i16,
            i32: self.i32,
            i64: self.i64,
            i128: self.i128,
            isize: self.isize,
            f32: self.f32,
            f64: self.f64,
            bool: self.bool,
            text: self.text,
            boxed: self.boxed.map(String::from),
            counted: self.counted.map(|text| text.to_string()),
            shared: self.shared.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            renamed: self.renamed,
            r#loop: self.r#loop,
        }
    }
}

/// Paths: `a.x` and `a.y.z` are required, all below `o` is optional; `b` stands between.
#[derive(Debug, Projected)]
pub(crate) struct Nested {
    #[projected(path = "a.x")]
    pub(crate) ax: u32,
    pub(crate) b: Option<String>,
    #[projected(path = "a.y.z")]
    pub(crate) ayz: f64,
    #[projected(path = "o.p")]
    pub(crate) op: Option<i8>,
    #[projected(path = "o.q.r")]
    pub(crate) oqr: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NaiveNested {
    a: NaiveA,
    b: Option<String>,
    o: Option<NaiveO>,
}

#[derive(Debug, Deserialize)]
struct NaiveA {
    x: u32,
    y: NaiveY,
}

#[derive(Debug, Deserialize)]
struct NaiveY {
    z: f64,
}

#[derive(Debug, Default, Deserialize)]
struct NaiveO {
    p: Option<i8>,
    q: Option<NaiveQ>,
}

#[derive(Debug, Deserialize)]
struct NaiveQ {
    r: Option<bool>,
}

/// [`NaiveNested`] with what is indistinguishable by projection made equal.
#[expect(dead_code, reason = "compared by its debug text")]
#[derive(Debug, Deserialize)]
#[serde(from = "NaiveNested")]
pub(crate) struct FlatNested(u32, Option<String>, f64, Option<i8>, Option<bool>);

impl From<NaiveNested> for FlatNested {
    fn from(nested: NaiveNested) -> Self {
        let o = nested.o.unwrap_or_default();
        Self(nested.a.x, nested.b, nested.a.y.z, o.p, o.q.and_then(|q| q.r))
    }
}

impl Twin for Nested {
    type Naive = FlatNested;
    fn naive(self) -> FlatNested {
        FlatNested(self.ax, self.b, self.ayz, self.op, self.oqr)
    }
}

/// What the region rollup reads, and the event time.
#[expect(dead_code, reason = "compared by its debug text")]
#[derive(Debug, Projected, Deserialize)]
pub(crate) struct Metric {
    pub(crate) timestamp: i64,
    pub(crate) region: String,
    pub(crate) latency_ms: f64,
    pub(crate) error_count: u64,
    pub(crate) request_size: u64,
    pub(crate) response_size: u64,
    pub(crate) cpu_usage: f64,
    pub(crate) memory_mb: f64,
    pub(crate) queue_depth: u64,
    pub(crate) throughput: f64,
}

impl Twin for Metric {
    type Naive = Self;
    fn naive(self) -> Self {
        self
    }
}
