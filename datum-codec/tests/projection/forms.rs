//! Whole records: order, white space, duplicates, missing keys, arrays for objects, and what shapes are learnt.

use bytes::Bytes;
use datum_codec::{DecodeReason, Json, Projected};

use crate::oracle::{Both, Nested, Optional, Required, check, compare};

#[test]
fn forms_of_records_are_accepted_as_with_serde_json() {
    let accepted: &[&str] = &[
        r#"{"a":1,"b":2,"c":"","d":false,"e":0}"#,
        r#"{"e":0,"d":false,"c":"","b":2,"a":1}"#,
        " \t\r\n{ \"a\" : 1 ,\n\"b\":2\t,\"c\":\"\",\"d\":false,\"e\":0 } \n",
        r#"{"x":{"a":1,"a":2},"a":1,"b":2,"c":"","d":false,"e":0,"x":1}"#,
        r#"{"\u0061":1,"\u0062":2,"c":"","d":false,"e":0}"#,
        r#"[1,2,"",true,-1]"#,
        r#" [ 1 , 2.5 , "\n" , true , -1 ] "#,
    ];
    for text in accepted {
        assert!(check::<Required>(text.as_bytes()), "{text}");
    }
    let refused: &[&str] = &[
        "",
        " ",
        "{}",
        "{",
        "null",
        "[]",
        "[1,2,\"\",true]",
        "[1,2,\"\",true,-1,]",
        "[1,2,\"\",true,-1,5]",
        "[1,2,\"\",true,-1",
        r#"{"a":1,"b":2,"c":"","d":false}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":null}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0,"a":1}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0,"\u0061":1}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0,}"#,
        r#"{,"a":1,"b":2,"c":"","d":false,"e":0}"#,
        r#"{"a":1,,"b":2,"c":"","d":false,"e":0}"#,
        r#"{"a":1 "b":2,"c":"","d":false,"e":0}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0}x"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0}{}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0"#,
        r#"{"A":1,"b":2,"c":"","d":false,"e":0}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0,"\ud800":1}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0,"x\q":1}"#,
        "{\"a\":1,\"b\":2,\"c\":\"\",\"d\":false,\"e\":0,\"x\n\":1}",
        "\u{b}{\"a\":1,\"b\":2,\"c\":\"\",\"d\":false,\"e\":0}",
    ];
    for text in refused {
        assert!(!check::<Required>(text.as_bytes()), "{text}");
    }
    assert!(!check::<Required>(b"{\"a\":1,\"b\":2,\"c\":\"\",\"d\":false,\"e\":0,\"\xff\":1}"));
    assert!(check::<Optional>(b"{}"));
    assert!(check::<Optional>(br#"{"u8":null,"loop":null}"#));
}

#[test]
fn nested_forms_are_accepted_as_with_serde_json() {
    for text in [
        r#"{"a":{"x":1,"y":{"z":2}}}"#,
        r#"{"b":"t","o":{"p":-3,"q":{"r":true}},"a":{"y":{"z":2},"x":1}}"#,
        r#"{"a":{"x":1,"y":{"z":2,"w":{"z":3}},"z":1},"o":null,"z":4}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":{}}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":{"q":null}}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":[1,[true]]}"#,
        r#"{"a":[1,[2]],"o":[null,null]}"#,
        r#"[[1,[2]],"b",[null,[false]]]"#,
        r#"[{"x":1,"y":[2]},null,null]"#,
    ] {
        assert!(check::<Nested>(text.as_bytes()), "{text}");
    }
    for text in [
        r#"{"a":{"x":1,"y":{"z":2}},"a":{"x":1,"y":{"z":2}}}"#,
        r#"{"a":{"x":1,"x":1,"y":{"z":2}}}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":null,"o":{}}"#,
        r#"{"a":{"x":1,"y":null}}"#,
        r#"{"a":{"x":1}}"#,
        r#"{"a":null}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":[]}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":[1]}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":[1,[true],2]}"#,
        r#"{"a.x":1,"a.y.z":2}"#,
        r#"{"a":{"x":1,"y":{"z":2}},"o":1}"#,
    ] {
        assert!(!check::<Nested>(text.as_bytes()), "{text}");
    }
}

#[test]
fn every_prefix_of_a_record_is_refused() {
    let text =
        br#"{"x":["\u00e9",{"k":null}],"a":{"x":17,"y":{"z":-2.5e3}},"b":"t\n","o":{"q":{"r":false}}}"#;
    let mut decoder = Both::<Nested>::projected();
    for end in 0..text.len() {
        assert!(!compare(&mut decoder, &text[..end]));
        assert!(!check::<Nested>(&text[..end]));
    }
    for _ in 0..2 {
        assert!(compare(&mut decoder, text));
        for end in 0..text.len() {
            assert!(!compare(&mut decoder, &text[..end]));
        }
    }
}

#[test]
fn alternating_shapes_are_all_kept() {
    let forms = [
        r#"{"a":1,"b":2,"c":"","d":false,"e":0}"#,
        r#"{"a":1,"b":2,"c":"","d":false,"e":0,"f":[1]}"#,
        r#"{"e":1, "b":2, "c":"", "d":false, "a":0}"#,
        r#"{"n":{"m":1},"a":1,"b":2,"c":"\u00e9","d":false,"e":0}"#,
    ];
    let mut decoder = Both::<Required>::projected();
    for round in 0..50 {
        for form in forms {
            assert!(compare(&mut decoder, form.as_bytes()), "{round}");
        }
        // Irregular turns, too.
        assert!(compare(&mut decoder, forms[round % 3].as_bytes()));
    }
    let taken = decoder.paths_taken();
    assert_eq!((taken.in_full, taken.by_shape), (4, 246));
}

#[test]
fn more_shapes_than_are_kept_stay_right() {
    let mut decoder = Both::<Required>::projected();
    let form = |i: usize| format!(r#"{{"k{i}":0,"a":{i},"b":2,"c":"","d":false,"e":0}}"#);
    for i in 0..600 {
        assert!(compare(&mut decoder, form(i).as_bytes()));
    }
    // Then one form alone is learnt again soon.
    for _ in 0..200 {
        assert!(compare(&mut decoder, form(7).as_bytes()));
    }
    assert!(decoder.paths_taken().by_shape > 150, "{:?}", decoder.paths_taken());
}

#[test]
fn huge_and_deep_records_are_read() {
    let wide: String = (0..3_000).map(|i| format!("\"k{i}\":{i},")).collect();
    let text = format!(r#"{{{wide}"a":1,"b":2,"c":"","d":false,"e":0}}"#);
    assert!(check::<Required>(text.as_bytes()));
    let long_key = "k".repeat(100_000);
    let text = format!(r#"{{"{long_key}":1,"a":1,"b":2,"c":"{long_key}","d":false,"e":0}}"#);
    assert!(check::<Required>(text.as_bytes()));
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let text = format!(r#"{{"x":{deep},"a":1,"b":2,"c":"","d":false,"e":0}}"#);
    assert!(check::<Required>(text.as_bytes()));
}

#[test]
fn errors_name_reason_offset_and_path() {
    let mut decoder = Json::<Nested>::projected();
    let mut seen = |text: &str| {
        let error = decoder.decode(text).unwrap_err();
        (error.reason(), error.offset(), error.path())
    };
    assert_eq!(seen(r#"{"a":{"x":-1,"y":{"z":2}}}"#), (DecodeReason::NumberOutOfRange, 10, Some("a.x")));
    assert_eq!(seen(r#"{"a":{"x":1.5}}"#), (DecodeReason::ExpectedInteger, 10, Some("a.x")));
    assert_eq!(seen(r#"{"a":{"x":1,"y":{}}}"#), (DecodeReason::MissingField, 20, Some("a.y.z")));
    assert_eq!(seen(r#"{"a":{"x":1,"x":1}}"#), (DecodeReason::DuplicateField, 12, Some("a.x")));
    assert_eq!(seen(r#"{"b":7}"#), (DecodeReason::ExpectedString, 5, Some("b")));
    assert_eq!(seen(r#"{"o":{"q":{"r":0}}}"#), (DecodeReason::ExpectedBool, 15, Some("o.q.r")));
    assert_eq!(seen(r#"{"w":01}"#), (DecodeReason::InvalidNumber, 6, None));
    assert_eq!(seen("{\"w\":\"a\tb\"}"), (DecodeReason::ControlCharacter, 7, None));
    assert_eq!(seen(r#"{"w":1,}"#), (DecodeReason::TrailingComma, 6, None));
    assert_eq!(seen(r#"{"w":1"#), (DecodeReason::UnexpectedEnd, 6, None));
    assert_eq!(seen("17"), (DecodeReason::ExpectedObject, 0, None));
    assert_eq!(seen(r#"{"b":"\ud800"}"#).0, DecodeReason::LoneSurrogate);
    let error = decoder.decode(b"{\"b\":\"\xff\",\"a\":{\"x\":1,\"y\":{\"z\":2}}}").unwrap_err();
    assert_eq!((error.reason(), error.offset(), error.path()), (DecodeReason::InvalidUtf8, 6, Some("b")));
}

#[derive(Debug, Projected)]
struct Borrowed<'a> {
    name: &'a str,
    note: Option<&'a str>,
    raw: Bytes,
}

#[test]
fn texts_are_borrowed_shared_or_unescaped() {
    let mut decoder = Json::<Borrowed<'_>>::projected();
    let record = Bytes::from_static(br#"{"name":"plain","note":"two\nlines","raw":"shared text"}"#);
    for _ in 0..3 {
        let raw = decoder
            .decode_with(&record, |borrowed| {
                assert_eq!((borrowed.name, borrowed.note), ("plain", Some("two\nlines")));
                // The name is the record's own bytes.
                assert!(record.as_ptr_range().contains(&borrowed.name.as_ptr()));
                borrowed.raw
            })
            .unwrap();
        assert_eq!(&raw[..], b"shared text");
        assert!(record.as_ptr_range().contains(&raw.as_ptr()));
    }
    let escaped = br#"{"name":"\u00e9","note":"\\","raw":"\ud83d\ude00"}"#;
    let raw = decoder.decode_with(escaped, |borrowed| {
        assert_eq!((borrowed.name, borrowed.note), ("é", Some("\\")));
        borrowed.raw
    });
    assert_eq!(raw.unwrap(), "😀".as_bytes());
    assert_eq!(decoder.paths_taken().in_full, 1);
}

#[test]
fn a_decoder_is_send_and_its_clone_knows_the_shapes() {
    fn sendable<T: Send + Sync + Unpin>(_: &T) {}
    let mut first = Json::<Required>::projected();
    sendable(&first);
    let text = r#"{"a":1,"b":2,"c":"","d":false,"e":0}"#;
    first.decode(text).unwrap();
    let mut second = first.clone();
    second.decode(text).unwrap();
    assert_eq!(second.paths_taken().by_shape, 1);
    assert!(format!("{second:?}").contains("by_shape: 1"));
}
