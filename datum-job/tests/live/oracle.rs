//! Random input, and what a naive reading of it says has to be published.

use std::collections::{BTreeMap, BTreeSet};

use datum_kafka::wire::murmur2;

use crate::support::Stage;

/// One record of the input.
#[derive(Clone, Debug)]
pub struct Fed {
    pub partition: i32,
    pub timestamp: i64,
    pub value: String,
}

/// What stands in the output: `(key, timestamp, value)`.
pub type Shown = (String, i64, String);

/// Width of the windows of [`job`](crate::support::job), in milliseconds.
const WINDOW: i64 = 10_000;

/// A small generator, so that a printed seed repeats a run.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

/// Where a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// In any partition.
    Anywhere,
    /// Where murmur2 puts it.
    AtHome,
}

/// Input in the making: time goes on over several calls.
#[derive(Debug)]
pub struct Input {
    dice: Dice,
    keys: Keys,
    partitions: i32,
    now: i64,
    all: Vec<Fed>,
}

impl Input {
    pub fn new(seed: u64, partitions: i32, keys: Keys) -> Self {
        Self { dice: Dice::new(seed), keys, partitions, now: 5_000, all: Vec::new() }
    }

    /// `count` further records: out of order, some late, some that cannot be read.
    pub fn more(&mut self, count: usize) -> Vec<Fed> {
        let mut made = Vec::with_capacity(count);
        for _ in 0..count {
            self.now += i64::try_from(self.dice.below(400)).unwrap();
            let back = if self.dice.one_in(8) { self.dice.below(18_000) } else { self.dice.below(900) };
            let key = format!("k{}", self.dice.below(6));
            let partition = match self.keys {
                Keys::Anywhere => {
                    i32::try_from(self.dice.below(u64::try_from(self.partitions).unwrap())).unwrap()
                }
                Keys::AtHome => murmur2::partition_of(key.as_bytes(), self.partitions).unwrap(),
            };
            let bad = self.dice.one_in(40);
            let value = if bad { "bad".to_owned() } else { format!("{key},{}", self.dice.below(100)) };
            let timestamp = (self.now - i64::try_from(back).unwrap()).max(0);
            made.push(Fed { partition, timestamp, value });
        }
        self.all.extend(made.iter().cloned());
        made
    }

    /// One record in every partition that closes all windows so far; it cannot be read, so it opens none.
    pub fn last(&mut self) -> Vec<Fed> {
        self.now += 3 * WINDOW;
        let now = self.now;
        let close = |partition| Fed { partition, timestamp: now, value: "bad".to_owned() };
        let made: Vec<Fed> = (0..self.partitions).map(close).collect();
        self.all.extend(made.iter().cloned());
        made
    }

    pub fn grow(&mut self, partitions: i32) {
        self.partitions = partitions;
    }

    /// Records made elsewhere.
    pub fn add(&mut self, records: &[Fed]) {
        self.all.extend(records.iter().cloned());
    }

    /// What has to be published once every window that is closed is published; records beyond `horizon` go aside.
    pub fn published(&self, horizon: i64) -> Vec<Shown> {
        let mut watermarks: BTreeMap<i32, i64> = (0..self.partitions).map(|p| (p, i64::MIN)).collect();
        let mut panes: BTreeMap<(i64, String), (u64, i64, BTreeSet<i32>)> = BTreeMap::new();
        let mut shown = Vec::new();
        for Fed { partition, timestamp, value } in &self.all {
            let timestamp = *timestamp;
            if timestamp > horizon {
                shown.push(("ahead".to_owned(), timestamp, value.clone()));
                continue;
            }
            let watermark = watermarks.get_mut(partition).unwrap();
            let before = *watermark;
            *watermark = before.max(timestamp);
            let Some((key, number)) = value.split_once(',') else {
                shown.push(("bad".to_owned(), timestamp, value.clone()));
                continue;
            };
            let end = timestamp.div_euclid(WINDOW) * WINDOW + WINDOW;
            if before >= end {
                shown.push(("late".to_owned(), timestamp, value.clone()));
                continue;
            }
            let pane = panes.entry((end, key.to_owned())).or_default();
            pane.0 += 1;
            pane.1 += number.parse::<i64>().unwrap();
            pane.2.insert(*partition);
        }
        let minimum = watermarks.values().copied().min().unwrap();
        for ((end, key), (count, sum, from)) in panes {
            let closed = match self.keys {
                Keys::Anywhere => end <= minimum,
                Keys::AtHome => from.iter().all(|p| end <= watermarks[p]),
            };
            if closed {
                shown.push((key, end - 1, format!("{count},{sum}")));
            }
        }
        shown.sort();
        shown
    }
}

impl Stage {
    pub async fn feed_all(&self, records: &[Fed]) {
        let records: Vec<_> = records.iter().map(|r| (r.partition, r.timestamp, &*r.value)).collect();
        self.feed(&records).await;
    }

    /// Fails with the difference unless exactly `want` is visible.
    pub async fn must_show(&self, want: &[Shown], hint: &str) {
        let got = self.read("out").await;
        if got == want {
            return;
        }
        let mut counts: BTreeMap<&Shown, i64> = BTreeMap::new();
        for one in want {
            *counts.entry(one).or_default() -= 1;
        }
        for one in &got {
            *counts.entry(one).or_default() += 1;
        }
        counts.retain(|_, n| *n != 0);
        panic!(
            "{hint}: {} wanted, {} shown; too many (+) or missing (-): {counts:#?}",
            want.len(),
            got.len()
        );
    }

    /// Waits until as much as wanted is visible, then wants it to be exactly that.
    pub async fn comes_to_show(&self, want: &[Shown], hint: &str) {
        let until = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut look = tokio::time::interval(std::time::Duration::from_millis(200));
        while tokio::time::Instant::now() < until {
            look.tick().await;
            if self.read("out").await.len() >= want.len() {
                break;
            }
        }
        self.must_show(want, hint).await;
    }
}
