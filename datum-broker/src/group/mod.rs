//! The group coordinator: classic consumer groups and their offsets, as a machine without sockets or clock.
//!
//! **Inputs** are requests, each with the time, and [`Groups::tick`]. A request that must wait for others (a join for
//! the barrier, a follower's sync for the leader's) carries a [`Ticket`]; its answer appears later in the outbox, which
//! the caller drains with [`Groups::answers`] after *every* call. **Deadlines**: [`Groups::deadline`] tells when `tick`
//! has something to do; every ticket is answered by then at the latest, so nothing waits for ever. **Order**: calls are
//! applied as they come; times must not go back.
//!
//! The rules are those of Kafka's classic coordinator, generation checks and their gaps included: a commit without
//! member and generation is accepted from anybody while the group is empty, and inside a transaction always.

mod join;
mod member;
mod offsets;
mod registry;
mod state;
mod sync;

pub(crate) use join::{JoinAnswer, JoinRequest};
pub(crate) use offsets::{Committed, Committer};
pub(crate) use registry::{GroupSettings, Groups};
pub(crate) use state::{Group, State};
pub(crate) use sync::{SyncAnswer, SyncRequest};

/// Names a request whose answer comes later.
pub(crate) type Ticket = u64;

/// An answer that had to wait.
#[derive(Debug)]
pub(crate) enum Answer {
    Join(JoinAnswer),
    Sync(SyncAnswer),
}

#[cfg(test)]
mod tests;
