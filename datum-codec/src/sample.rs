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

use std::fmt;
use std::io::Write;
use std::str::FromStr;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Timestamp,
    EventId,
    PartitionKey,
    TenantId,
    Region,
    Service,
    Host,
    Method,
    Endpoint,
    StatusCode,
    LatencyMs,
    ErrorCount,
    RequestSize,
    ResponseSize,
    CpuUsage,
    MemoryMb,
    QueueDepth,
    Throughput,
    TraceId,
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Timestamp => "timestamp",
            Self::EventId => "event_id",
            Self::PartitionKey => "partition_key",
            Self::TenantId => "tenant_id",
            Self::Region => "region",
            Self::Service => "service",
            Self::Host => "host",
            Self::Method => "method",
            Self::Endpoint => "endpoint",
            Self::StatusCode => "status_code",
            Self::LatencyMs => "latency_ms",
            Self::ErrorCount => "error_count",
            Self::RequestSize => "request_size",
            Self::ResponseSize => "response_size",
            Self::CpuUsage => "cpu_usage",
            Self::MemoryMb => "memory_mb",
            Self::QueueDepth => "queue_depth",
            Self::Throughput => "throughput",
            Self::TraceId => "trace_id",
        }
    }
}

/// The values of one record, drawn in an order that does not depend on the layout.
struct Values {
    timestamp_ms: i64,
    event_id: [u64; 2],
    trace_id: [u64; 2],
    device: u64,
    tenant: u64,
    region: &'static str,
    service: &'static str,
    host: [u64; 3],
    method: &'static str,
    endpoint: &'static str,
    status_code: u64,
    latency_ms: f64,
    error_count: u64,
    request_size: u64,
    response_size: u64,
    cpu_usage: f64,
    memory_mb: f64,
    queue_depth: u64,
    throughput: f64,
}

impl Values {
    fn draw(random: &mut SplitMix64, timestamp_ms: i64) -> Self {
        Self {
            timestamp_ms,
            event_id: [random.next(), random.next()],
            trace_id: [random.next(), random.next()],
            device: random.below(100_000),
            tenant: random.below(2_000),
            region: random.pick(&REGIONS),
            service: random.pick(&SERVICES),
            host: [random.below(256), random.below(256), random.below(256)],
            method: random.pick(&METHODS),
            endpoint: random.pick(&ENDPOINTS),
            status_code: random.pick(&STATUS_CODES),
            latency_ms: -(1.0 - random.unit()).ln() * 50.0,
            error_count: if random.below(100) < 3 { 1 + random.below(4) } else { 0 },
            request_size: 120 + random.below(8_000),
            response_size: 200 + random.below(120_000),
            cpu_usage: random.unit() * 100.0,
            memory_mb: 200.0 + random.unit() * 15_000.0,
            queue_depth: random.below(500),
            throughput: random.unit() * 2_000.0,
        }
    }

    fn write(&self, field: Field, write_float: fn(f64, &mut Vec<u8>), out: &mut Vec<u8>) {
        match field {
            Field::Timestamp => write_signed(self.timestamp_ms, out),
            Field::EventId => write_hex_id(self.event_id, out),
            Field::TraceId => write_hex_id(self.trace_id, out),
            Field::PartitionKey => write_string(&self.partition_key(), out),
            Field::TenantId => {
                out.extend_from_slice(b"\"tenant-");
                out.extend_from_slice(&zero_padded::<4>(self.tenant));
                out.push(b'"');
            }
            Field::Region => write_string(self.region.as_bytes(), out),
            Field::Service => write_string(self.service.as_bytes(), out),
            Field::Host => {
                out.extend_from_slice(b"\"ip-10");
                for part in self.host {
                    out.push(b'-');
                    write_unsigned(part, out);
                }
                out.push(b'"');
            }
            Field::Method => write_string(self.method.as_bytes(), out),
            Field::Endpoint => write_string(self.endpoint.as_bytes(), out),
            Field::StatusCode => write_unsigned(self.status_code, out),
            Field::LatencyMs => write_float(self.latency_ms, out),
            Field::ErrorCount => write_unsigned(self.error_count, out),
            Field::RequestSize => write_unsigned(self.request_size, out),
            Field::ResponseSize => write_unsigned(self.response_size, out),
            Field::CpuUsage => write_float(self.cpu_usage, out),
            Field::MemoryMb => write_float(self.memory_mb, out),
            Field::QueueDepth => write_unsigned(self.queue_depth, out),
            Field::Throughput => write_float(self.throughput, out),
        }
    }

    fn partition_key(&self) -> [u8; 13] {
        let mut key = *b"device-000000";
        key[7..].copy_from_slice(&zero_padded::<6>(self.device));
        key
    }
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

fn write_hex_id(halves: [u64; 2], out: &mut Vec<u8>) {
    let mut text = [b'"'; 34];
    for (half, digits) in halves.into_iter().zip(text[1..33].chunks_exact_mut(16)) {
        for (byte, pair) in half.to_be_bytes().into_iter().zip(digits.chunks_exact_mut(2)) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
    }
    out.extend_from_slice(&text);
}

fn write_signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_unsigned(value.unsigned_abs(), out);
}

fn write_unsigned(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = last_digit(value);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Two decimals at most, trailing zeros left out: what a float rounded to hundredths prints as.
fn write_rounded_float(value: f64, out: &mut Vec<u8>) {
    let hundredths = whole_hundredths(value);
    write_unsigned(hundredths / 100, out);
    let [tens, ones] = zero_padded::<2>(hundredths % 100);
    match (tens, ones) {
        (b'0', b'0') => {}
        (tens, b'0') => out.extend_from_slice(&[b'.', tens]),
        (tens, ones) => out.extend_from_slice(&[b'.', tens, ones]),
    }
}

fn write_long_float(value: f64, out: &mut Vec<u8>) {
    write!(out, "{value}").expect("writing to memory does not fail");
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to about 1.6 million")]
fn whole_hundredths(value: f64) -> u64 {
    (value * 100.0).round() as u64
}

fn zero_padded<const N: usize>(mut value: u64) -> [u8; N] {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit = last_digit(value);
        value /= 10;
    }
    digits
}

const fn last_digit(value: u64) -> u8 {
    b'0' + (value % 10) as u8
}

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform below `bound`, which is far below 2³²; the bias is below one in 2³² / `bound`.
    const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }

    /// Uniform in `[0, 1)`, a multiple of 2⁻⁵³.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[expect(clippy::cast_possible_truncation, reason = "an index below the number of choices")]
    const fn pick<T: Copy, const N: usize>(&mut self, choices: &[T; N]) -> T {
        choices[self.below(N as u64) as usize]
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

const SERVICES: [&str; 12] = [
    "accounts",
    "basket",
    "billing",
    "delivery-slots",
    "fraud-screening",
    "image-resizer",
    "invoices",
    "loyalty",
    "price-calculator",
    "product-search",
    "session-store",
    "stock-levels",
];

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

const ENDPOINTS: [&str; 10] = [
    "/v1/baskets",
    "/v1/baskets/{id}",
    "/v1/invoices/{id}/lines",
    "/v1/slots/nearest",
    "/v2/products",
    "/v2/products/{sku}",
    "/v2/search/suggestions",
    "/v2/sessions/current",
    "/internal/ready",
    "/internal/metrics",
];

const STATUS_CODES: [u64; 8] = [200, 200, 200, 201, 204, 301, 404, 500];

const HEX: &[u8; 16] = b"0123456789abcdef";

const NATURAL_ORDER: [Field; 19] = [
    Field::Timestamp,
    Field::EventId,
    Field::PartitionKey,
    Field::TenantId,
    Field::Region,
    Field::Service,
    Field::Host,
    Field::Method,
    Field::Endpoint,
    Field::StatusCode,
    Field::LatencyMs,
    Field::ErrorCount,
    Field::RequestSize,
    Field::ResponseSize,
    Field::CpuUsage,
    Field::MemoryMb,
    Field::QueueDepth,
    Field::Throughput,
    Field::TraceId,
];

const SPREAD_ORDER: [Field; 19] = [
    Field::Timestamp,
    Field::Region,
    Field::EventId,
    Field::LatencyMs,
    Field::PartitionKey,
    Field::ErrorCount,
    Field::TenantId,
    Field::RequestSize,
    Field::Service,
    Field::ResponseSize,
    Field::Host,
    Field::CpuUsage,
    Field::Method,
    Field::MemoryMb,
    Field::Endpoint,
    Field::QueueDepth,
    Field::StatusCode,
    Field::Throughput,
    Field::TraceId,
];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Layout, REGIONS, RecordGenerator, write_rounded_float};

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
