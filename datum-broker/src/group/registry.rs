//! All groups of the broker, their settings and their clockwork.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::group::state::{Group, Outbox, State};
use crate::random::Random;

/// Limits of the group coordinator, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupSettings {
    pub min_session: i64,
    pub max_session: i64,
    /// How long an empty group waits for more members after the first.
    pub initial_delay: i64,
    pub max_size: usize,
}

/// The group coordinator.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(super) groups: BTreeMap<String, Group>,
    pub(super) outbox: Outbox,
    pub(super) settings: GroupSettings,
    order: u64,
    random: Random,
}

impl Groups {
    pub(crate) fn new(settings: GroupSettings, random: Random) -> Self {
        Self { groups: BTreeMap::new(), outbox: Outbox::new(), settings, order: 0, random }
    }

    /// Answers that came due since the last call.
    pub(crate) fn answers(&mut self) -> Outbox {
        std::mem::take(&mut self.outbox)
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: i64) {
        let Self { groups, outbox, .. } = self;
        for group in groups.values_mut() {
            group.tick(now, outbox);
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn deadline(&self) -> Option<i64> {
        self.groups.values().filter_map(Group::deadline).min()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.groups.iter().map(|(name, group)| (name.as_str(), group))
    }

    /// Deletes an empty group with its offsets.
    ///
    /// # Errors
    /// `GroupIdNotFound`, `NonEmptyGroup`.
    pub(crate) fn delete(&mut self, name: &str) -> Result<(), Code> {
        let group = self.groups.get(name).ok_or(Code::GroupIdNotFound)?;
        if group.state != State::Empty {
            return Err(Code::NonEmptyGroup);
        }
        self.groups.remove(name);
        Ok(())
    }

    /// Deletes one committed offset.
    ///
    /// # Errors
    /// `GroupIdNotFound`; `GroupSubscribedToTopic` while a member reads the topic.
    pub(crate) fn delete_offset(&mut self, name: &str, topic: &str, partition: i32) -> Result<(), Code> {
        let group = self.groups.get_mut(name).ok_or(Code::GroupIdNotFound)?;
        if group.subscribes(topic) {
            return Err(Code::GroupSubscribedToTopic);
        }
        group.offsets.committed.remove(&(topic.to_owned(), partition));
        Ok(())
    }

    /// Drops the offsets of a topic that is gone.
    pub(crate) fn forget_topic(&mut self, topic: &str) {
        for group in self.groups.values_mut() {
            group.offsets.forget_topic(topic);
        }
    }

    /// The offset below which every group has read this partition; `None` when no group has committed there, or one
    /// subscribes to the topic and has not.
    pub(crate) fn consumed(&self, topic: &str, partition: i32) -> Option<i64> {
        let position = (topic.to_owned(), partition);
        let mut lowest = None;
        for group in self.groups.values() {
            match group.offsets.committed.get(&position) {
                Some(committed) => {
                    lowest = Some(lowest.map_or(committed.offset, |low: i64| low.min(committed.offset)));
                }
                None if group.subscribes(topic) => return None,
                None => {}
            }
        }
        lowest
    }

    pub(super) fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    pub(super) fn random_id(&mut self) -> String {
        self.random.uuid().hyphenated().to_string()
    }
}
