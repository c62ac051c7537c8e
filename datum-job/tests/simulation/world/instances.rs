//! Instances: started, stopped, crashed, at work, in the group.

use datum_job::protocol::{Delivery, DriverSettings, Ended, Ending};

use super::{Checked, OWNERSHIP_BROKEN, World};
use crate::task::{Outcome, Task};

impl World {
    pub(super) fn start(&mut self, i: usize) {
        let bounded = self.plan.bounded && !self.plan.co_partitioned;
        let x = &mut self.instances[i];
        if x.up || x.ended.is_some() {
            return;
        }
        x.up = true;
        x.paused = 0;
        x.stopping = false;
        x.finished.clear();
        x.ending = Ending::Never;
        if bounded && self.r.chance(1, 2) {
            let flush = self.plan.flush && self.r.chance(1, 3);
            x.ending = if flush { Ending::AtEndFlushed } else { Ending::AtEnd };
        }
    }

    pub(super) fn stop(&mut self, i: usize) {
        let x = &mut self.instances[i];
        if !x.up || x.ending != Ending::Never {
            return;
        }
        x.stopping = true;
        x.tasks.values_mut().for_each(|t| t.driver.stop());
        if x.tasks.is_empty() {
            x.up = false;
            if let Some(member) = x.member.take() {
                self.b.leave(member);
            }
        }
    }

    pub(super) fn crash(&mut self, i: usize, why: &'static str) {
        self.note(why);
        let x = &mut self.instances[i];
        x.up = false;
        x.member = None;
        x.paused = 0;
        for task in std::mem::take(&mut x.tasks).into_values() {
            self.learn(task);
        }
        self.instances[i].finished.clear();
    }

    /// Leaves the group and forgets everything, to join again at the next step.
    pub(super) fn rejoin(&mut self, i: usize) {
        let x = &mut self.instances[i];
        if let Some(member) = x.member.take() {
            self.b.leave(member);
        }
        for task in std::mem::take(&mut self.instances[i].tasks).into_values() {
            self.learn(task);
        }
        self.instances[i].finished.clear();
    }

    /// Keeps what the oracle needs of a task.
    pub(super) fn learn(&mut self, task: Task) {
        self.longest_metadata = self.longest_metadata.max(task.longest_metadata);
        self.excuses.extend(task.excuses);
    }

    pub(super) fn step(&mut self, i: usize, faults: bool) -> Checked {
        if !self.instances[i].up || self.instances[i].paused > self.b.now {
            return Ok(());
        }
        let Some(member) = self.instances[i].member else {
            let x = &mut self.instances[i];
            x.member = Some(self.b.join(false));
            x.generation = 0;
            return Ok(());
        };
        if self.instances[i].tasks.is_empty() || self.r.chance(1, 3) {
            return self.heartbeat(i, member);
        }
        let units: Vec<usize> = self.instances[i].tasks.keys().copied().collect();
        let unit = units[self.r.below(units.len())];
        let task = self.instances[i].tasks.get_mut(&unit).expect("a unit of the instance");
        let outcome = task.step(&mut self.b, &mut self.r);
        let (committing, restoring) = (task.committing(), task.restoring());
        match outcome {
            Outcome::Goes => {}
            Outcome::Lost => {
                self.note("lost");
                self.rejoin(i);
            }
            Outcome::Ended(Ended::Finished) => self.finished(i, unit),
            Outcome::Ended(Ended::Blocked(p)) => return Err(format!("blocked by {p:?} without a limit")),
            Outcome::Ended(Ended::Refused(why)) => {
                self.rejoin(i);
                let x = &mut self.instances[i];
                x.up = false;
                x.ended = Some(why.to_string());
                if !self.expect_refusal {
                    return Err(format!("refused in a legal situation: {why}"));
                }
                self.note("refused");
            }
        }
        if faults && self.plan.crash > 0 {
            if committing && self.r.chance(self.plan.crash, 60) {
                self.crash(i, "crash in a transaction");
            } else if restoring && self.r.chance(self.plan.crash, 60) {
                self.crash(i, "crash in a restore");
            } else if self.r.chance(self.plan.crash, 500) {
                self.crash(i, "crash anywhere");
            }
        }
        Ok(())
    }

    pub(super) fn finished(&mut self, i: usize, unit: usize) {
        let x = &mut self.instances[i];
        if let Some(task) = x.tasks.remove(&unit) {
            x.finished.insert(unit);
            self.learn(task);
        }
        let x = &mut self.instances[i];
        if x.finished.len() == self.b.units || (x.tasks.is_empty() && x.stopping) {
            self.rejoin(i);
            self.instances[i].up = false;
            self.note("ended gracefully");
        }
    }

    pub(super) fn heartbeat(&mut self, i: usize, member: u32) -> Checked {
        let Some(generation) = self.b.heartbeat(member) else {
            self.note("membership lost");
            self.rejoin(i);
            return Ok(());
        };
        if generation == self.instances[i].generation {
            return Ok(());
        }
        if self.b.broken {
            self.rejoin(i);
            self.instances[i].up = false;
            self.instances[i].ended = Some(OWNERSHIP_BROKEN.to_owned());
            self.note("ownership broken");
            return Ok(());
        }
        for unit in 0..self.b.units {
            let mine = self.b.owners[unit] == Some(member);
            let x = &mut self.instances[i];
            if !mine {
                if let Some(task) = x.tasks.remove(&unit) {
                    self.learn(task);
                }
                continue;
            }
            if x.finished.contains(&unit) {
                continue;
            }
            if let Some(task) = x.tasks.get_mut(&unit) {
                task.driver.assigned(generation);
                continue;
            }
            let settings = DriverSettings {
                delivery: if self.plan.at_least_once { Delivery::AtLeastOnce } else { Delivery::ExactlyOnce },
                ending: x.ending,
                retry: 1,
                end_retry: 6,
                ..DriverSettings::new(self.settings.clone())
            };
            let mut task = Task::new(unit, member, generation, settings, self.resetting, self.lie);
            if x.stopping {
                task.driver.stop();
            }
            x.tasks.insert(unit, task);
        }
        self.instances[i].generation = generation;
        Ok(())
    }

    pub(super) fn all_down(&self) -> bool {
        self.instances.iter().all(|x| !x.up || x.paused > self.b.now)
            && self.b.empty_group()
            && self.b.no_transactions()
    }
}
