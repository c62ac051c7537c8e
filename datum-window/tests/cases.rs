//! Situations that once gave wrong panes somewhere in public, with the outcome that is right.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use datum_window::aggregate::Slots;
use datum_window::{Aggregates, KeyedWindows, Pane, Placement, RecordPosition, Row, Tumbling, Value, Window};

type Counts<S> = KeyedWindows<String, i64, Aggregates<i64, S>>;

fn counts(size: i64, grace: i64) -> Counts<impl Slots<i64>> {
    let windows = Tumbling::of_millis(size).grace_millis(grace).checked().unwrap();
    KeyedWindows::new(windows, Aggregates::<i64>::new().count("n").sum("sum", |x| *x))
}

fn add<S: Slots<i64>>(w: &mut Counts<S>, partition: u32, timestamp: i64, key: &str) -> Placement {
    w.add(RecordPosition::new(partition, 0, timestamp), key, &1)
}

fn shown(panes: &[Pane<String, Row>]) -> Vec<(i64, &str, i128)> {
    panes
        .iter()
        .map(|p| (p.window.start, p.key.as_str(), p.value.get("n").and_then(Value::as_int).unwrap()))
        .collect()
}

/// A slower partition's rows are in time as long as its own watermark says so, whatever a faster one has reached.
#[test]
fn a_fast_partition_makes_no_row_of_a_slow_one_late() {
    let mut w = counts(10_000, 0);
    for (p, ts) in [(0, 15_000), (1, 12_000), (0, 25_000), (0, 50_000)] {
        assert_eq!(add(&mut w, p, ts, "k"), Placement::Accepted);
    }
    assert_eq!(shown(&w.close()), [], "the slow partition holds [10000, 20000)");
    assert_eq!(add(&mut w, 1, 14_000, "k"), Placement::Accepted);
    assert_eq!(add(&mut w, 1, 22_000, "k"), Placement::Accepted);
    assert_eq!(shown(&w.close()), [(10_000, "k", 3)]);
    assert_eq!(add(&mut w, 1, 46_000, "k"), Placement::Accepted);
    assert_eq!(shown(&w.close()), [(20_000, "k", 2)]);
    assert_eq!(shown(&w.finish()), [(40_000, "k", 1), (50_000, "k", 1)]);
    assert_eq!(w.late(), 0);
}

/// Panes do not depend on when `close` is asked for.
#[test]
fn pacing_does_not_split_a_window() {
    for every in [1, 7, 500, 10_000] {
        let mut w = counts(60_000, 60_000);
        let mut out = Vec::new();
        for i in 0..500 {
            add(&mut w, 0, i * 100, "k");
            if i % every == 0 {
                out.append(&mut w.close());
            }
        }
        add(&mut w, 0, 240_000, "k");
        out.append(&mut w.close());
        assert_eq!(shown(&out), [(0, "k", 500)], "closing every {every}");
    }
}

/// A second window over the panes of a first: a pane's timestamp is its window's last millisecond, so it is in time.
#[test]
fn chained_windows_have_no_late_panes() {
    let (mut first, mut second) = (counts(5_000, 0), counts(10_000, 0));
    let mut out = Vec::new();
    let feed = |second: &mut Counts<_>, panes: Vec<Pane<String, Row>>| {
        for pane in panes {
            let n = pane.value.get("n").and_then(Value::as_int).and_then(|n| i64::try_from(n).ok()).unwrap();
            let place = second.add(RecordPosition::new(0, 0, pane.timestamp()), pane.key.as_str(), &n);
            assert_eq!(place, Placement::Accepted);
        }
        second.close()
    };
    for ts in [1_000, 4_000, 6_000, 11_000] {
        add(&mut first, 0, ts, "k");
        let panes = first.close();
        out.append(&mut feed(&mut second, panes));
    }
    let rest = first.finish();
    out.append(&mut feed(&mut second, rest));
    out.append(&mut second.finish());
    let sums: Vec<_> = out.iter().map(|p| (p.window.start, p.value.get("sum").cloned())).collect();
    assert_eq!(sums, [(0, Some(Value::Int(3))), (10_000, Some(Value::Int(1)))]);
    assert_eq!((first.late(), second.late()), (0, 0));
}

/// A record far behind opens nothing, even where its window was never seen.
#[test]
fn a_very_late_record_creates_no_window() {
    let mut w = counts(10_000, 0);
    add(&mut w, 0, 100_000, "k");
    assert_eq!(add(&mut w, 0, 1_000, "k"), Placement::Late(Window { start: 0, end: 10_000 }));
    assert_eq!(w.open(), [Window { start: 100_000, end: 110_000 }]);
    assert_eq!((w.late(), w.close().len()), (1, 0));
}

/// A partition that appears after a window was published finds it closed: one pane per window, ever.
#[test]
fn a_published_window_never_opens_again() {
    let mut w = counts(10_000, 0);
    add(&mut w, 0, 5_000, "k");
    add(&mut w, 0, 10_000, "k");
    assert_eq!(shown(&w.close()), [(0, "k", 1)]);
    assert_eq!(add(&mut w, 7, 5_000, "k"), Placement::Late(Window { start: 0, end: 10_000 }));
    assert_eq!(add(&mut w, 7, 12_000, "k"), Placement::Accepted);
    assert_eq!(shown(&w.finish()), [(10_000, "k", 2)]);
}

/// The record that closes a window belongs to a later one; a record exactly at the close time is late.
#[test]
fn closing_is_at_end_plus_grace_exactly() {
    let mut w = counts(10_000, 2_000);
    add(&mut w, 0, 0, "k");
    add(&mut w, 0, 11_999, "k");
    assert_eq!(w.close(), []);
    assert_eq!(add(&mut w, 0, 9_999, "k"), Placement::Accepted);
    add(&mut w, 0, 12_000, "k");
    assert_eq!(add(&mut w, 0, 9_999, "k"), Placement::Late(Window { start: 0, end: 10_000 }));
    assert_eq!(shown(&w.close()), [(0, "k", 2)]);
}
