//! The stages: what is emitted under each policy, and that the contract between operators is kept.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use datum_codec::prelude::*;
use datum_codec::stages::Payload;
use datum_codec::{DeadLetter, DecodeError, DecodeReason};
use datum_core::prelude::*;
use datum_testkit::{CheckedOps, JitterOps, TestRuntime, sink_probe, source_probe};

#[derive(Clone, Debug, PartialEq, Projected)]
struct Reading {
    celsius: f64,
}

#[derive(Projected)]
struct Named<'a> {
    name: &'a str,
}

fn reading(celsius: f64) -> Reading {
    Reading { celsius }
}

fn records() -> Vec<Bytes> {
    [r#"{"celsius":1.5}"#, r#"{"celsius":"#, r#"{"celsius":-2}"#, r#"{"kelvin":3}"#, r#"{"celsius":4e1}"#]
        .map(Bytes::from)
        .to_vec()
}

/// Runs the line with the contract checked around what `operators` adds, under several budgets.
macro_rules! outcome {
    ($records:expr, |$source:ident| $line:expr) => {{
        let mut outcomes = Vec::new();
        for (seed, budget) in [(1, 4096), (2, 1), (3, 2)] {
            let mut runtime = TestRuntime::new(seed);
            let $source = Source::from_iter($records).checked("records").jitter(seed);
            let materializer = runtime.materializer_with_budget(budget);
            let done = $line.checked("decoded").run_with_on(Sink::collect(), &materializer).unwrap();
            outcomes.push(runtime.outcome(done));
            assert_eq!(runtime.live_tasks(), 0);
        }
        outcomes
    }};
}

#[test]
fn skip_leaves_out_what_cannot_be_decoded() {
    for outcome in outcome!(records(), |source| {
        source.decode(Json::<Reading>::projected().on_error(DecodePolicy::Skip))
    }) {
        assert_eq!(outcome.unwrap(), [reading(1.5), reading(-2.0), reading(40.0)]);
    }
}

#[test]
fn fail_ends_the_stream_with_the_reason() {
    for outcome in outcome!(records(), |source| source.decode(Json::<Reading>::projected())) {
        let error = outcome.unwrap_err();
        let reason = error.downcast_ref::<DecodeError>().unwrap().reason();
        assert_eq!(reason, DecodeReason::UnexpectedEnd, "{error}");
        assert!(error.to_string().contains("`decode`"), "{error}");
    }
}

#[test]
fn a_failure_is_supervised() {
    for outcome in outcome!(records(), |source| {
        source
            .decode(Json::<Reading>::projected())
            .with_attributes(Attributes::new().supervision(Supervision::resume()))
    }) {
        assert_eq!(outcome.unwrap(), [reading(1.5), reading(-2.0), reading(40.0)]);
    }
}

#[test]
fn dead_letters_are_handed_over_with_record_and_reason() {
    let letters = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&letters);
    let policy = DecodePolicy::dead_letter(move |letter| taken.lock().unwrap().push(letter));
    for outcome in
        outcome!(records(), |source| { source.decode(Json::<Reading>::projected().on_error(policy.clone())) })
    {
        assert_eq!(outcome.unwrap(), [reading(1.5), reading(-2.0), reading(40.0)]);
    }
    let letters = letters.lock().unwrap();
    let expected: [(&[u8], _); 2] =
        [(br#"{"celsius":"#, DecodeReason::UnexpectedEnd), (br#"{"kelvin":3}"#, DecodeReason::MissingField)];
    // Each of the three runs has handed over both.
    assert_eq!(letters.len(), 6);
    for run in letters.chunks(2) {
        let seen: Vec<_> = run.iter().map(|letter| (&letter.record[..], letter.error.reason())).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn try_decode_emits_dead_letters_in_their_place() {
    for outcome in outcome!(records(), |source| source.try_decode(Json::<Reading>::projected())) {
        let found = outcome.unwrap();
        assert_eq!(found.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, false, true]);
        let DeadLetter { record, error } = found[3].clone().unwrap_err();
        assert_eq!((&record[..], error.path()), (&br#"{"kelvin":3}"#[..], Some("celsius")));
    }
}

#[test]
fn decode_with_lends_borrowed_fields() {
    let records = [r#"{"name":"abc"}"#, r#"{"name":"\u00e9"}"#].map(Bytes::from);
    for outcome in outcome!(records.clone(), |source| {
        source.decode_with(Json::<Named<'_>>::projected(), |named: Named<'_>| named.name.len())
    }) {
        assert_eq!(outcome.unwrap(), [3, 2]);
    }
}

#[test]
fn a_panic_of_the_closure_is_the_streams_failure() {
    for outcome in outcome!([Bytes::from(r#"{"name":"abc"}"#)], |source| {
        source.decode_with(Json::<Named<'_>>::projected(), |named: Named<'_>| {
            assert!(named.name.is_empty(), "not empty");
        })
    }) {
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Panicked { stage: "decode", .. }), "{error}");
    }
}

#[test]
fn nothing_is_decoded_ahead_of_demand() {
    let mut runtime = TestRuntime::new(1);
    let (source, records) = source_probe();
    let count = Arc::new(Mutex::new(0));
    let decoded = Arc::clone(&count);
    let sink = records
        .decode_with(Json::<Named<'_>>::projected(), move |_: Named<'_>| *decoded.lock().unwrap() += 1)
        .run_with_on(sink_probe(), &runtime.materializer())
        .unwrap();
    for _ in 0..5 {
        source.push(Bytes::from(r#"{"name":"abc"}"#));
    }
    runtime.run_ready();
    assert_eq!(*count.lock().unwrap(), 0);
    sink.request(2);
    runtime.run_ready();
    assert_eq!((*count.lock().unwrap(), sink.take().len()), (2, 2));
    source.complete();
    sink.request(9);
    runtime.run_ready();
    assert_eq!((*count.lock().unwrap(), sink.take().len()), (5, 3));
    assert!(matches!(sink.end(), Some(Ok(()))));
}

/// A connector's record, in small.
#[derive(Debug)]
struct Numbered<T> {
    offset: u64,
    value: T,
}

impl Payload for Numbered<Bytes> {
    type With<T: Send + 'static> = Numbered<T>;

    fn payload(&self) -> &Bytes {
        &self.value
    }

    fn with<T: Send + 'static>(self, value: T) -> Numbered<T> {
        Numbered { offset: self.offset, value }
    }
}

#[test]
fn the_rest_of_a_record_is_kept() {
    let numbered = || records().into_iter().zip(10..).map(|(value, offset)| Numbered { offset, value });
    for outcome in outcome!(numbered(), |source| {
        source.decode(Json::<Reading>::projected().on_error(DecodePolicy::Skip))
    }) {
        let found: Vec<_> = outcome.unwrap().into_iter().map(|r| (r.offset, r.value.celsius)).collect();
        assert_eq!(found, [(10, 1.5), (12, -2.0), (14, 40.0)]);
    }
}

#[test]
fn a_flow_that_decodes_can_be_used_twice() {
    let flow = Flow::new().decode(Json::<Reading>::projected().on_error(DecodePolicy::Skip));
    for _ in 0..2 {
        for outcome in outcome!(records(), |source| source.via(flow.clone())) {
            assert_eq!(outcome.unwrap().len(), 3);
        }
    }
}
