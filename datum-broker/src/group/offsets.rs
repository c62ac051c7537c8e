//! Committed offsets of a group, and those that wait for a transaction to end.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::group::registry::Groups;
use crate::group::state::{Group, State};

/// A topic and a partition.
pub(crate) type Position = (String, i32);

/// One committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub offset: i64,
    /// Leader epoch of the last consumed record, -1 if not told.
    pub leader_epoch: i32,
    pub metadata: String,
    /// Place in the order of all commits: a transaction's offset never covers one that came after it.
    pub order: u64,
}

/// Who commits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committer<'a> {
    pub member: &'a str,
    pub instance: Option<&'a str>,
    /// -1 without one.
    pub generation: i32,
}

/// All offsets of a group.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    pub committed: BTreeMap<Position, Committed>,
    /// By producer id.
    pending: BTreeMap<i64, BTreeMap<Position, Committed>>,
}

impl Offsets {
    /// Whether a transaction that may still end either way holds an offset of this partition.
    pub(crate) fn is_unstable(&self, position: &Position) -> bool {
        self.pending.values().any(|offsets| offsets.contains_key(position))
    }

    /// Drops the offsets of a topic that is gone.
    pub(crate) fn forget_topic(&mut self, topic: &str) {
        self.committed.retain(|(name, _), _| name != topic);
        for offsets in self.pending.values_mut() {
            offsets.retain(|(name, _), _| name != topic);
        }
    }

    fn end(&mut self, producer_id: i64, commit: bool) {
        let offsets = self.pending.remove(&producer_id).unwrap_or_default();
        for (position, new) in offsets.into_iter().filter(|_| commit) {
            if self.committed.get(&position).is_none_or(|old| old.order < new.order) {
                self.committed.insert(position, new);
            }
        }
    }
}

impl Group {
    /// Whether this committer may commit: Kafka's checks, with their gaps.
    ///
    /// # Errors
    /// `UnknownMemberId`, `FencedInstanceId`, `IllegalGeneration`, `RebalanceInProgress`.
    fn check_commit(&self, who: Committer<'_>, transactional: bool) -> Result<(), Code> {
        if who.generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if who.generation >= 0 || !who.member.is_empty() || who.instance.is_some() {
            self.check_member(who.member, who.instance)?;
            if who.generation != self.generation {
                return Err(Code::IllegalGeneration);
            }
        } else if !transactional && self.state != State::Empty {
            return Err(Code::UnknownMemberId);
        }
        if !transactional && self.state == State::CompletingRebalance {
            return Err(Code::RebalanceInProgress);
        }
        Ok(())
    }
}

impl Groups {
    /// Checks a commit and creates the group if a stranger may commit to it.
    ///
    /// # Errors
    /// Those of the group's checks; `IllegalGeneration` for a member of a group that does not exist, `InvalidGroupId`.
    pub(crate) fn check_commit(
        &mut self,
        group: &str,
        who: Committer<'_>,
        transactional: bool,
        now: i64,
    ) -> Result<(), Code> {
        if group.is_empty() {
            return Err(Code::InvalidGroupId);
        }
        match self.groups.get_mut(group) {
            Some(group) => {
                group.check_commit(who, transactional)?;
                // A commit is a sign of life.
                if let (Some(member), false) = (group.members.get_mut(who.member), transactional) {
                    member.touch(now);
                }
                Ok(())
            }
            None if who.generation >= 0 => Err(Code::IllegalGeneration),
            None => {
                self.groups.insert(group.to_owned(), Group::default());
                Ok(())
            }
        }
    }

    /// Stores one offset: at once, or with the transaction of `producer_id`. The commit has been checked.
    pub(crate) fn store(
        &mut self,
        group: &str,
        position: Position,
        mut offset: Committed,
        producer_id: Option<i64>,
    ) {
        offset.order = self.next_order();
        let Some(group) = self.groups.get_mut(group) else { return };
        let into = match producer_id {
            Some(id) => group.offsets.pending.entry(id).or_default(),
            None => &mut group.offsets.committed,
        };
        into.insert(position, offset);
    }

    /// A transaction's marker reached this group.
    pub(crate) fn end_transaction(&mut self, group: &str, producer_id: i64, commit: bool) {
        if let Some(group) = self.groups.get_mut(group) {
            group.offsets.end(producer_id, commit);
        }
    }
}
