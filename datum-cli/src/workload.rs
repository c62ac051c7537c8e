//! The records that `gen` writes and the embedded rollup reads: when each happened, and what it is keyed by.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use datum::codec::sample::{Layout, RecordGenerator, RecordKeys};

/// The default start is aligned to this, so that the first window is a whole one.
const ALIGNMENT_MS: i64 = 30_000;

/// Which records to write. The same description gives the same records.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// How many.
    pub(crate) records: u64,
    /// Event time of the first, in milliseconds since 1970, before disorder.
    pub(crate) start_ms: i64,
    /// How many records fall into one second of event time.
    pub(crate) per_second: u64,
    /// Each record happened up to this much before its place in the order; zero is in order.
    pub(crate) disorder: Duration,
    /// Form of the records.
    pub(crate) layout: Layout,
    /// Seed of the values and of the disorder.
    pub(crate) seed: u64,
}

impl Workload {
    /// The start that makes the last record of `records` happen now or shortly before, at the start of a window.
    pub(crate) fn start_ending_now(records: u64, per_second: u64) -> i64 {
        let now = Self::now();
        now.saturating_sub(at(records, per_second)).div_euclid(ALIGNMENT_MS) * ALIGNMENT_MS
    }

    /// The wall clock, in milliseconds since 1970: the start of records that happen as they are written.
    pub(crate) fn now() -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
    }

    /// Starts over from the first record.
    pub(crate) fn records(&self) -> Records {
        Records {
            generator: RecordGenerator::new(self.seed, self.layout),
            disorder: Disorder::new(self.seed, self.disorder),
            start_ms: self.start_ms,
            per_second: self.per_second,
            next: 0,
            count: self.records,
        }
    }
}

/// Writes the records of a [`Workload`] one by one.
#[derive(Debug)]
pub(crate) struct Records {
    generator: RecordGenerator,
    disorder: Disorder,
    start_ms: i64,
    per_second: u64,
    next: u64,
    count: u64,
}

impl Records {
    /// Appends the next record's JSON to `out`; `None` when all are written.
    pub(crate) fn write_next(&mut self, out: &mut Vec<u8>) -> Option<Written> {
        if self.next == self.count {
            return None;
        }
        let in_order = self.start_ms.saturating_add(at(self.next, self.per_second));
        let timestamp_ms = in_order.saturating_sub(self.disorder.draw());
        self.next += 1;
        Some(Written { timestamp_ms, keys: self.generator.write_record(out, timestamp_ms) })
    }
}

/// What is known of a record just written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Its event time, also in the field `timestamp`.
    pub(crate) timestamp_ms: i64,
    /// What it may be keyed by.
    pub(crate) keys: RecordKeys,
}

/// Event time of record `index` after the first one, in milliseconds.
fn at(index: u64, per_second: u64) -> i64 {
    i64::try_from(u128::from(index) * 1_000 / u128::from(per_second.max(1))).unwrap_or(i64::MAX)
}

/// Uniform delays from a sequence of their own, so that disorder changes the timestamps and nothing else.
#[derive(Debug)]
struct Disorder {
    most_ms: u64,
    state: u64,
}

impl Disorder {
    fn new(seed: u64, most: Duration) -> Self {
        let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX - 1);
        Self { most_ms, state: seed ^ 0xD1B5_4A32_D192_ED03 }
    }

    /// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), reduced by multiplication.
    fn draw(&mut self) -> i64 {
        if self.most_ms == 0 {
            return 0;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let below = (u128::from(z) * u128::from(self.most_ms.saturating_add(1))) >> 64;
        i64::try_from(below).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT_MS, Workload};
    use datum::codec::sample::Layout;
    use std::time::Duration;

    fn workload(disorder_ms: u64) -> Workload {
        Workload {
            records: 1_000,
            start_ms: 90_000,
            per_second: 100,
            disorder: Duration::from_millis(disorder_ms),
            layout: Layout::Natural,
            seed: 5,
        }
    }

    fn times(workload: &Workload) -> Vec<i64> {
        let mut records = workload.records();
        let mut line = Vec::new();
        std::iter::from_fn(|| records.write_next(&mut line)).map(|written| written.timestamp_ms).collect()
    }

    #[test]
    fn event_time_goes_at_the_rate_given() {
        let times = times(&workload(0));
        assert_eq!(times.len(), 1_000);
        assert_eq!((times[0], times[1], times[999]), (90_000, 90_010, 99_990));
    }

    #[test]
    fn disorder_only_ever_sets_back_and_stays_in_its_bound() {
        let (ordered, disordered) = (times(&workload(0)), times(&workload(250)));
        let delays: Vec<i64> = ordered.iter().zip(&disordered).map(|(a, b)| a - b).collect();
        assert!(delays.iter().all(|delay| (0..=250).contains(delay)));
        assert!(delays.iter().any(|&delay| delay < 5) && delays.iter().any(|&delay| delay > 245));
        assert_eq!(disordered, times(&workload(250)), "the seed decides");
    }

    #[test]
    fn the_default_start_is_a_window_s_and_lets_the_last_record_be_at_most_now() {
        let start = Workload::start_ending_now(2_000_000, 20_000);
        assert_eq!(start % ALIGNMENT_MS, 0);
        let now = i64::try_from(
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
        )
        .unwrap();
        let end = start + 100_000;
        assert!((now - ALIGNMENT_MS - 1_000..=now).contains(&end), "{end} {now}");
    }
}
