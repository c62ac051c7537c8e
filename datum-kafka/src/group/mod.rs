//! Consumer groups: membership, assignors, committed offsets.

mod assignor;
mod partition;

pub use self::{
    assignor::{
        Assignments, Assignor, CooperativeSticky, GroupMember, GroupView, Joining, MemberAssignment, Range,
        Rebalance, Received, Refusal, TopicCounts,
    },
    partition::TopicPartition,
};
