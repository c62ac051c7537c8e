//! Keyed windows against a naive oracle, over random partitions, disorder and interleavings.
//!
//! proptest prints and stores what fails; `PROPTEST_CASES` sets how many cases run.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "helpers of tests")]

use std::collections::BTreeMap;

use datum_window::aggregate::Slots;
use datum_window::{
    Aggregates, Key, KeyedWindows, Pane, Placement, RecordPosition, Row, Tumbling, TumblingWindows, Value,
};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

#[derive(Clone, Debug)]
struct Rec {
    partition: u32,
    timestamp: i64,
    key: u8,
    x: f64,
    n: i64,
}

fn record(partitions: u32) -> impl Strategy<Value = Rec> {
    let x = prop_oneof![-1e3..1e3_f64, 1e9..1.000_001e9_f64, Just(0.0)];
    (0..partitions, -3_000..3_000_i64, 0..4_u8, x, any::<i64>())
        .prop_map(|(partition, timestamp, key, x, n)| Rec { partition, timestamp, key, x, n })
}

fn aggregates() -> Aggregates<Rec, impl Slots<Rec>> {
    Aggregates::<Rec>::new()
        .count("count")
        .sum("n_sum", |r| r.n)
        .sum("x_sum", |r| r.x)
        .min("x_min", |r| r.x)
        .max("n_max", |r| r.n)
        .mean("x_avg", |r| r.x)
        .stddev_pop("x_dev", |r| r.x)
        .count_if("large", |r| r.x > 80.0)
}

/// Which records belong to their windows, by the definition of the answer.
fn belonging(windows: TumblingWindows, records: &[Rec]) -> BTreeMap<(i64, u8), Vec<Rec>> {
    let mut before: BTreeMap<u32, i64> = BTreeMap::new();
    let mut panes: BTreeMap<(i64, u8), Vec<Rec>> = BTreeMap::new();
    for r in records {
        let seen = before.entry(r.partition).or_insert(i64::MIN);
        let start =
            (r.timestamp - windows.offset()).div_euclid(windows.size()) * windows.size() + windows.offset();
        if *seen < start + windows.size() + windows.grace() {
            panes.entry((start, r.key)).or_default().push(r.clone());
        }
        *seen = (*seen).max(r.timestamp);
    }
    panes
}

fn close_to(got: &Row, name: &str, want: f64, scale: f64) -> bool {
    let got = got.get(name).and_then(Value::as_f64).unwrap();
    (got - want).abs() <= 1e-9 * want.abs().max(scale)
}

/// Compares one pane with what its records come to when computed the long way.
#[allow(clippy::cast_precision_loss)]
fn equals_naive(row: &Row, records: &[Rec]) -> Result<(), String> {
    let count = records.len();
    let ints = [
        ("count", count as i128),
        ("n_sum", records.iter().map(|r| i128::from(r.n)).sum()),
        ("n_max", records.iter().map(|r| i128::from(r.n)).max().unwrap()),
        ("large", records.iter().filter(|r| r.x > 80.0).count() as i128),
    ];
    for (name, want) in ints {
        if row.get(name).and_then(Value::as_int) != Some(want) {
            return Err(format!("{name}: {:?} instead of {want}", row.get(name)));
        }
    }
    let largest = records.iter().map(|r| r.x.abs()).fold(0.0, f64::max);
    let sum: f64 = records.iter().map(|r| r.x).sum();
    let mean = sum / count as f64;
    let variance = records.iter().map(|r| (r.x - mean).powi(2)).sum::<f64>() / count as f64;
    let min = records.iter().map(|r| r.x).fold(f64::INFINITY, f64::min);
    // The oracle's own error in a deviation is of the order of the root of the rounding of its squares.
    let floats = [
        ("x_sum", sum, largest),
        ("x_avg", mean, largest),
        ("x_min", min, 0.0),
        ("x_dev", variance.sqrt(), largest),
    ];
    for (name, want, scale) in floats {
        if !close_to(row, name, want, scale) {
            return Err(format!("{name}: {:?} instead of {want}", row.get(name)));
        }
    }
    Ok(())
}

fn run(
    windows: TumblingWindows,
    partitions: u32,
    records: &[Rec],
    every: usize,
) -> (Vec<Pane<u8, Row>>, u64) {
    let mut w = KeyedWindows::<u8, _, _>::new(windows, aggregates());
    (0..partitions).for_each(|p| w.expect(p));
    let mut panes = Vec::new();
    for (i, r) in records.iter().enumerate() {
        w.add(RecordPosition::new(r.partition, i as i64, r.timestamp), &r.key, r);
        if i % every == 0 {
            panes.append(&mut w.close());
        }
    }
    panes.append(&mut w.finish());
    (panes, w.late())
}

proptest! {
    #[test]
    fn panes_equal_the_naive_oracle(
        records in proptest::collection::vec(record(3), 0..300),
        size in 1..2_000_i64, offset in -5_000..5_000_i64, grace in 0..500_i64, every in 1..20_usize,
    ) {
        let windows = Tumbling::of_millis(size).offset_millis(offset).grace_millis(grace).checked().unwrap();
        let want = belonging(windows, &records);
        let (panes, late) = run(windows, 3, &records, every);
        prop_assert_eq!(late as usize, records.len() - want.values().map(Vec::len).sum::<usize>());
        let order: Vec<_> = panes.iter().map(|p| (p.window.start, p.key)).collect();
        prop_assert_eq!(&order, &want.keys().copied().collect::<Vec<_>>());
        for pane in &panes {
            let r = equals_naive(&pane.value, &want[&(pane.window.start, pane.key)]);
            prop_assert!(r.is_ok(), "{:?} {:?}", pane.window, r);
        }
    }

    /// Partial panes merged in partition order: the same bits however the partitions are interleaved.
    #[test]
    fn interleaving_changes_no_bit(
        records in proptest::collection::vec(record(3), 0..200), picks in proptest::collection::vec(0..3_u32, 600),
    ) {
        let windows = Tumbling::of_millis(700).grace_millis(100).checked().unwrap();
        let mut rest: Vec<std::collections::VecDeque<Rec>> = (0..3)
            .map(|p| records.iter().filter(|r| r.partition == p).cloned().collect())
            .collect();
        let mut mixed: Vec<Rec> =
            picks.iter().filter_map(|p| rest[*p as usize].pop_front()).collect();
        rest.into_iter().for_each(|r| mixed.extend(r));
        let a = run(windows, 3, &records, 1);
        let b = run(windows, 3, &mixed, 7);
        prop_assert_eq!(format!("{a:?}"), format!("{b:?}"));
    }
}

#[test]
fn keys_are_looked_up_borrowed_and_published_in_order() {
    let windows = Tumbling::of_millis(10).checked().unwrap();
    let counts = Aggregates::<u8>::new().count("n");
    let mut w = KeyedWindows::<std::sync::Arc<str>, _, _>::new(windows, counts);
    for (i, key) in ["eu-2", "eu-1", "eu-2"].iter().enumerate() {
        assert_eq!(w.add(RecordPosition::new(0, i as i64, 1), *key, &0), Placement::Accepted);
    }
    let panes = w.finish();
    let got: Vec<_> =
        panes.iter().map(|p| (p.key.to_value().to_string(), p.value.values()[0].clone())).collect();
    assert_eq!(got, [("eu-1".to_owned(), Value::Int(1)), ("eu-2".to_owned(), Value::Int(2))]);
    let bytes = KeyedWindows::<Vec<u8>, u8, _>::new(windows, Aggregates::<u8>::new().count("n"));
    assert!(bytes.open().is_empty());
}

/// The time of the rollup's twelve aggregates per record; run with
/// `cargo test --release -p datum-window --test oracle -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn twelve_aggregates_per_record() {
    struct Metric {
        region: usize,
        latency: f64,
        errors: u32,
        request: u64,
        response: u64,
        cpu: f64,
        memory: f64,
        queue: u32,
        throughput: f64,
    }
    let regions: Vec<String> = (0..16).map(|i| format!("eu-region-{i:02}")).collect();
    let mut state = 7_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 40
    };
    #[allow(clippy::cast_precision_loss)]
    let metrics: Vec<Metric> = (0..65_536)
        .map(|_| Metric {
            region: (next() % 16) as usize,
            latency: (next() % 20_000) as f64 / 100.0,
            errors: u32::from(next() % 33 == 0),
            request: next() % 8_000,
            response: next() % 120_000,
            cpu: (next() % 10_000) as f64 / 100.0,
            memory: (next() % 15_000) as f64,
            queue: (next() % 500) as u32,
            throughput: (next() % 2_000) as f64,
        })
        .collect();
    let rollup = Aggregates::<Metric>::new()
        .count("count")
        .mean("latency_avg", |m| m.latency)
        .min("latency_min", |m| m.latency)
        .max("latency_max", |m| m.latency)
        .stddev_pop("latency_stddev", |m| m.latency)
        .count_if("sla_breaches", |m| m.latency > 80.0)
        .sum("error_sum", |m| m.errors)
        .sum("bytes_sum", |m| m.request + m.response)
        .mean("cpu_avg", |m| m.cpu)
        .max("memory_max", |m| m.memory)
        .max("queue_depth_max", |m| m.queue)
        .sum("throughput_sum", |m| m.throughput);
    let windows = Tumbling::of_millis(30_000).grace_millis(1_000).checked().unwrap();
    let mut w = KeyedWindows::<std::sync::Arc<str>, _, _>::new(windows, rollup);
    let (rounds, mut best, mut published) = (40, f64::INFINITY, 0);
    for round in 0..rounds {
        let started = std::time::Instant::now();
        for (i, m) in metrics.iter().enumerate() {
            let n = round * 65_536 + i as i64;
            w.add(RecordPosition::new(0, n, n / 20), regions[m.region].as_str(), m);
        }
        #[allow(clippy::cast_precision_loss)]
        let each = started.elapsed().as_nanos() as f64 / metrics.len() as f64;
        best = best.min(each);
        published += w.close().len();
    }
    println!("{best:.1} ns per record, {published} panes");
    assert!(published > 0);
}
