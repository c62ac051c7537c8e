//! A member of a classic consumer group, as a machine without sockets or clocks.
//!
//! # Calling contract
//! Whoever drives a [`Membership`] owns the sockets and the clock:
//! - it calls [`start`](Membership::start) once, and [`leave`](Membership::leave) to end;
//! - it hands in answers ([`answered`](Membership::answered)), metadata ([`metadata`](Membership::metadata)), finished drains
//!   ([`drained`](Membership::drained)), refused commits ([`commit_refused`](Membership::commit_refused)) as they come, each with the time;
//! - it calls [`tick`](Membership::tick) when [`deadline`](Membership::deadline) has passed (earlier and later do no harm);
//! - after any of these it takes everything out of [`poll`](Membership::poll): requests to send and events to act on.
//!
//! A request is answered at most once, under its [`CallId`]; answers to calls the machine has given up on are ignored, so a shell
//! may be late or duplicate them. A broken connection or a passed time limit is an answer too: [`Trouble::Unreachable`].
//!
//! # Life
//! ```text
//! Unjoined ─start→ [Draining*] → Joining → (leader: Assigning) → Syncing → Stable ─rebalance→ …
//!                                                                   └ Draining → Joining   (cooperative: something was taken away)
//! any ─leave→ Draining → Leaving → Closed          any ─fatal answer→ Failed
//! ```
//! `*` an eager member gives everything up before it joins.
//!
//! # Time
//! Heartbeats start with JoinGroup's answer and go on through assigning, syncing and draining, each one interval after the last was
//! sent. The session is lost locally only when a whole session timeout passes without a successful answer; `REBALANCE_IN_PROGRESS` counts
//! as one, since the coordinator has heard us. While JoinGroup is outstanding the session clock stands still: the coordinator waits with us.
//!
//! # What is promised
//! - Partitions are announced as [`Event::Lost`] at most once, and never after the end of their drain.
//! - [`Membership::commit_as`] is `None` exactly while a commit would meet another generation than the one it names.
//! - Generation and member id are always those of one and the same JoinGroup answer.

mod config;
mod machine;
mod message;
pub(crate) mod retry;
#[cfg(test)]
mod tests;

pub use self::{
    config::MembershipConfig,
    machine::{DrainId, Membership, Phase},
    message::{
        Assigned, CallId, Counts, Event, JoinAnswer, Offer, Output, Request, Response, Revoke, SyncAnswer,
        Trouble,
    },
};
