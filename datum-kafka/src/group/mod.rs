//! Consumer groups: membership, assignors, committed offsets.

mod assignor;

pub use crate::TopicPartition;

pub use self::assignor::{
    Assignments, Assignor, CooperativeSticky, GroupMember, GroupView, Joining, MemberAssignment, Range,
    Rebalance, Received, Refusal, TopicCounts,
};
