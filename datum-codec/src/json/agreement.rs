//! Tests that records fit a shape by all ways or by none, and that the same is left in the slots.

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use proptest::strategy::Just;

use super::parse::{Form, Parser};
use super::plan::Plan;
use super::shape::{Shape, Way};
use super::vector::Avx2;
use crate::projected::{Field, Slot, Unescaped};

const FIELDS: &[Field] = &[
    Field::new::<u64>(&["u"], "u"),
    Field::new::<Option<i64>>(&["i"], "i"),
    Field::new::<f64>(&["o", "d"], "o.d"),
    Field::new::<&str>(&["t"], "t"),
    Field::new::<bool>(&["b"], "b"),
];

/// One record, whose shape has literals of one byte up to more than two steps.
fn record(values: &[String]) -> Vec<u8> {
    let [a, b, c, d, e, f, g] = values else { panic!("seven values, not {}", values.len()) };
    format!(
        r#"{{"skipped":{a},"u":{b}, "k":{c},"a key that is longer than two steps of a shape can be":{d},"i":{e},"o" : {{"d":{f}}},"t":"x","n":0,"t2":{g},"b":true}}"#
    )
    .into_bytes()
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,20}",
        "-?[0-9]{1,40}",
        "-?(0|[1-9][0-9]{0,20})\\.[0-9]{0,20}",
        "-?[0-9]{1,3}\\.[0-9]{1,3}",
        "-?[0-9.]{0,8}",
        "-?[1-9](\\.[0-9]{1,3})?[eE][+-]?[0-9]{0,3}",
    ]
}

fn text(longest: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            30 => Just("x"),
            2 => prop::sample::select(vec!["é", "{", ",", ":", "]", "\u{7f}"]),
            1 => prop::sample::select(vec!["\\\"", "\\n", "\\u00e9", "\\", "\"", "\t", "\0"]),
        ],
        0..longest,
    )
    .prop_map(|parts| format!("\"{}\"", parts.concat()))
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => number(),
        2 => text(8),
        3 => text(110),
        1 => prop::sample::select(vec!["null", "true", "false", "{}", "[1,{\"a\":\"b\"}]", "", "0", "-0", "\""])
            .prop_map(str::to_owned),
    ]
}

/// Values that mostly suit their fields, so that many records fit to the end.
fn values() -> impl Strategy<Value = Vec<String>> {
    let usual = [value().boxed(), "[1-9][0-9]{0,17}".boxed(), value().boxed(), value().boxed()];
    let more = ["-?[1-9][0-9]{0,17}".boxed(), number().boxed(), value().boxed()];
    let learnt = [number().boxed(), "[1-9][0-9]{0,17}".boxed(), text(40).boxed(), number().boxed()];
    let floats = ["-?[1-9][0-9]{0,17}".boxed(), "-?[1-9][0-9]{0,5}\\.[0-9]{1,17}".boxed(), number().boxed()];
    prop_oneof![
        3 => learnt.into_iter().chain(floats).collect::<Vec<_>>(),
        3 => usual.into_iter().chain(more).collect::<Vec<_>>(),
        1 => prop::collection::vec(value(), 7),
    ]
}

/// The ways there are on this machine, each with its shape of such a record.
struct Ways(Vec<(Way, Shape)>);

impl Ways {
    fn all() -> Self {
        let ways = [None, Avx2::detect()].map(Way::new);
        Self(
            ways.map(|mut way| {
                let shape = shape(&mut way);
                (way, shape)
            })
            .into(),
        )
    }

    /// Compares all ways with the portable one; says whether the record fits.
    fn compare(&mut self, input: &[u8]) -> bool {
        let mut expected = None;
        for (way, shape) in &mut self.0 {
            let walked = outcome(|slots, unescaped| shape.walk(way, input, FIELDS, slots, unescaped));
            let read = outcome(|slots, unescaped| shape.read(way, input, FIELDS, slots, unescaped));
            let expected = expected.get_or_insert_with(|| walked.clone());
            assert_eq!(&walked, expected, "{way:?}: {}", input.escape_ascii());
            assert_eq!(&read, expected, "{way:?}: {}", input.escape_ascii());
        }
        expected.is_some_and(|expected| expected.is_some())
    }
}

/// The debug text of what is left behind, in which negative zero is not zero; nothing if the record does not fit.
fn outcome(read: impl FnOnce(&mut [Slot], &mut Unescaped) -> bool) -> Option<String> {
    let mut slots = vec![Slot::ABSENT; FIELDS.len()];
    let mut unescaped = Unescaped::default();
    read(&mut slots, &mut unescaped).then(|| format!("{slots:?} {unescaped:?}"))
}

fn shape(way: &mut Way) -> Shape {
    let plan = Plan::new(FIELDS);
    let input = record(&["1", "2", "\"3\"", "4", "5", "6", "7"].map(str::to_owned));
    let (mut slots, mut unescaped, mut form) =
        (vec![Slot::ABSENT; FIELDS.len()], Unescaped::default(), Form::default());
    Parser::new(&input, &plan, &mut slots, &mut unescaped, &mut form).parse().unwrap();
    let mut shape = Shape::of(&input, &plan, &form).unwrap();
    // It comes back, and so has an index.
    for _ in 0..3 {
        assert!(shape.read(way, &input, FIELDS, &mut slots, &mut unescaped));
    }
    assert!(matches!(way, Way::Portable) || shape.is_trusted());
    shape
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_agree(
        values in values(),
        before in 0..3_usize,
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        change in prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut input = record(&values);
        if let Some((place, byte)) = change {
            *place.get_mut(&mut input) = byte;
        }
        if let Some(place) = cut {
            input.truncate(place.index(input.len()));
        }
        // At several addresses, and with bytes around it that would be taken for more of it.
        let around = [&b"\"0"[..before.min(2)], &input, b"00\"}}"].concat();
        let input = &around[before.min(2)..][..input.len()];
        Ways::all().compare(input);
    }
}

#[test]
fn a_record_of_each_length_around_the_reach_fits_all_ways() {
    let mut ways = Ways::all();
    for length in 0..300 {
        let text = format!("\"{}\"", "x".repeat(length));
        let values = ["1", "2", &text, "4", "null", "-6.25", "17"].map(str::to_owned);
        let input = record(&values);
        assert!(ways.compare(&input), "{length}");
        for end in 0..input.len() {
            assert!(!ways.compare(&input[..end]), "{length}, {end}");
        }
    }
}

/// That the fast way is the one taken.
#[test]
fn plain_records_are_read_at_once() {
    let mut ways = Ways::all();
    let usual = ["1", "22", "\"a{b}: [c], d\"", "-44.5", "-5", "0.6666666666666666", "7"];
    let other = ["1.25e3", "12345678901234567890", "\"\u{e9}\"", "false", "null", "-7e-1", "-0"];
    let walked = ["1", "2", "\"\\n\"", "4", "5", "6", "7"];
    for (values, at_once) in [(usual, true), (other, true), (walked, false)] {
        assert!(ways.compare(&record(&values.map(str::to_owned))), "{values:?}");
        for (way, shape) in &ways.0 {
            let trusted = shape.is_trusted();
            assert!(matches!(way, Way::Portable) || trusted == at_once, "{way:?}, {values:?}");
        }
    }
}
