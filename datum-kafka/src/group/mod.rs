//! Consumer groups: membership, assignors, committed offsets.

mod assignor;
mod blob;
mod calls;
mod error;
mod handle;
mod ledger;
pub mod membership;
mod offsets;
mod outside;
mod task;

pub use self::{
    assignor::{
        Assignments, Assignor, CooperativeSticky, GroupMember, GroupView, Joining, MemberAssignment, Range,
        Rebalance, Received, Refusal, TopicCounts,
    },
    error::{GroupError, LostReason},
    handle::{CommitError, Group, GroupEvent, GroupEvents, GroupIdentity, WaitError},
    ledger::{Ledger, Sent},
    offsets::{CommitOffset, Offsets},
};
pub use crate::TopicPartition;
pub(crate) use offsets::by_topic;
