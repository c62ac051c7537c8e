//! One member of a classic group.

use bytes::Bytes;

use crate::group::Ticket;

/// What a member said of itself, and what it waits for.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub id: String,
    /// `group.instance.id` of a static member.
    pub instance: Option<String>,
    pub client_id: String,
    pub host: String,
    pub session_timeout: i64,
    pub rebalance_timeout: i64,
    /// Assignors it offers, most wanted first, each with its subscription.
    pub protocols: Vec<(String, Bytes)>,
    pub assignment: Bytes,
    /// Its JoinGroup that waits for the barrier.
    pub join: Option<Ticket>,
    /// Its SyncGroup that waits for the leader's.
    pub sync: Option<Ticket>,
    /// Whether it has asked for the assignment of this generation.
    pub synced: bool,
    pub session_deadline: i64,
    /// Rank by first arrival; the lowest that takes part becomes the leader.
    pub order: u64,
}

impl Member {
    /// Its subscription under `protocol`.
    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols
            .iter()
            .find(|(name, _)| name == protocol)
            .map_or_else(Bytes::new, |(_, blob)| blob.clone())
    }

    pub(crate) fn offers(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|(name, _)| name == protocol)
    }

    /// Starts its session anew.
    pub(crate) fn touch(&mut self, now: i64) {
        self.session_deadline = now + self.session_timeout;
    }

    /// A member that waits for an answer cannot send heartbeats, so its session does not run.
    pub(crate) fn waits(&self) -> bool {
        self.join.is_some() || self.sync.is_some()
    }
}
