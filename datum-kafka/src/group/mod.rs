//! Consumer groups: membership, assignors, committed offsets.

mod assignor;
mod error;
pub mod membership;

pub use self::{
    assignor::{
        Assignments, Assignor, CooperativeSticky, GroupMember, GroupView, Joining, MemberAssignment, Range,
        Rebalance, Received, Refusal, TopicCounts,
    },
    error::{GroupError, LostReason},
};
pub use crate::TopicPartition;
