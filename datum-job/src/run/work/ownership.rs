//! What the group says: partitions given, taken back, lost.

use std::sync::Arc;

use datum_kafka::TopicPartition;
use datum_kafka::group::GroupEvent;
use datum_kafka::group::membership::{Assigned, MembershipConfig};

use super::{Key, Work};
use crate::protocol::Role;
use crate::run::group::JobAssignor;
use crate::run::unit::Unit;
use crate::run::{JobError, JobLogic, RunSettings};
use crate::settings::Mode;

impl<L: JobLogic> Work<L> {
    pub(super) fn heard(&mut self, event: Option<GroupEvent>) -> Result<(), JobError> {
        match event {
            Some(GroupEvent::Assigned { assigned, .. }) => self.assigned(&assigned),
            Some(GroupEvent::Revoke(revoke)) => {
                // Nothing is in doubt that the next owner would not find: what is not committed is read again.
                self.give_up(revoke.partitions.iter());
                self.group.drained(revoke.drain);
                Ok(())
            }
            Some(GroupEvent::Lost { partitions, reason }) => {
                tracing::warn!(topic = %self.topic, %reason, "partitions were lost");
                self.give_up(partitions.iter());
                Ok(())
            }
            Some(GroupEvent::Failed(error)) => {
                Err(self.assignor.take_refused().map_or_else(|| error.into(), Into::into))
            }
            // Only after a call to leave, which this loop does not make.
            None | Some(_) => Ok(()),
        }
    }

    fn assigned(&mut self, assigned: &Assigned) -> Result<(), JobError> {
        let assignment = self.assignor.read(&assigned.user_data, &assigned.partitions, &[])?;
        let keys: Vec<Key> = match (assignment.role, assignment.mode) {
            (Role::Owner, Mode::Exclusive) => vec![None],
            (Role::Owner, Mode::CoPartitioned) => assignment.partitions.iter().map(|p| Some(*p)).collect(),
            _ => Vec::new(),
        };
        tracing::info!(topic = %self.topic, generation = assigned.generation, role = ?assignment.role, partitions = ?assignment.partitions, "assigned");
        for (key, unit) in &mut self.units {
            if !keys.contains(key) {
                unit.driver.revoked();
                unit.producer = None;
            }
        }
        for key in &keys {
            let unit = self.units.entry(*key).or_insert_with(|| {
                let make = Box::new(self.logic.payloads());
                Unit::new(*key, self.driver.clone(), make)
            });
            unit.rejoining = false;
            unit.rejoin_at = None;
            if self.stopping {
                unit.driver.stop();
            }
            unit.driver.assigned(assigned.generation);
        }
        self.same_count(assignment.count)?;
        self.assignor.owns_since((!keys.is_empty()).then_some(assigned.generation));
        self.follow_all();
        Ok(())
    }

    fn give_up<'a>(&mut self, partitions: impl Iterator<Item = &'a TopicPartition>) {
        for tp in partitions {
            let number = u32::try_from(tp.partition).ok();
            for (key, unit) in &mut self.units {
                if key.is_none() || *key == number {
                    unit.driver.revoked();
                    unit.producer = None;
                }
            }
        }
        if !self.units.values().any(|unit| unit.driver.generation().is_some()) {
            self.assignor.owns_since(None);
        }
        self.follow_all();
    }
}

/// How this member presents itself.
pub(super) fn membership(run: &RunSettings, topic: &Arc<str>, assignor: &JobAssignor) -> MembershipConfig {
    let settings = &run.input.group;
    let mut config = MembershipConfig::new(&*settings.group, [topic.clone()]);
    config.instance_id = settings.instance_id.as_deref().map(str::to_owned);
    config.assignors = vec![Arc::new(assignor.clone())];
    config.session_timeout = settings.session_timeout;
    config.rebalance_timeout = settings.rebalance_timeout;
    config.heartbeat_interval = settings.heartbeat_interval;
    config.drain_timeout = settings.drain_timeout;
    config.seed = u64::from(std::process::id());
    config
}
