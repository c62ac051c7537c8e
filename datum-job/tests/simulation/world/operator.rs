//! Operators and strangers: offsets changed by hand, foreign members, offsets that expire.

use std::collections::BTreeMap;

use datum_job::restore::Committed;

use super::{Era, OWNERSHIP_BROKEN, World};

impl World {
    /// Everything is down, or paused past its session; then offsets are changed by hand.
    pub(super) fn operator(&mut self) {
        let zombies = self.r.chance(1, 2);
        let wait = self.b.session.max(self.b.txn_timeout) + 1;
        for i in 0..self.instances.len() {
            if !self.instances[i].up {
                continue;
            }
            if zombies && self.instances[i].member.is_some() {
                self.instances[i].paused = self.b.now + wait + 101 + self.r.range(0, 50);
            } else {
                self.crash(i, "crash before an operator");
            }
        }
        self.wait_for_expiry(wait);
        if !self.all_down() || self.b.offsets.is_empty() {
            return;
        }
        if self.r.chance(1, 2) {
            let offsets: BTreeMap<u32, i64> = (0..self.b.logs.len())
                .map(|p| {
                    let log = &self.b.logs[p];
                    let span = (log.high_watermark() - log.start + 1) as usize;
                    (p as u32, log.start + self.r.below(span) as i64)
                })
                .collect();
            self.b.offsets = offsets.iter().map(|(p, o)| (*p, bare(*o))).collect();
            self.new_era(offsets);
            self.note("operator reset");
        } else {
            let p = self.r.below(self.b.logs.len()) as u32;
            let all_with_state = self.b.offsets.values().all(|c| !c.metadata.is_empty());
            if self.b.offsets.len() > 1 && all_with_state && self.b.offsets.contains_key(&p) {
                self.b.offsets.insert(p, bare(self.b.logs[p as usize].high_watermark()));
                self.expect_refusal = true;
                self.resetting = false;
                self.note("partial reset");
            }
        }
    }

    pub(super) fn foreign_member(&mut self) {
        if let Some(member) = self.foreign.take() {
            self.b.leave(member);
            self.forgive();
            return;
        }
        self.foreign = Some(self.b.join(true));
        self.note("foreign member");
        if self.r.chance(1, 2) {
            self.expect_refusal = true;
            self.resetting = false;
            let all = self.r.chance(1, 2);
            let one = self.r.below(self.b.logs.len());
            for p in (0..self.b.logs.len()).filter(|p| all || *p == one) {
                self.b.offsets.insert(p as u32, bare(self.b.logs[p].high_watermark()));
            }
            self.note("foreign commit");
        }
    }

    /// Instances that ended because of a foreign member may start again.
    pub(super) fn forgive(&mut self) {
        for x in &mut self.instances {
            if x.ended.as_deref() == Some(OWNERSHIP_BROKEN) {
                x.ended = None;
            }
        }
    }

    pub(super) fn expire(&mut self) {
        for i in 0..self.instances.len() {
            if self.instances[i].up {
                self.crash(i, "crash before the offsets expire");
            }
        }
        self.wait_for_expiry(self.b.session.max(self.b.txn_timeout) + 1);
        if self.all_down() {
            self.b.offsets.clear();
            self.note("offsets expired");
            self.expect_refusal |= !self.b.output.is_empty();
        }
    }

    pub(super) fn wait_for_expiry(&mut self, wait: i64) {
        for by in [wait, 50, 50] {
            self.b.advance(by);
        }
    }

    pub(super) fn new_era(&mut self, offsets: BTreeMap<u32, i64>) {
        self.eras.push(Era { output_from: self.b.output.len(), offsets });
        // What the tasks of before excused is over.
        self.excuses.clear();
        for x in &mut self.instances {
            x.tasks.values_mut().for_each(|t| t.excuses.clear());
            x.ended = None;
        }
        self.resetting = true;
        self.expect_refusal = false;
    }
}

fn bare(offset: i64) -> Committed {
    Committed { offset, metadata: String::new() }
}
