//! Sample records in all four layouts, whole and perturbed.

use datum_codec::sample::{Layout, RecordGenerator};
use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use proptest::strategy::Just;

use crate::oracle::{Both, Metric, compare};

#[test]
fn sample_records_are_read_by_shape_in_every_layout() {
    for layout in Layout::ALL {
        let mut generator = RecordGenerator::new(5, layout);
        let mut decoder = Both::<Metric>::projected();
        let mut line = Vec::new();
        for i in 0..2_000 {
            line.clear();
            generator.write_record(&mut line, 1_762_732_800_000 + i);
            assert!(compare(&mut decoder, &line));
        }
        assert_eq!(decoder.paths_taken().in_full, 1, "{layout}");
    }
}

/// A change of some bytes; places are fractions of the record's length.
#[derive(Clone, Debug)]
enum Change {
    Overwrite(u16, u8),
    Insert(u16, Vec<u8>),
    Delete(u16, u8),
    Repeat(u16, u8),
    /// Puts this in place of the value that follows the place.
    Value(u16, &'static str),
    Truncate(u16),
}

impl Change {
    fn apply(&self, record: &mut Vec<u8>) {
        let at = |place: u16| usize::from(place) * record.len() / (usize::from(u16::MAX) + 1);
        match self {
            _ if record.is_empty() => {}
            Self::Overwrite(place, byte) => {
                let at = at(*place);
                record[at] = *byte;
            }
            Self::Insert(place, bytes) => {
                let at = at(*place);
                record.splice(at..at, bytes.iter().copied());
            }
            Self::Delete(place, count) => {
                let from = at(*place);
                let to = record.len().min(from + usize::from(*count));
                record.drain(from..to);
            }
            Self::Repeat(place, count) => {
                let from = at(*place);
                let to = record.len().min(from + usize::from(*count));
                let part = record[from..to].to_vec();
                record.splice(from..from, part);
            }
            Self::Value(place, value) => {
                let from = at(*place);
                let Some(colon) = record[from..].iter().position(|byte| *byte == b':') else { return };
                let start = from + colon + 1;
                let Some(length) = record[start..].iter().position(|byte| b",}".contains(byte)) else {
                    return;
                };
                record.splice(start..start + length, value.bytes());
            }
            Self::Truncate(place) => {
                let at = at(*place);
                record.truncate(at);
            }
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let byte = || prop::sample::select(b"{}[]\",:\\ \n\t\x00\x1f\x7f\x80\xff0123456789.-+eEtfnu/a".to_vec());
    let text = prop_oneof![
        Just(&b"\"region\":\"x\","[..]),
        Just(&b",\"region\":\"x\""[..]),
        Just(&b"\"latency_ms\":1,"[..]),
        Just(&b",\"new\":{\"region\":[1]}"[..]),
        Just(&b"\"new\":[],"[..]),
        Just(&b"\\\""[..]),
        Just(&b"\\u00e9"[..]),
        Just(&b"\\ud800"[..]),
        Just(&b" "[..]),
        Just(&b"\xc3\xa9"[..]),
    ]
    .prop_map(<[u8]>::to_vec);
    let value = prop::sample::select(vec![
        "null",
        "true",
        "0",
        "-0",
        "-1",
        "1.5",
        "1e2",
        "1e400",
        "18446744073709551616",
        "01",
        "\"\"",
        "\"x\"",
        "\"\\n\"",
        "[]",
        "{}",
        "[1,{\"a\":2}]",
        " 7 ",
        "",
        "12345678901234567890.5",
        "0.1234567890123456789",
        "99999999.25",
        "1234567.5",
        "\"\u{e9}\"",
        "-12.5",
    ]);
    let change = prop_oneof![
        3 => (any::<u16>(), byte()).prop_map(|(at, byte)| Change::Overwrite(at, byte)),
        1 => (any::<u16>(), prop::collection::vec(byte(), 1..4)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (any::<u16>(), text).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (any::<u16>(), 1..40_u8).prop_map(|(at, count)| Change::Delete(at, count)),
        1 => (any::<u16>(), 1..40_u8).prop_map(|(at, count)| Change::Repeat(at, count)),
        5 => (any::<u16>(), value).prop_map(|(at, value)| Change::Value(at, value)),
        1 => any::<u16>().prop_map(Change::Truncate),
    ];
    prop::collection::vec(change, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// One decoder sees whole and perturbed records of one or two layouts in turn.
    #[test]
    fn perturbed_records_are_judged_as_serde_json_judges_them(
        seed in any::<u64>(),
        layouts in prop::collection::vec(prop::sample::select(Layout::ALL.to_vec()), 1..3),
        records in prop::collection::vec(changes(), 1..12),
    ) {
        let mut decoder = Both::<Metric>::projected();
        let mut generators: Vec<_> =
            layouts.iter().map(|layout| RecordGenerator::new(seed, *layout)).collect();
        for (i, changes) in records.iter().enumerate() {
            let turn = i % generators.len();
            let mut record = Vec::new();
            generators[turn].write_record(&mut record, 1_762_732_800_000);
            compare(&mut decoder, &record);
            for change in changes {
                change.apply(&mut record);
            }
            compare(&mut decoder, &record);
        }
    }
}
