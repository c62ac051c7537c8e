//! The answer computed as plainly as possible: every value kept, two passes, a map from window and region to lists.
//! It shares no code with the library.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// One record as far as the oracle looks at it.
pub struct Record {
    pub partition: usize,
    /// Event time.
    pub timestamp: i64,
    pub fields: Value,
}

/// What should come out.
pub struct Answer {
    /// Panes of windows that every partition has passed, by window start and region.
    pub closed: BTreeMap<(i64, String), Pane>,
    /// Panes of the other windows.
    pub open: BTreeMap<(i64, String), Pane>,
    /// How many windows are open.
    pub open_windows: u64,
    /// The records that were late.
    pub late: Vec<Record>,
}

/// All values of one pane.
#[derive(Default)]
pub struct Pane {
    latency: Vec<f64>,
    errors: Vec<i64>,
    bytes: Vec<i64>,
    cpu: Vec<f64>,
    memory: Vec<f64>,
    queue: Vec<i64>,
    throughput: Vec<f64>,
}

/// The answer for NDJSON text that is one partition; lines that are not records are left out.
pub fn of_lines(text: &str, size_ms: i64, grace_ms: i64) -> Answer {
    let records = text.lines().filter_map(|line| {
        let fields: Value = serde_json::from_str(line).ok()?;
        Some(Record { partition: 0, timestamp: fields["timestamp"].as_i64()?, fields })
    });
    of_records(records, size_ms, grace_ms)
}

/// The answer for records in any interleaving of their partitions: a record is late if and only if an earlier one of
/// its partition had reached its window's end plus grace.
pub fn of_records(records: impl IntoIterator<Item = Record>, size_ms: i64, grace_ms: i64) -> Answer {
    let mut latest: HashMap<usize, i64> = HashMap::new();
    let mut panes: BTreeMap<(i64, String), Pane> = BTreeMap::new();
    let mut late = Vec::new();
    for record in records {
        let start = window_start(record.timestamp, size_ms);
        let before = latest.get(&record.partition).copied();
        latest.insert(record.partition, before.map_or(record.timestamp, |t| t.max(record.timestamp)));
        if before.is_some_and(|t| t >= start + size_ms + grace_ms) {
            late.push(record);
            continue;
        }
        let region = record.fields["region"].as_str().expect("a region").to_owned();
        panes.entry((start, region)).or_default().take(&record.fields);
    }
    let slowest = latest.values().copied().min().unwrap_or(i64::MIN);
    let (closed, open): (BTreeMap<_, _>, BTreeMap<_, _>) =
        panes.into_iter().partition(|((start, _), _)| slowest >= start + size_ms + grace_ms);
    let mut starts: Vec<i64> = open.keys().map(|(start, _)| *start).collect();
    starts.dedup();
    Answer { closed, open, open_windows: starts.len() as u64, late }
}

/// The largest multiple of the size that is not after the timestamp.
fn window_start(timestamp: i64, size_ms: i64) -> i64 {
    timestamp - timestamp.rem_euclid(size_ms)
}

impl Pane {
    fn take(&mut self, fields: &Value) {
        let float = |name: &str| fields[name].as_f64().expect("a number");
        let whole = |name: &str| fields[name].as_i64().expect("a whole number");
        self.latency.push(float("latency_ms"));
        self.errors.push(whole("error_count"));
        self.bytes.push(whole("request_size") + whole("response_size"));
        self.cpu.push(float("cpu_usage"));
        self.memory.push(float("memory_mb"));
        self.queue.push(whole("queue_depth"));
        self.throughput.push(float("throughput"));
    }

    /// Fails unless `pane`, a published object, is this pane.
    pub fn assert_is(&self, pane: &Value) {
        let n = self.latency.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let greatest = |values: &[f64]| values.iter().copied().fold(f64::MIN, f64::max);
        let latency_avg = mean(&self.latency);
        let spread = self.latency.iter().map(|x| (x - latency_avg).powi(2)).sum::<f64>() / n;

        exactly(pane, "count", self.latency.len() as i64);
        exactly(pane, "sla_breaches", self.latency.iter().filter(|x| **x > 80.0).count() as i64);
        exactly(pane, "error_sum", self.errors.iter().sum());
        exactly(pane, "bytes_sum", self.bytes.iter().sum());
        exactly(pane, "queue_depth_max", *self.queue.iter().max().expect("a record"));
        same(pane, "latency_min", self.latency.iter().copied().fold(f64::MAX, f64::min));
        same(pane, "latency_max", greatest(&self.latency));
        same(pane, "memory_max", greatest(&self.memory));
        nearly(pane, "latency_avg", latency_avg);
        nearly(pane, "latency_stddev", spread.sqrt());
        nearly(pane, "cpu_avg", mean(&self.cpu));
        nearly(pane, "throughput_sum", self.throughput.iter().sum());
    }
}

/// Fails unless `published` holds exactly the panes of `expected`, each once, ordered by window and region.
pub fn assert_panes(expected: &BTreeMap<(i64, String), Pane>, size_ms: i64, published: &[Value]) {
    let keys: Vec<(i64, String)> = published
        .iter()
        .map(|pane| {
            let start = pane["window_start_ms"].as_i64().expect("a start");
            assert_eq!(pane["window_end_ms"].as_i64(), Some(start + size_ms));
            assert_eq!(pane.as_object().map(serde_json::Map::len), Some(15), "{pane}");
            (start, pane["region"].as_str().expect("a region").to_owned())
        })
        .collect();
    assert_eq!(keys, expected.keys().cloned().collect::<Vec<_>>());
    for (key, pane) in keys.iter().zip(published) {
        expected[key].assert_is(pane);
    }
}

fn exactly(pane: &Value, name: &str, expected: i64) {
    assert_eq!(pane[name].as_i64(), Some(expected), "{name} of {pane}");
}

fn same(pane: &Value, name: &str, expected: f64) {
    assert_eq!(pane[name].as_f64(), Some(expected), "{name} of {pane}");
}

fn nearly(pane: &Value, name: &str, expected: f64) {
    let value = pane[name].as_f64().unwrap_or(f64::NAN);
    let near = (value - expected).abs() <= 1e-9 * expected.abs();
    assert!(near, "{name}: {value}, expected {expected}, of {pane}");
}
