//! One sample record: its fields, their values, and how those are written.

use std::io::Write;

use super::REGIONS;
use super::random::SplitMix64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
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
    pub(super) const fn name(self) -> &'static str {
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
pub(super) struct Values {
    timestamp_ms: i64,
    event_id: [u64; 2],
    trace_id: [u64; 2],
    device: u64,
    tenant: u64,
    pub(super) region: &'static str,
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
    pub(super) fn draw(random: &mut SplitMix64, timestamp_ms: i64) -> Self {
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

    pub(super) fn write(&self, field: Field, write_float: fn(f64, &mut Vec<u8>), out: &mut Vec<u8>) {
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

    pub(super) fn partition_key(&self) -> [u8; 13] {
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
pub(super) fn write_rounded_float(value: f64, out: &mut Vec<u8>) {
    let hundredths = whole_hundredths(value);
    write_unsigned(hundredths / 100, out);
    let [tens, ones] = zero_padded::<2>(hundredths % 100);
    match (tens, ones) {
        (b'0', b'0') => {}
        (tens, b'0') => out.extend_from_slice(&[b'.', tens]),
        (tens, ones) => out.extend_from_slice(&[b'.', tens, ones]),
    }
}

pub(super) fn write_long_float(value: f64, out: &mut Vec<u8>) {
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

pub(super) const NATURAL_ORDER: [Field; 19] = [
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

pub(super) const SPREAD_ORDER: [Field; 19] = [
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
