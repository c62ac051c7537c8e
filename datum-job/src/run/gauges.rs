//! A job's progress as metrics, labelled with `group` and `topic`.
//!
//! | name | what it says |
//! | --- | --- |
//! | `datum_job_lag_records` | records not processed; alert on this one |
//! | `datum_job_replay_records` | records that a restart would read again: it follows the length of the windows |
//! | `datum_job_open_windows` | windows open now |
//! | `datum_job_windows_total` | windows published |
//! | `datum_job_records_total` | records by what became of them (`fate`): `accepted`, `filtered`, `late`, `undecodable`, `ahead` |
//! | `datum_job_recoveries_total` | how often this member lost what it held and recovered from what is committed |
//!
//! Gauges are those of the member that owns; a member that stands by shows zero. A committed offset trails by the open windows, so the lag that
//! other tools compute from it never falls to zero.

use metrics::{Counter, Gauge, counter, gauge};

use super::Progress;

/// The metrics of one member, registered once.
pub(super) struct Gauges {
    lag: Gauge,
    replay: Gauge,
    open_windows: Gauge,
    windows: Counter,
    fates: [Counter; 5],
    recoveries: Counter,
}

impl Gauges {
    pub(super) fn new(group: &str, topic: &str) -> Self {
        let labels = [("group", group.to_owned()), ("topic", topic.to_owned())];
        let fate = |fate: &'static str| {
            let [group, topic] = labels.clone();
            counter!("datum_job_records_total", &[group, topic, ("fate", fate.to_owned())])
        };
        Self {
            lag: gauge!("datum_job_lag_records", &labels),
            replay: gauge!("datum_job_replay_records", &labels),
            open_windows: gauge!("datum_job_open_windows", &labels),
            windows: counter!("datum_job_windows_total", &labels),
            fates: ["accepted", "filtered", "late", "undecodable", "ahead"].map(fate),
            recoveries: counter!("datum_job_recoveries_total", &labels),
        }
    }

    pub(super) fn recovered(&self) {
        self.recoveries.increment(1);
    }

    #[allow(clippy::cast_precision_loss, reason = "a gauge is a float")]
    pub(super) fn show(&self, progress: &Progress) {
        self.lag.set(progress.lag.behind as f64);
        self.replay.set(progress.lag.replay as f64);
        self.open_windows.set(progress.open_windows as f64);
        self.windows.absolute(progress.windows);
        let c = progress.counters;
        for (counter, count) in
            self.fates.iter().zip([c.accepted, c.filtered, c.late, c.undecodable, c.ahead])
        {
            counter.absolute(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use metrics::{Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

    use super::*;
    use crate::machine::{Counters, Lag};

    /// Keeps the last value of each metric under its name and its fate.
    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

    impl Kept {
        fn slot(&self, key: &Key) -> Arc<AtomicU64> {
            let labels: BTreeMap<_, _> = key.labels().map(|label| (label.key(), label.value())).collect();
            assert_eq!((labels["group"], labels["topic"]), ("g", "t"));
            let name = [key.name(), labels.get("fate").copied().unwrap_or_default()].concat();
            self.0.lock().unwrap().entry(name).or_default().clone()
        }

        fn raw(&self, name: &str) -> u64 {
            self.0.lock().unwrap()[name].load(Ordering::Relaxed)
        }
    }

    impl Recorder for Kept {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.slot(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.slot(key))
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn lag_replay_and_counts_are_shown_apart() {
        let kept = Kept::default();
        metrics::with_local_recorder(&kept, || {
            let gauges = Gauges::new("g", "t");
            gauges.recovered();
            let counters =
                Counters { accepted: 5, filtered: 4, late: 3, undecodable: 2, ahead: 1, replayed: 9 };
            let lag = Lag { behind: 12, replay: 34 };
            gauges.show(&Progress { counters, lag, open_windows: 2, windows: 7 });
        });
        let gauge = |name: &str| f64::from_bits(kept.raw(name));
        assert_eq!(
            ["datum_job_lag_records", "datum_job_replay_records", "datum_job_open_windows"].map(gauge),
            [12.0, 34.0, 2.0]
        );
        let fates = ["accepted", "filtered", "late", "undecodable", "ahead"];
        assert_eq!(fates.map(|fate| kept.raw(&format!("datum_job_records_total{fate}"))), [5, 4, 3, 2, 1]);
        assert_eq!((kept.raw("datum_job_windows_total"), kept.raw("datum_job_recoveries_total")), (7, 1));
    }
}
