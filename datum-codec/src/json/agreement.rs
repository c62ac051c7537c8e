//! Tests that records fit a shape by vectors just when they fit it portably, and leave the same in the slots.

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use proptest::strategy::Just;

use super::parse::{Form, Parser};
use super::plan::Plan;
use super::shape::{OBSERVED, Shape};
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

fn value() -> impl Strategy<Value = String> {
    let text = |longest| {
        prop::collection::vec(
            prop_oneof![
                30 => Just("x"),
                2 => prop::sample::select(vec!["é", "{", ",", ":", "]", "\u{7f}"]),
                1 => prop::sample::select(vec!["\\\"", "\\n", "\\u00e9", "\\", "\"", "\t", "\0"]),
            ],
            0..longest,
        )
        .prop_map(|parts| format!("\"{}\"", parts.concat()))
    };
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
    prop_oneof![
        3 => usual.into_iter().chain(more).collect::<Vec<_>>(),
        1 => prop::collection::vec(value(), 7),
    ]
}

type Outcome = (bool, Option<String>);

fn read(shape: &Shape, vector: Option<Avx2>, input: &[u8]) -> Outcome {
    let mut slots = vec![Slot::ABSENT; FIELDS.len()];
    let mut unescaped = Unescaped::default();
    let fits = shape.read(vector, input, FIELDS, &mut slots, &mut unescaped);
    // By their debug text, negative zero is not zero.
    (fits, fits.then(|| format!("{slots:?} {unescaped:?}")))
}

fn shape() -> Shape {
    let plan = Plan::new(FIELDS);
    let input = record(&["1", "2", "3", "4", "5", "6", "7"].map(str::to_owned));
    let (mut slots, mut unescaped, mut form) =
        (vec![Slot::ABSENT; FIELDS.len()], Unescaped::default(), Form::default());
    Parser::new(&input, &plan, &mut slots, &mut unescaped, &mut form).parse().unwrap();
    Shape::of(&input, &plan, &form).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_agree(
        values in values(),
        before in 0..3_usize,
        observed in any::<bool>(),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        change in prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut shape = shape();
        let mut input = record(&values);
        if let Some((place, byte)) = change {
            *place.get_mut(&mut input) = byte;
        }
        if let Some(place) = cut {
            input.truncate(place.index(input.len()));
        }
        if observed && read(&shape, None, &input).0 {
            // The lengths of this very record are the usual ones then.
            (0..OBSERVED).for_each(|turn| shape.observe(&input, turn));
        }
        // At several addresses, and with bytes around it that would be taken for more of it.
        let around = [&b"\"0"[..before.min(2)], &input, b"00\"}}"].concat();
        let input = &around[before.min(2)..][..input.len()];
        assert_eq!(
            read(&shape, Avx2::detect(), input),
            read(&shape, None, input),
            "{}",
            input.escape_ascii()
        );
    }
}

#[test]
fn a_record_of_each_length_around_the_reach_fits_both_ways() {
    let shape = shape();
    for length in 0..300 {
        let text = format!("\"{}\"", "x".repeat(length));
        let values = ["1", "2", &text, "4", "null", "-6.25", "17"].map(str::to_owned);
        let input = record(&values);
        let expected = read(&shape, None, &input);
        assert!(expected.0, "{length}");
        assert_eq!(read(&shape, Avx2::detect(), &input), expected, "{length}");
        for end in 0..input.len() {
            assert!(!read(&shape, Avx2::detect(), &input[..end]).0, "{length}, {end}");
        }
    }
}
