//! What goes into and comes out of a membership.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::machine::DrainId;
use crate::{
    group::{Assignments, GroupError, GroupMember, LostReason, MemberAssignment, TopicPartition},
    wire::ErrorCode,
};

/// Names one request, so that its answer can be told from a late one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(super) u64);

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send `request`, and hand in what comes back, or that nothing came within `timeout`.
    Send {
        /// The name of the call.
        call: CallId,
        /// Where to: the coordinator's node id, or any broker.
        to: Option<i32>,
        /// What.
        request: Request,
        /// How long to wait for the answer.
        timeout: Duration,
    },
    /// Tell the owner of the membership.
    Tell(Event),
}

/// A request. Group, timeouts and instance id are the shell's to add from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// FindCoordinator.
    FindCoordinator,
    /// JoinGroup.
    Join {
        /// The member's id, empty at first.
        member_id: String,
        /// One subscription per offered assignor.
        offers: Vec<Offer>,
        /// Why, for the broker's log.
        reason: &'static str,
    },
    /// SyncGroup.
    Sync {
        /// The member's id.
        member_id: String,
        /// The generation.
        generation: i32,
        /// The assignor that was chosen.
        protocol: String,
        /// The leader's decision; empty from others.
        assignments: Assignments,
    },
    /// Heartbeat.
    Heartbeat {
        /// The member's id.
        member_id: String,
        /// The generation.
        generation: i32,
    },
    /// LeaveGroup.
    Leave {
        /// The member's id.
        member_id: String,
    },
}

/// One assignor's name and what the member says of itself under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The assignor's name.
    pub protocol: String,
    /// The subscription.
    pub topics: BTreeSet<Arc<str>>,
    /// What is owned.
    pub owned: BTreeSet<TopicPartition>,
    /// Since which generation.
    pub generation: i32,
    /// What the assignor adds.
    pub user_data: Bytes,
    /// The rack.
    pub rack: Option<String>,
}

/// An answer, or that there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The coordinator's node id.
    Coordinator(i32),
    /// JoinGroup's answer.
    Joined(JoinAnswer),
    /// SyncGroup's answer.
    Synced(SyncAnswer),
    /// A heartbeat without error.
    Alive,
    /// A LeaveGroup without error.
    Left,
    /// Any request that failed.
    Trouble(Trouble),
}

/// Why there is no good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The broker's error code. `member_id` is set where JoinGroup's answer carries one.
    Code {
        /// The code, not 0.
        code: ErrorCode,
        /// The id that `MEMBER_ID_REQUIRED` hands out.
        member_id: Option<String>,
    },
    /// The connection broke, could not be made, or the time limit passed. Whether the request took effect is not known.
    Unreachable,
}

impl Trouble {
    /// A bare error code.
    pub fn code(code: ErrorCode) -> Self {
        Self::Code { code, member_id: None }
    }
}

/// A JoinGroup answer without error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinAnswer {
    /// The member's id.
    pub member_id: String,
    /// The generation formed.
    pub generation: i32,
    /// The assignor chosen.
    pub protocol: String,
    /// The leader's member id.
    pub leader: String,
    /// The leader is not to assign (KIP-814).
    pub skip_assignment: bool,
    /// For the leader: what each member said, undecodable ones as members that subscribe to nothing.
    pub members: Vec<GroupMember>,
}

/// A SyncGroup answer without error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncAnswer {
    /// What this member is to have.
    pub assignment: MemberAssignment,
}

/// What the owner of the membership has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A generation was formed and this is the member's part. Told in every generation, even if nothing changed.
    Assigned(Assigned),
    /// Give these partitions up: stop emitting, drain, commit, then call [`drained`](super::Membership::drained).
    Revoke(Revoke),
    /// A drain is over, finished or out of time: from here on nothing may be committed for these.
    Revoked {
        /// Which.
        partitions: BTreeSet<TopicPartition>,
    },
    /// These partitions are gone: commit nothing for them. A running drain of them is over.
    Lost {
        /// Which.
        partitions: BTreeSet<TopicPartition>,
        /// Why.
        reason: LostReason,
    },
    /// Commits may be sent (again), under this generation and member id.
    CommitAs {
        /// The generation.
        generation: i32,
        /// The member's id.
        member_id: String,
    },
    /// A heartbeat sent after [`confirm`](super::Membership::confirm) was answered without error.
    Confirmed {
        /// The confirmed generation.
        generation: i32,
    },
    /// The leader cannot decide without partition counts of these topics: call [`metadata`](super::Membership::metadata).
    NeedMetadata {
        /// Which topics.
        topics: BTreeSet<Arc<str>>,
    },
    /// The member has left; nothing follows.
    Left,
    /// The member's place has ended; nothing follows.
    Failed(GroupError),
}

/// A member's part in a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The generation.
    pub generation: i32,
    /// The member's id.
    pub member_id: String,
    /// The assignor that decided.
    pub protocol: String,
    /// Whether this member decided.
    pub leader: bool,
    /// Everything the member is to have now.
    pub partitions: BTreeSet<TopicPartition>,
    /// What of it is new to the member: its positions are to be fetched.
    pub added: BTreeSet<TopicPartition>,
    /// What the assignor was told.
    pub user_data: Bytes,
}

/// A request to give partitions up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoke {
    /// To be handed back when done.
    pub drain: DrainId,
    /// Exactly these.
    pub partitions: BTreeSet<TopicPartition>,
    /// When the membership goes on without an answer: from then on no commit for them may be sent.
    pub deadline: Instant,
}

/// Partition counts by topic, as known to the caller.
pub type Counts = BTreeMap<Arc<str>, i32>;
