//! Records made up from scratch: any order, white space, nesting, escapes, and now and then something malformed.

use std::cell::Cell;

use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_oneof};
use proptest::test_runner::TestRunner;

use crate::oracle::{Both, Nested, Optional, Required, compare};

fn white_space() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\r\n\t")]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,3})",
        "-?(0|[1-9][0-9]{0,24})",
        "-?(0|[1-9][0-9]{0,9})\\.[0-9]{1,18}",
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,30})?[eE][-+]?[0-9]{1,3}",
        "-?[0-9]{0,3}\\.?[0-9]{0,2}e?[0-9]{0,2}",
    ]
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[ -!#-\\[\\]-~]{0,20}",
        1 => "\\\\[\"\\\\/bfnrt]",
        1 => "\\\\u[0-9a-fA-F]{4}",
        1 => "\\\\ud[89ab][0-9a-f]{2}\\\\ud[c-f][0-9a-f]{2}",
        1 => "[é日😀]",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => number(),
        3 => string(),
        1 => Just("null".to_owned()),
        1 => Just("true".to_owned()),
        1 => Just("false".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..4), white_space())
                .prop_map(|(elements, space)| format!("[{space}{}]", elements.join(&format!(",{space}")))),
            object(inner),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec![
            "\"a\"", "\"b\"", "\"c\"", "\"d\"", "\"e\"", "\"x\"", "\"y\"", "\"z\"", "\"o\"", "\"p\"", "\"q\"", "\"r\"",
            "\"\\u0061\"", "\"\\u0079\"", "\"u8\"", "\"i64\"", "\"f32\"", "\"f64\"", "\"text\"", "\"shared\"", "\"bool\"",
            "\"i128\"", "\"type.of\"", "\"loop\"",
        ])
        .prop_map(str::to_owned),
        1 => string(),
    ]
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member = (key(), white_space(), white_space(), value, white_space())
        .prop_map(|(key, before, behind, value, end)| format!("{key}{before}:{behind}{value}{end}"));
    (prop::collection::vec(member, 0..8), white_space())
        .prop_map(|(members, space)| format!("{{{space}{}}}", members.join(",")))
}

/// A record that both projections of this module may accept.
fn likely_record() -> impl Strategy<Value = String> {
    let members = [
        ("a", prop_oneof!["[0-9]{1,20}", Just("{\"x\":1,\"y\":{\"z\":0.5}}".to_owned())].boxed()),
        ("b", prop_oneof![number(), string()].boxed()),
        ("c", string().boxed()),
        ("d", prop_oneof![Just("true".to_owned()), Just("false".to_owned())].boxed()),
        ("e", "-?[1-9][0-9]{0,19}".boxed()),
        ("o", object(value()).boxed()),
    ];
    let members: Vec<_> = members
        .into_iter()
        .map(|(key, value)| {
            (white_space(), value).prop_map(move |(space, v)| format!("\"{key}\":{space}{v}"))
        })
        .collect();
    (members, 0..720_usize).prop_map(|(mut members, order)| {
        // One of the orders of six members, by its number.
        let mut rest = order;
        for i in (1..members.len()).rev() {
            members.swap(i, rest % (i + 1));
            rest /= i + 1;
        }
        format!("{{{}}}", members.join(","))
    })
}

fn broken(record: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"{}[]\",:\\ \n\x01\x80\xff019.-eEtn".to_vec());
    (record, prop::option::weighted(0.3, (0..10_000_usize, byte, 0..3_u8))).prop_map(|(text, change)| {
        let mut bytes = text.into_bytes();
        match change {
            Some((place, byte, kind)) if !bytes.is_empty() => {
                let at = place % bytes.len();
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => {
                        bytes.remove(at);
                    }
                }
            }
            _ => {}
        }
        bytes
    })
}

#[test]
fn made_up_records_are_judged_as_serde_json_judges_them() {
    let records = prop::collection::vec(
        prop_oneof![broken(likely_record()), broken(object(value())), broken(value())],
        1..4,
    );
    let accepted = Cell::new([0; 3]);
    let config = ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&records, |records| {
            let mut required = Both::<Required>::projected();
            let mut optional = Both::<Optional>::projected();
            let mut nested = Both::<Nested>::projected();
            let mut counts = accepted.get();
            for record in records.iter().chain(&records) {
                counts[0] += u32::from(compare(&mut required, record));
                counts[1] += u32::from(compare(&mut optional, record));
                counts[2] += u32::from(compare(&mut nested, record));
            }
            accepted.set(counts);
            Ok(())
        })
        .unwrap();
    // Else the test would only compare refusals.
    assert!(accepted.get().iter().all(|count| *count > 30), "{accepted:?}");
}
