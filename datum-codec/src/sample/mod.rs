//! Sample telemetry records: what the examples, benchmarks and `datum gen` feed the library with.
//!
//! [`RecordGenerator`] writes one compact JSON object of 19 flat fields per call, about 465 bytes, the kind of
//! record a service mesh emits per request. The generator is deterministic: the same seed gives the same values,
//! whatever the [`Layout`] they are written in, so that a test can compare layouts with each other.
//!
//! | field | type | distribution |
//! |---|---|---|
//! | `timestamp` | integer, ms | what the caller passes |
//! | `event_id`, `trace_id` | 32 hexadecimal digits | uniform |
//! | `partition_key` | `device-NNNNNN` | uniform over 100,000 |
//! | `tenant_id` | `tenant-NNNN` | uniform over 2,000 |
//! | `region` | one of [`REGIONS`] | uniform over 16; 5 of them start with `eu-` |
//! | `service`, `method`, `endpoint` | 12, 4 and 10 values | uniform; some endpoints hold braces |
//! | `host` | `ip-10-a-b-c` | uniform |
//! | `status_code` | integer | 3/8 are 200; 201, 204, 301, 404 and 500 share the rest |
//! | `latency_ms` | float | exponential with mean 50, so that one in five is above 80 |
//! | `error_count` | integer | zero, or 1 to 4 in 3 % of the records |
//! | `request_size` | integer, bytes | uniform, 120 to 8,119 |
//! | `response_size` | integer, bytes | uniform, 200 to 120,199 |
//! | `cpu_usage` | float, % | uniform, 0 to 100 |
//! | `memory_mb` | float | uniform, 200 to 15,200 |
//! | `queue_depth` | integer | uniform, 0 to 499 |
//! | `throughput` | float | uniform, 0 to 2,000 |
//!
//! Floats are written with at most two decimals and without trailing zeros, as most emitters round them; the
//! layout [`Layout::LongFloats`] writes all digits that a 64-bit float needs.
//!
//! Cost: a few hundred nanoseconds per record, no allocation once the output has grown to its size (the long
//! floats go through the standard library's formatter and cost about twice as much).
//!
//! # Examples
//! ```
//! use datum_codec::sample::{Layout, RecordGenerator};
//!
//! let mut generator = RecordGenerator::new(7, Layout::Natural);
//! let mut line = Vec::new();
//! let keys = generator.write_record(&mut line, 1_762_732_800_000);
//! assert!(line.starts_with(br#"{"timestamp":1762732800000,"event_id":""#));
//! assert!(keys.partition_key().starts_with("device-"));
//! ```

mod random;
mod record;

use std::fmt;
use std::str::FromStr;

use self::random::SplitMix64;
use self::record::{Field, NATURAL_ORDER, SPREAD_ORDER, Values, write_long_float, write_rounded_float};

/// In which order and form the fields of a record are written.
///
/// Each layout defeats another shortcut that a decoder may be tempted to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Related fields stand together, as a person would write them; `,` and `:` without spaces.
    #[default]
    Natural,
    /// A field that the region rollup does not read stands between each two that it reads.
    Spread,
    /// The order of [`Layout::Natural`] with `", "` and `": "`, the default of Python's `json.dumps`.
    Spaced,
    /// The order of [`Layout::Natural`]; floats carry 15 to 17 significant digits.
    LongFloats,
}

impl Layout {
    /// All four layouts, in declaration order.
    pub const ALL: [Self; 4] = [Self::Natural, Self::Spread, Self::Spaced, Self::LongFloats];

    /// The name on a command line: `natural`, `spread`, `spaced` or `long-floats`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::Spread => "spread",
            Self::Spaced => "spaced",
            Self::LongFloats => "long-floats",
        }
    }

    const fn order(self) -> &'static [Field; 19] {
        match self {
            Self::Spread => &SPREAD_ORDER,
            Self::Natural | Self::Spaced | Self::LongFloats => &NATURAL_ORDER,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Layout {
    type Err = UnknownLayout;

    fn from_str(name: &str) -> Result<Self, UnknownLayout> {
        Self::ALL.into_iter().find(|layout| layout.name() == name).ok_or(UnknownLayout)
    }
}

/// The name given is not one of the layouts' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown layout: use natural, spread, spaced or long-floats")]
pub struct UnknownLayout;

/// What a caller may use as the key of the record just written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordKeys {
    /// The field `region`, one of [`REGIONS`].
    pub region: &'static str,
    partition_key: [u8; 13],
}

impl RecordKeys {
    /// The field `partition_key`: `device-` and six digits.
    #[must_use]
    pub fn partition_key(&self) -> &str {
        std::str::from_utf8(&self.partition_key).expect("letters, a hyphen and digits only")
    }
}

/// Writes sample records, each call one; see the [module](self) for the fields and their distributions.
///
/// A clone continues the same sequence on its own.
#[derive(Clone, Debug)]
pub struct RecordGenerator {
    random: SplitMix64,
    layout: Layout,
    /// What stands before each value: the separator, the quoted name, the colon.
    literals: [Vec<u8>; 19],
}

impl RecordGenerator {
    /// A generator whose whole output is determined by `seed`, `layout` and the timestamps passed.
    ///
    /// Every seed is as good as any other, zero included. (`latency_ms` goes through the platform's logarithm,
    /// whose last bit may differ between operating systems.)
    #[must_use]
    pub fn new(seed: u64, layout: Layout) -> Self {
        let order = layout.order();
        let literals = std::array::from_fn(|i| {
            let open = if i == 0 { "{" } else { "," };
            let name = order[i].name();
            match layout {
                Layout::Spaced if i > 0 => format!("{open} \"{name}\": "),
                Layout::Spaced => format!("{open}\"{name}\": "),
                _ => format!("{open}\"{name}\":"),
            }
            .into_bytes()
        });
        Self { random: SplitMix64(seed), layout, literals }
    }

    /// Appends one record to `out`, without a line break, and says what it may be keyed by.
    ///
    /// `timestamp_ms` is written as it is: milliseconds since the Unix epoch.
    pub fn write_record(&mut self, out: &mut Vec<u8>, timestamp_ms: i64) -> RecordKeys {
        let values = Values::draw(&mut self.random, timestamp_ms);
        let write_float =
            if self.layout == Layout::LongFloats { write_long_float } else { write_rounded_float };
        for (literal, field) in self.literals.iter().zip(self.layout.order()) {
            out.extend_from_slice(literal);
            values.write(*field, write_float, out);
        }
        out.push(b'}');
        RecordKeys { region: values.region, partition_key: values.partition_key() }
    }
}

/// The values of the field `region`.
pub const REGIONS: [&str; 16] = [
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eu-central-1",
    "eu-north-1",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "sa-east-1",
    "ca-central-1",
];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::record::write_rounded_float;
    use super::{Layout, REGIONS, RecordGenerator};

    fn records(seed: u64, layout: Layout, count: usize) -> Vec<Value> {
        let mut generator = RecordGenerator::new(seed, layout);
        (0..count)
            .map(|i| {
                let mut line = Vec::new();
                let keys = generator.write_record(&mut line, 1_000 + i64::try_from(i).unwrap());
                let record: Value = serde_json::from_slice(&line).unwrap();
                assert_eq!(record["region"], keys.region);
                assert_eq!(record["partition_key"], keys.partition_key());
                record
            })
            .collect()
    }

    #[test]
    fn every_layout_holds_the_same_values() {
        let natural = records(3, Layout::Natural, 200);
        assert_eq!(natural, records(3, Layout::Spread, 200));
        assert_eq!(natural, records(3, Layout::Spaced, 200));
        for (short, long) in natural.iter().zip(records(3, Layout::LongFloats, 200)) {
            for (name, value) in short.as_object().unwrap() {
                match name.as_str() {
                    "latency_ms" | "cpu_usage" | "memory_mb" | "throughput" => {
                        let difference = value.as_f64().unwrap() - long[name].as_f64().unwrap();
                        assert!(difference.abs() <= 0.005_000_001, "{name}: {value} {}", long[name]);
                    }
                    _ => assert_eq!(value, &long[name], "{name}"),
                }
            }
        }
        assert_ne!(natural, records(4, Layout::Natural, 200));
    }

    #[test]
    fn distributions_are_the_documented_ones() {
        let records = records(11, Layout::Natural, 20_000);
        let share = |test: &dyn Fn(&Value) -> bool| {
            records.iter().filter(|r| test(r)).count() as f64 / records.len() as f64
        };
        let number = |r: &Value, name: &str| r[name].as_f64().unwrap();
        for region in REGIONS {
            let seen = share(&|r| r["region"] == region);
            assert!((seen - 1.0 / 16.0).abs() < 0.01, "{region}: {seen}");
        }
        let breaches = share(&|r| number(r, "latency_ms") > 80.0);
        assert!((breaches - 0.202).abs() < 0.015, "{breaches}");
        let errors = share(&|r| number(r, "error_count") > 0.0);
        assert!((errors - 0.03).abs() < 0.005, "{errors}");
        for (name, least, most) in [
            ("error_count", 0.0, 4.0),
            ("request_size", 120.0, 8_119.0),
            ("response_size", 200.0, 120_199.0),
            ("cpu_usage", 0.0, 100.0),
            ("memory_mb", 200.0, 15_200.0),
            ("queue_depth", 0.0, 499.0),
            ("throughput", 0.0, 2_000.0),
        ] {
            let values = || records.iter().map(|r| number(r, name));
            assert!(values().all(|v| (least..=most).contains(&v)), "{name}");
            let span = most - least;
            assert!(values().any(|v| v < least + span * 0.01), "{name} never near its least");
            assert!(values().any(|v| v > most - span * 0.01), "{name} never near its most");
        }
    }

    #[test]
    fn a_record_is_about_465_bytes() {
        for (layout, least, most) in [
            (Layout::Natural, 455.0, 475.0),
            (Layout::Spread, 455.0, 475.0),
            (Layout::Spaced, 490.0, 512.0),
            (Layout::LongFloats, 500.0, 522.0),
        ] {
            let mut generator = RecordGenerator::new(1, layout);
            let mut out = Vec::new();
            for _ in 0..2_000 {
                generator.write_record(&mut out, 1_762_732_800_000);
            }
            let average = out.len() as f64 / 2_000.0;
            assert!((least..most).contains(&average), "{layout}: {average}");
        }
    }

    #[test]
    fn rounded_floats_print_as_the_standard_formatter_prints_them() {
        for value in [0.0, 0.004, 0.005, 0.1, 0.25, 1.0, 9.99, 9.999, 10.5, 15_199.99, 123.4] {
            let mut out = Vec::new();
            write_rounded_float(value, &mut out);
            let expected = format!("{}", (value * 100.0).round() / 100.0);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn layouts_are_named() {
        for layout in Layout::ALL {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        assert!("Natural".parse::<Layout>().is_err());
    }
}
