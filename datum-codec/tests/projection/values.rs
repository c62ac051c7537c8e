//! One value at a time: each that is at the edge of something, for each type, wanted and not.

use crate::oracle::{Both, Nested, Optional, Required, check, compare};

/// Numbers at the edges of types, of the short ways and of the grammar; some are malformed.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "0.0",
    "-0.0",
    "00",
    "01",
    "-01",
    "-",
    "--1",
    "+1",
    "1.",
    ".1",
    "1.e1",
    "1e",
    "1e+",
    "1E-",
    "0x1",
    "1",
    "-1",
    "7",
    "-7",
    "12",
    "123456",
    "1234567",
    "12345678",
    "123456789",
    "1234567890",
    "123456789012345",
    "1234567890123456",
    "12345678901234567",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "32767",
    "32768",
    "-32768",
    "-32769",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211455",
    "340282366920938463463374607431768211456",
    "-170141183460469231731687303715884105728",
    "-170141183460469231731687303715884105729",
    "1.0",
    "1.5",
    "-1.5",
    "0.1",
    "0.25",
    "123456.78",
    "1234567.89",
    "12345678.9",
    "1.12345678",
    "1.123456789",
    "1.1234567890123456",
    "12.3456789012345",
    "123.456789012345678",
    "1234567.1234567",
    "1234567.12345678",
    "0.30000000000000004",
    "9007199254740.993",
    "900719925.4740993",
    "90071.99254740993",
    "9007199.254740993",
    "0.000001",
    "00.1",
    "-00.1",
    "0.1e1",
    "1e0",
    "1e1",
    "1E1",
    "1e+1",
    "1e-1",
    "1e22",
    "1e23",
    "1e-22",
    "1e-23",
    "1e15",
    "123e4",
    "1.5e3",
    "-1.5e-3",
    "1e308",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "1e309",
    "-1e309",
    "2.2250738585072014e-308",
    "2.2250738585072011e-308",
    "4.9e-324",
    "2.4e-324",
    "2.5e-324",
    "1e-400",
    "0e400",
    "0e99999999999999999999",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "0.0e-5",
    "3.4028234663852886e38",
    "3.4028235677973366e38",
    "3.5e38",
    "1.17549435e-38",
    "1e-46",
    "7e-46",
    "16777217",
    "16777217.0",
    "0.1000000014901161193847656250000001",
    "1.00000017881393421514957253748434595763683319091796875",
    "100000000000000000000000000000000000000000000000000",
    "0.00000000000000000000000000000000000000000000000001",
    "179769313486231580793728971405301e276",
    "1a",
    "1 2",
    "1,2",
    "1.2.3",
    "1-",
    "1e1.5",
    "Infinity",
    "NaN",
    "-Infinity",
];

/// What is not a number; some of it is not JSON.
const OTHERS: &[&str] = &[
    "null",
    "nul",
    "nulll",
    "Null",
    "true",
    "tru",
    "false",
    "fals",
    "falsee",
    "True",
    "",
    "\"",
    "\"\"",
    "\"a\"",
    "'a'",
    "\"a",
    "\"1\"",
    "\"null\"",
    "\"\\\"",
    "\"\\\\\"",
    "\"\\n\\t\\b\\f\\r\\/\\\"\"",
    "\"\\x\"",
    "\"\\u\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\u0041\"",
    "\"\\u0000\"",
    "\"\\uD834\\uDD1E\"",
    "\"\\uD834\"",
    "\"\\uDD1E\"",
    "\"\\uDD1E\\uD834\"",
    "\"\\uD834\\uD834\"",
    "\"\\uD834x\"",
    "\"\\uD834\\n\"",
    "\"\\ud834\\udd1e tail\"",
    "\"\\uFFFF\"",
    "\"a\nb\"",
    "\"a\tb\"",
    "\"\u{0}\"",
    "\"\u{1f}\"",
    "\"\u{7f}\"",
    "\"\u{80}\"",
    "\"é\"",
    "\"日本語\"",
    "\"😀\"",
    "\"a string that is longer than sixteen bytes\"",
    "\"a string with an escape behind 16 bytes \\u00e9 and more\"",
    "\"sixteen bytes ok\"",
    "\"fifteen bytes!!\"",
    "\"it holds {braces} and [brackets], even : and ,\"",
    "[]",
    "{}",
    "[1]",
    "[1,2]",
    "[1,]",
    "[,1]",
    "[",
    "]",
    "{",
    "}",
    "{\"a\":1}",
    "{\"a\":1,}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{a:1}",
    "{1:2}",
    "{\"a\" : [1 , {\"b\":null}] }",
    "{\"\\uD834\":1}",
    "[[[[[[]]]]]]",
    "[[[[[[]]]]",
    "[}",
    "{]",
    "[1 2]",
    "{\"a\":1 \"b\":2}",
    "[\"\\q\"]",
    "[01]",
    "[nul]",
    "[\"a\u{1}\"]",
    "[true,false,null,-1.5e3,\"\"]",
    "//",
    "/*c*/1",
    "\u{feff}1",
    "undefined",
];

/// Texts that are not UTF-8, and bytes that are no text at all.
const BYTES: &[&[u8]] = &[
    b"\"\xff\"",
    b"\"a\x80\"",
    b"\"\xc3\"",
    b"\"\xed\xa0\x80\"",
    b"\"\xf4\x90\x80\x80\"",
    b"\"\xc0\xaf\"",
    b"\"\xe2\x82\"",
    b"\"\\n\xff\"",
    b"\"\xff\\n\"",
    b"[\"\xff\"]",
    b"{\"\xff\":1}",
    b"\xff",
    b"\xef\xbb\xbf1",
];

fn every_value() -> impl Iterator<Item = Vec<u8>> {
    let texts = NUMBERS.iter().chain(OTHERS).map(|text| text.as_bytes().to_vec());
    texts.chain(BYTES.iter().map(|bytes| bytes.to_vec()))
}

fn record(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

const OPTIONAL_KEYS: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    "bool", "text", "boxed", "counted", "shared", "type.of", "loop",
];

#[test]
fn every_type_reads_every_value_as_serde_json_does() {
    let mut accepted = 0;
    for value in every_value() {
        for key in OPTIONAL_KEYS {
            // With room behind the value, for the short ways, and without.
            accepted += usize::from(check::<Optional>(&record(&[
                b"{\"",
                key.as_bytes(),
                b"\":",
                &value,
                b",\"other\":\"some more bytes behind it\"}",
            ])));
            check::<Optional>(&record(&[b"{\"", key.as_bytes(), b"\":", &value, b"}"]));
        }
    }
    assert!(accepted > 600, "{accepted}");
}

#[test]
fn unwanted_values_are_checked_as_serde_json_checks_them() {
    let mut accepted = 0;
    for value in every_value() {
        let before = record(&[br#"{"other":"#, &value, br#","a":1,"b":2.5,"c":"x","d":true,"e":-5}"#]);
        let behind = record(&[br#"{"a":1,"b":2.5,"c":"x","d":true,"e":-5,"other": "#, &value, b"\n} \n"]);
        accepted += usize::from(check::<Required>(&before));
        check::<Required>(&behind);
        check::<Nested>(&record(&[br#"{"a":{"other":"#, &value, br#","x":1,"y":{"z":2}}}"#]));
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn a_known_shape_does_not_hide_a_wrong_value() {
    // The shape is learnt from a good record; then each value is tried in each place.
    let good: [&[u8]; 6] = [b"1", b"2.5", b"\"x\"", b"true", b"-5", b"\"other\""];
    let keys: [&[u8]; 6] = [b"{\"a\":", b", \"b\":", b",\"c\" :", b",\"d\":", b",\"e\":", b",\"f\":"];
    let with = |place: usize, value: &[u8]| {
        let members = (0..6).flat_map(|i| [keys[i], if i == place { value } else { good[i] }]);
        record(&members.chain([&b"}"[..]]).collect::<Vec<_>>())
    };
    for place in 0..6 {
        for value in every_value() {
            let mut decoder = Both::<Required>::projected();
            compare(&mut decoder, &with(9, b""));
            compare(&mut decoder, &with(place, &value));
            compare(&mut decoder, &with(9, b""));
        }
    }
}

#[test]
fn values_stand_in_for_nested_objects_as_with_serde_json() {
    let mut accepted = 0;
    for value in every_value() {
        for path in ["a", "b", "o"] {
            let rest: &[u8] = match path {
                "a" => br#"}"#,
                _ => br#","a":{"x":1,"y":{"z":2}}}"#,
            };
            accepted +=
                usize::from(check::<Nested>(&record(&[b"{\"", path.as_bytes(), b"\":", &value, rest])));
        }
        check::<Nested>(&record(&[br#"{"a":{"x":1,"y":"#, &value, b"}}"]));
        check::<Nested>(&record(&[br#"{"a":{"x":1,"y":{"z":0}},"o":{"q":"#, &value, b"}}"]));
        check::<Nested>(&value);
    }
    assert!(accepted > 10, "{accepted}");
}
