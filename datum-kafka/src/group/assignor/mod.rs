//! Assignors: who in a group reads which partition.
//!
//! In the classic group protocol the coordinator only counts heads. It picks one member as the leader, hands it what every member
//! said of itself, and the leader decides. That decision is an [`Assignor`]: a pure function of the group's view, without sockets,
//! clocks or memory, so that any member that becomes leader decides the same.
//!
//! Two are built in: [`Range`], compatible with the Java client's, and [`CooperativeSticky`], which moves as few partitions as
//! balance allows and lets the others run on. A caller may bring its own; a group that offers only its own assignor can carry its
//! own words in the subscription and in the assignment (`user_data`), and refuse an assignment that lacks them.
//!
//! # Hostile members
//! Anyone who may join the group may send anything. A [`GroupView`] therefore holds only claims that [`GroupMember::claims`] checked:
//! known topics, partitions that exist, each once.

mod cooperative;
mod range;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use bytes::Bytes;

pub use self::{cooperative::CooperativeSticky, range::Range};
use super::TopicPartition;

/// How partitions change hands when an assignor's decision takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rebalance {
    /// Each member gives everything up before it joins, and gets something after. Simple, and the whole group pauses.
    Eager,
    /// Each member keeps what it has while it joins, then gives up only what the answer took away, and joins once more (KIP-429).
    Cooperative,
}

/// A leader's decision, and what a member says and hears around it.
pub trait Assignor: fmt::Debug + Send + Sync {
    /// The protocol name that members must share, such as `range`.
    fn name(&self) -> &str;

    /// How partitions change hands under this assignor.
    fn rebalance(&self) -> Rebalance;

    /// What this member adds to its subscription, for the leader's eyes. Empty by default.
    fn subscription_data(&self, joining: &Joining<'_>) -> Bytes {
        let _ = joining;
        Bytes::new()
    }

    /// Decides, as the leader, for every member. A member that is left out gets nothing.
    ///
    /// # Errors
    /// [`Refusal`], which ends this member's place in the group with `GroupError::Refused`.
    fn assign(&self, view: &GroupView) -> Result<Assignments, Refusal>;

    /// Looks at the assignment this member got, before anything of it takes effect. Accepts by default.
    ///
    /// # Errors
    /// [`Refusal`], which ends this member's place in the group with `GroupError::Refused`.
    fn accept(&self, received: &Received<'_>) -> Result<(), Refusal> {
        let _ = received;
        Ok(())
    }
}

/// What a member knows of itself as it joins.
#[derive(Clone, Copy, Debug)]
pub struct Joining<'a> {
    /// The id the coordinator gave, empty at the first join.
    pub member_id: &'a str,
    /// The generation it last belonged to, -1 for none.
    pub generation: i32,
    /// The partitions it owns now: none under an eager rebalance.
    pub owned: &'a BTreeSet<TopicPartition>,
    /// The topics it subscribes to.
    pub topics: &'a BTreeSet<Arc<str>>,
    /// What the last assignment carried for it, if it still holds one.
    pub assignment_data: &'a Bytes,
}

/// An assignment as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// This member's id.
    pub member_id: &'a str,
    /// The generation it is for.
    pub generation: i32,
    /// The partitions, sorted.
    pub partitions: &'a BTreeSet<TopicPartition>,
    /// What the leader added.
    pub user_data: &'a Bytes,
    /// Every member's id, where this member is the leader; empty otherwise.
    pub members: &'a [String],
}

/// Why an assignor refuses to go on, in the words of whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// What is wrong and what to do about it, for a person.
    pub reason: String,
    /// The members it is about, where known.
    pub members: Vec<String>,
}

impl Refusal {
    /// A refusal that names no member.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), members: Vec::new() }
    }

    /// The same, naming `members`.
    #[must_use]
    pub fn naming(mut self, members: impl IntoIterator<Item = String>) -> Self {
        self.members.extend(members);
        self
    }
}

/// What one member said of itself when it joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMember {
    /// The id the coordinator gave it.
    pub id: String,
    /// Its `group.instance.id`, if it is a static member.
    pub instance_id: Option<String>,
    /// The topics it subscribes to.
    pub topics: BTreeSet<Arc<str>>,
    /// The partitions it says it owns.
    pub owned: Vec<TopicPartition>,
    /// The generation in which it owned them, -1 for unknown.
    pub generation: i32,
    /// What its assignor added.
    pub user_data: Bytes,
    /// Its rack, if it said one.
    pub rack: Option<String>,
}

impl GroupMember {
    /// A member that subscribes to `topics` and owns nothing.
    pub fn new<T: Into<Arc<str>>>(id: impl Into<String>, topics: impl IntoIterator<Item = T>) -> Self {
        Self {
            id: id.into(),
            topics: topics.into_iter().map(Into::into).collect(),
            generation: -1,
            ..Self::default()
        }
    }

    /// Its claims that can be true: topics it subscribes to and that exist, partitions in range, each once.
    pub fn claims(&self, topics: &TopicCounts) -> BTreeSet<TopicPartition> {
        let real = |tp: &&TopicPartition| {
            self.topics.contains(&tp.topic)
                && topics.get(&tp.topic).is_some_and(|count| (0..*count).contains(&tp.partition))
        };
        self.owned.iter().filter(real).cloned().collect()
    }

    /// The order of the Java client's range assignor: static members by their instance id, before dynamic ones by their member id.
    fn standing(&self) -> (bool, &str) {
        match &self.instance_id {
            Some(instance) => (false, instance),
            None => (true, &self.id),
        }
    }
}

/// How many partitions each topic has.
pub type TopicCounts = BTreeMap<Arc<str>, i32>;

/// What the leader sees: the topics the members ask for, and the members in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupView {
    /// Partition counts of the topics that exist. A topic somebody asks for may be missing.
    pub topics: TopicCounts,
    /// The members, each id once.
    pub members: Vec<GroupMember>,
    /// The generation being formed.
    pub generation: i32,
}

impl GroupView {
    /// A view of `members` over `topics`, members sorted by id.
    pub fn new(topics: TopicCounts, mut members: Vec<GroupMember>, generation: i32) -> Self {
        members.sort_by(|a, b| a.id.cmp(&b.id));
        members.dedup_by(|a, b| a.id == b.id);
        Self { topics, members, generation }
    }
}

/// What one member is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberAssignment {
    /// Its partitions.
    pub partitions: BTreeSet<TopicPartition>,
    /// What its assignor is to be told.
    pub user_data: Bytes,
}

/// The whole decision, by member id.
pub type Assignments = BTreeMap<String, MemberAssignment>;

/// Turns plain sets into a decision without user data.
fn plain(sets: BTreeMap<String, BTreeSet<TopicPartition>>) -> Assignments {
    sets.into_iter()
        .map(|(id, partitions)| (id, MemberAssignment { partitions, user_data: Bytes::new() }))
        .collect()
}
