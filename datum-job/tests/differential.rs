//! The machine against a model of the rules that is as plain as can be: it keeps every record of the open windows and
//! recomputes everything from them.
//!
//! Both get the same random calls, restarts from what was committed included, and must give the same cuts.
//! `DATUM_SIM_SEEDS` sets how many sequences run (2,000). A failure prints its seed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    unreachable_pub,
    reason = "test code"
)]

#[path = "simulation/ids.rs"]
mod ids;
#[path = "simulation/out.rs"]
mod out;
#[path = "simulation/rng.rs"]
mod rng;

use std::collections::{BTreeMap, BTreeSet};

use datum_job::machine::Observation;
use datum_job::restore::Start;
use datum_job::stored::{JobHash, Step, Stored, TopicId};
use datum_job::{Content, Cut, JobSettings, Machine, Reason, SideKind};
use datum_window::{RecordPosition, Tumbling, Watermark};
use ids::{Id, Ids};
use out::Out;
use rng::Rng;

const TOPIC: TopicId = TopicId([7; 16]);
const NONE: i64 = i64::MIN;

#[derive(Clone)]
struct Part {
    position: i64,
    watermark: i64,
    replay_until: i64,
    steps: Vec<(i64, i64)>,
    quiet_since: Option<i64>,
    answered: i64,
    last: Option<(i64, i64, i64, i64)>, // L, P, W and a mark for the steps, as last committed
    last_steps: Vec<(i64, i64)>,
}

/// A record of an open window: where it is, its window, its key, and its partition's watermark just before it.
#[derive(Clone)]
struct Held {
    id: Id,
    window: i64,
    key: u8,
    before: i64,
}

struct Model {
    size: i64,
    grace: i64,
    max_ahead: i64,
    idle: i64,
    fresh: i64,
    parts: BTreeMap<u32, Part>,
    held: Vec<Held>,
    e: i64,
    out: Vec<Out>,
    side: Vec<Out>,
}

type Committed = BTreeMap<u32, (i64, i64, i64, i64, Vec<(i64, i64)>)>; // L, P, W, E, steps

impl Model {
    fn start(settings: &JobSettings, stored: &Committed, fresh: bool) -> Self {
        let parts = stored
            .iter()
            .map(|(p, (l, until, w, _, steps))| {
                let last = (!fresh).then_some((*l, *until, *w, 0));
                let part = Part {
                    position: *l,
                    watermark: *w,
                    replay_until: *until,
                    steps: steps.clone(),
                    quiet_since: None,
                    answered: NONE,
                    last,
                    last_steps: steps.clone(),
                };
                (*p, part)
            })
            .collect();
        Self {
            size: settings.windows.size(),
            grace: settings.windows.grace(),
            max_ahead: settings.max_ahead,
            idle: settings.idle_timeout.unwrap(),
            fresh: settings.idle_fresh,
            parts,
            held: vec![],
            e: stored.values().map(|s| s.3).max().unwrap_or(NONE),
            out: vec![],
            side: vec![],
        }
    }

    fn low(&self, p: u32) -> (i64, i64) {
        let part = &self.parts[&p];
        self.held
            .iter()
            .filter(|h| h.id.0 == p)
            .min_by_key(|h| h.id.1)
            .map_or((part.position, part.watermark), |h| (h.id.1, h.before))
    }

    fn apply(&mut self, p: u32, offset: i64, ts: i64, content: Content<u8>, now: i64) {
        let low = self.low(p).0;
        let (size, grace, max_ahead) = (self.size, self.grace, self.max_ahead);
        let part = self.parts.get_mut(&p).unwrap();
        let replay = offset < part.replay_until;
        let horizon = part.steps.iter().rev().find(|s| s.0 <= offset).map(|s| s.1);
        let mut ahead = horizon.is_none_or(|h| ts > h);
        if ahead && !replay && ts <= now + max_ahead {
            while part.steps.len() > 1 && part.steps[1].0 <= low {
                part.steps.remove(0);
            }
            if part.steps.len() < 8 {
                part.steps.push((offset, now + max_ahead + max_ahead / 4));
                ahead = false;
            }
        }
        part.position = offset + 1;
        part.quiet_since = None;
        let before = part.watermark;
        let id = (p, offset);
        let mut route = |out: Out| {
            if !replay {
                self.side.push(out);
            }
        };
        if ahead {
            route(Out::Ahead(id));
            return;
        }
        part.watermark = before.max(ts);
        let window = ts.div_euclid(size) * size;
        let closes = window + size + grace;
        match content {
            Content::Undecodable => route(Out::Dead(id)),
            Content::Filtered | Content::Skipped => {}
            Content::Record(_) if closes <= self.e || before >= closes => route(Out::Late(id)),
            Content::Record(key) => self.held.push(Held { id, window, key, before }),
        }
    }

    fn observe(&mut self, p: u32, high_watermark: i64, now: i64) {
        let part = self.parts.get_mut(&p).unwrap();
        part.answered = now;
        part.quiet_since =
            if part.position >= high_watermark { part.quiet_since.or(Some(now)) } else { None };
    }

    fn close(&mut self, now: i64) {
        let out = |p: &&Part| {
            p.quiet_since.is_some_and(|s| p.answered - s >= self.idle) && now - p.answered <= self.fresh
        };
        let minimum = self.parts.values().filter(|p| !out(p)).map(|p| p.watermark).min();
        if let Some(minimum) = minimum {
            self.publish(|closes, _| closes <= minimum);
        }
    }

    fn publish(&mut self, ripe: impl Fn(i64, i64) -> bool) {
        loop {
            let Some(window) = self.held.iter().map(|h| h.window).min() else { return };
            let closes = window + self.size + self.grace;
            if !ripe(closes, window + self.size) {
                return;
            }
            let mut panes: BTreeMap<u8, BTreeSet<Id>> = BTreeMap::new();
            for h in self.held.iter().filter(|h| h.window == window) {
                panes.entry(h.key).or_default().insert(h.id);
            }
            self.held.retain(|h| h.window != window);
            for (key, ids) in panes {
                let window = datum_window::Window { start: window, end: window + self.size };
                self.out.push(Out::Pane { window, key, ids });
            }
            self.e = self.e.max(closes);
        }
    }

    fn cut(&mut self) -> (Vec<Out>, Committed) {
        let mut offsets = Committed::new();
        let all: Vec<u32> = self.parts.keys().copied().collect();
        for p in &all {
            let (l, w) = self.low(*p);
            let e = self.e;
            let part = self.parts.get_mut(p).unwrap();
            let until = part.position.max(part.replay_until);
            let skip = part.steps.iter().filter(|s| s.0 <= l).count().saturating_sub(1);
            let steps: Vec<_> = part.steps[skip..].iter().map(|s| (s.0.max(l), s.1)).collect();
            if part.last != Some((l, until, w, 0)) || part.last_steps != steps {
                part.last = Some((l, until, w, 0));
                part.last_steps.clone_from(&steps);
                offsets.insert(*p, (l, until, w, e, steps));
            }
        }
        if offsets.is_empty() {
            let p = all[0];
            let (l, until, w, _) = self.parts[&p].last.unwrap();
            offsets.insert(p, (l, until, w, self.e, self.parts[&p].last_steps.clone()));
        }
        let mut out = std::mem::take(&mut self.out);
        out.append(&mut self.side);
        (out, offsets)
    }
}

fn flat(cut: &Cut<Vec<(u8, BTreeSet<Id>)>, ()>) -> (Vec<Out>, Committed) {
    let mut out = vec![];
    for closed in &cut.closed {
        for (key, ids) in &closed.panes {
            out.push(Out::Pane { window: closed.window, key: *key, ids: ids.clone() });
        }
    }
    out.extend(cut.sides.iter().map(|s| {
        let id = (s.at.partition, s.at.offset);
        match s.kind {
            SideKind::Late(_) => Out::Late(id),
            SideKind::Undecodable => Out::Dead(id),
            SideKind::Ahead => Out::Ahead(id),
        }
    }));
    let offsets = cut.offsets.iter().map(|(p, s)| {
        // Through the text, as a broker would keep it.
        let s = Stored::from_text(s.low, &s.to_text()).unwrap().unwrap();
        let steps = s.steps.iter().map(|s| (s.offset, s.until)).collect();
        (*p, (s.low, s.position, s.watermark.millis(), s.published.millis(), steps))
    });
    (out, offsets.collect())
}

fn stored_of(committed: &Committed, settings: &JobSettings, count: u32) -> Vec<(u32, Stored)> {
    committed
        .iter()
        .map(|(p, (l, until, w, e, steps))| {
            let stored = Stored {
                low: *l,
                position: *until,
                watermark: Watermark::at(*w),
                published: Watermark::at(*e),
                steps: steps.iter().map(|s| Step { offset: s.0, until: s.1 }).collect(),
                partitions: count,
                mode: settings.mode,
                topic: TOPIC,
                hash: settings.hash,
            };
            (*p, stored)
        })
        .collect()
}

/// One sequence of calls on both; answers how many panes, late, dead and ahead records came out.
fn compare(seed: u64) -> [usize; 4] {
    let mut seen = [0; 4];
    let mut r = Rng::new(seed);
    let windows = Tumbling::of_millis(100).grace_millis(r.range(0, 60)).checked().unwrap();
    let settings = JobSettings {
        max_ahead: 400,
        idle_timeout: Some(r.range(3, 40)),
        idle_fresh: 12,
        ..JobSettings::new(windows, JobHash(1))
    };
    let count = 1 + r.below(4) as u32;
    let mut logs: Vec<Vec<(i64, Content<u8>)>> = vec![vec![]; count as usize];
    let mut committed: Committed = (0..count).map(|p| (p, (0, 0, NONE, NONE, vec![]))).collect();
    let start = Start::Fresh((0..count).map(|p| (p, 0)).collect());
    let mut now = 10_000;
    let mut machine = Machine::start(settings.clone(), TOPIC, count, &start, Ids::default(), now);
    let mut model = Model::start(&settings, &committed, true);
    for _ in 0..r.range(50, 600) {
        now += r.range(0, 6);
        let p = r.below(count as usize);
        match r.below(100) {
            0..40 => {
                let far = if r.chance(1, 15) { r.range(300, 900) } else { r.range(-400, 30) };
                let content = match r.below(10) {
                    0 => Content::Filtered,
                    1 => Content::Undecodable,
                    2 => Content::Skipped,
                    _ => Content::Record(r.below(3) as u8),
                };
                logs[p].push((now + far, content));
            }
            40..80 => {
                let (from, end) = (machine.position(p as u32).unwrap(), logs[p].len() as i64);
                let seen = Observation { log_start: 0, high_watermark: end, last_stable: end };
                machine.observe(p as u32, seen, now).unwrap();
                model.observe(p as u32, end, now);
                for offset in from..end.min(from + r.range(0, 5)) {
                    let (ts, content) = logs[p][offset as usize];
                    machine.apply(RecordPosition::new(p as u32, offset, ts), content, now, || ()).unwrap();
                    model.apply(p as u32, offset, ts, content, now);
                }
                machine.observe(p as u32, seen, now).unwrap();
                model.observe(p as u32, end, now);
                machine.close(now);
                model.close(now);
            }
            80..82 => {
                machine.flush(now);
                model.publish(|_, end| end <= now);
            }
            82..95 => {
                let got = flat(&machine.cut(Reason::Interval, now));
                let want = model.cut();
                assert_eq!(got, want, "seed {seed}");
                for out in &got.0 {
                    seen[match out {
                        Out::Pane { .. } => 0,
                        Out::Late(_) => 1,
                        Out::Dead(_) => 2,
                        Out::Ahead(_) => 3,
                    }] += 1;
                }
                committed.extend(want.1);
                assert_eq!(machine.published().millis(), model.e, "seed {seed}");
            }
            _ => {
                let stored = stored_of(&committed, &settings, count);
                let start = Start::Resumed { stored, new: vec![] };
                machine = Machine::start(settings.clone(), TOPIC, count, &start, Ids::default(), now);
                model = Model::start(&settings, &committed, false);
            }
        }
        assert_eq!(machine.open_windows() > 0, !model.held.is_empty(), "seed {seed}");
    }
    seen
}

#[test]
fn the_machine_does_what_the_model_does() {
    let seeds = std::env::var("DATUM_SIM_SEEDS").map_or(2_000, |n| n.parse().unwrap());
    let mut total = [0; 4];
    for seed in 0..seeds {
        for (sum, n) in total.iter_mut().zip(compare(seed)) {
            *sum += n;
        }
    }
    println!("seeds 0..{seeds}: panes, late, dead, ahead {total:?}");
    assert!(total.iter().all(|n| *n as u64 >= seeds), "too little came out to compare: {total:?}");
}
