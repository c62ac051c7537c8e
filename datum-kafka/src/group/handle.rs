//! A place in a group, and what its owner hears and says.
//!
//! [`Group::join`] starts a task that owns the [membership machine](super::membership), the connection to the coordinator and the sending
//! of commits. Nothing a slow caller does delays its heartbeats: events wait in an unbounded queue (a few per rebalance), commands are
//! answered by the task alone.
//!
//! # Order
//! Commits leave from the same task that hears the coordinator's answers, and the [`Ledger`] is closed for a partition *before* the event
//! that tells of its end is queued. So nothing is committed for a partition once it was lost or its drain ended, and no commit names
//! a generation that JoinGroup may already have ended.
//!
//! # End
//! The task ends after [`Group::leave`], after a fatal answer ([`GroupEvent::Failed`]), or when every `Group` is dropped: then without
//! draining, but not without saying goodbye.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout_at},
};

use super::{
    CommitOffset, GroupError, Ledger, LostReason, Offsets,
    membership::{Assigned, DrainId, Membership, MembershipConfig, Revoke},
    task::Task,
};
use crate::{TopicPartition, cluster::Cluster, wire::ErrorCode};

/// A place in a group. Clones share it.
#[derive(Clone, Debug)]
pub struct Group {
    name: Arc<str>,
    commands: mpsc::UnboundedSender<Command>,
    member: watch::Receiver<Standing>,
    ledger: Arc<Mutex<Ledger>>,
}

/// What the owner of the place has to know, in order.
#[derive(Debug)]
pub struct GroupEvents(mpsc::UnboundedReceiver<GroupEvent>);

/// What happened to a place in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupEvent {
    /// A generation was formed. Partitions that are new to this member are open in the ledger under `epoch`; the others keep theirs.
    Assigned {
        /// This member's part.
        assigned: Assigned,
        /// The assignment epoch of `assigned.added`.
        epoch: u64,
    },
    /// Stop emitting these, drain, commit, then call [`Group::drained`].
    Revoke(Revoke),
    /// The drain of these is over, finished or out of time.
    Revoked {
        /// Which.
        partitions: BTreeSet<TopicPartition>,
    },
    /// These are gone, uncommitted.
    Lost {
        /// Which.
        partitions: BTreeSet<TopicPartition>,
        /// Why.
        reason: LostReason,
    },
    /// The place was given up in order; nothing follows.
    Left,
    /// The place was ended; nothing follows.
    Failed(GroupError),
}

/// Who a member is in its present generation: what a transaction names when it commits offsets (KIP-447).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupIdentity {
    /// The group.
    pub group: Arc<str>,
    /// The member's id.
    pub member_id: Arc<str>,
    /// The generation.
    pub generation: i32,
    /// The static member's name.
    pub instance_id: Option<Arc<str>>,
}

/// Where the task stands, for those who wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// The identity, while a commit under it would be accepted.
    pub(super) identity: Option<GroupIdentity>,
    /// Counts losses, so that a waiter sees one that happened in between.
    pub(super) losses: u64,
    pub(super) ended: Option<Ended>,
}

#[derive(Clone, Debug)]
pub(super) enum Ended {
    Left,
    Failed(GroupError),
}

/// Why a commit did not happen.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The partitions are not (any more) this member's.
    #[error("{partition} is not this member's any more; its next owner reads on from the last commit")]
    NotOwned {
        /// The first such partition.
        partition: TopicPartition,
    },
    /// The member lost its place before the commit was accepted.
    #[error("the member lost its place in the group ({code:?}) before the commit was accepted")]
    Lost {
        /// The coordinator's answer.
        code: ErrorCode,
    },
    /// The broker refused one partition's offset for good.
    #[error("the commit of {partition} was refused with {code:?}")]
    Refused {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        code: ErrorCode,
    },
    /// The commit could not be sent or was not answered in time; it may have happened.
    #[error("the commit was not accepted within {after:?}; it may have happened")]
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// The place in the group has ended.
    #[error("the place in the group has ended")]
    Ended,
}

/// Why waiting for the group was in vain.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The member lost its place meanwhile.
    #[error("the member lost its place in the group meanwhile")]
    Lost,
    /// The place has ended by an error.
    #[error(transparent)]
    Failed(GroupError),
    /// The place was given up.
    #[error("the member has left the group")]
    Left,
    /// Nothing came in time.
    #[error("the group's coordinator confirmed nothing within {after:?}")]
    Timeout {
        /// The limit.
        after: Duration,
    },
}

pub(super) enum Command {
    Drained(DrainId),
    Commit { what: What, until: Instant, reply: oneshot::Sender<Result<(), CommitError>> },
    Confirm { reply: oneshot::Sender<i32> },
    Subscribe(BTreeSet<Arc<str>>),
    Rejoin(&'static str),
    Refused { code: ErrorCode, generation: i32, member_id: Arc<str> },
    Leave { by: Instant },
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Command")
    }
}

/// What a commit is of.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// What the ledger has, for all partitions or some.
    Dirty(Option<Vec<TopicPartition>>),
    /// These offsets, as given.
    Given(Offsets),
}

impl Group {
    /// Joins a group. The task runs until the place ends.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// None here: what goes wrong is told as an event, since most of it can mend itself.
    pub fn join(cluster: Cluster, config: MembershipConfig) -> (Self, GroupEvents) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (outbox, events) = mpsc::unbounded_channel();
        let (standing, member) = watch::channel(Standing::default());
        let ledger = Arc::new(Mutex::new(Ledger::new()));
        let name = config.group.as_str().into();
        let machine = Membership::new(config, Instant::now().into_std());
        tokio::spawn(Task::new(cluster, machine, ledger.clone(), inbox, outbox, standing).run());
        (Self { name, commands, member, ledger }, GroupEvents(events))
    }

    /// The group's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Who the member is, while a commit in that name would be accepted; none while a rebalance is under way.
    pub fn identity(&self) -> Option<GroupIdentity> {
        self.member.borrow().identity.clone()
    }

    /// Waits for an identity with a generation above `than` (-1 for any): what a member does whose transactional commit met
    /// `ILLEGAL_GENERATION` and that may still be the owner in the next generation.
    ///
    /// # Errors
    /// [`WaitError::Lost`] if the member's place was lost since the call, so that it is not the same owner any more.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn identity_after(&self, than: i32, limit: Duration) -> Result<GroupIdentity, WaitError> {
        let mut member = self.member.clone();
        let losses = member.borrow().losses;
        let found = timeout_at(Instant::now() + limit, async {
            loop {
                {
                    let standing = member.borrow_and_update();
                    if let Some(ended) = &standing.ended {
                        return Err(ended.clone().into());
                    }
                    if standing.losses != losses {
                        return Err(WaitError::Lost);
                    }
                    if let Some(identity) = standing.identity.clone().filter(|one| one.generation > than) {
                        return Ok(identity);
                    }
                }
                if member.changed().await.is_err() {
                    return Err(WaitError::Left);
                }
            }
        });
        found.await.unwrap_or(Err(WaitError::Timeout { after: limit }))
    }

    /// Waits until a heartbeat sent from now on has been answered without error, and returns the generation it confirmed. Before a
    /// member refuses to start for what its assignment says, it makes sure that the assignment is the present one.
    ///
    /// # Errors
    /// [`WaitError`]; a rebalance in between only delays the answer.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn confirm(&self, limit: Duration) -> Result<i32, WaitError> {
        let (reply, answer) = oneshot::channel();
        let losses = self.member.borrow().losses;
        self.tell(Command::Confirm { reply });
        match timeout_at(Instant::now() + limit, answer).await {
            Ok(Ok(generation)) if self.member.borrow().losses == losses => Ok(generation),
            Ok(Ok(_)) => Err(WaitError::Lost),
            Ok(Err(_)) => Err(self.member.borrow().ended.clone().map_or(WaitError::Left, Into::into)),
            Err(_) => Err(WaitError::Timeout { after: limit }),
        }
    }

    /// The book of what was emitted and acknowledged. Hold it briefly and never across an `.await`.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits what the ledger has acknowledged and not committed, for all partitions or for some. Waits through a rebalance; partitions
    /// that end in it are left out.
    ///
    /// # Errors
    /// [`CommitError`]. After any of them what was not accepted is still dirty.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall a commit under way.
    pub async fn commit_dirty(
        &self,
        only: Option<Vec<TopicPartition>>,
        limit: Duration,
    ) -> Result<(), CommitError> {
        self.commit_what(What::Dirty(only), limit).await
    }

    /// Commits these offsets with their metadata as they are. Waits through a rebalance.
    ///
    /// # Errors
    /// [`CommitError::NotOwned`] if one of the partitions is not this member's when the commit could be sent; nothing is committed
    /// then.
    ///
    /// # Cancel safety
    /// As [`commit_dirty`](Self::commit_dirty).
    pub async fn commit(&self, offsets: Offsets, limit: Duration) -> Result<(), CommitError> {
        self.commit_what(What::Given(offsets), limit).await
    }

    /// As [`commit`](Self::commit), of one offset.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn commit_one(
        &self,
        partition: TopicPartition,
        offset: CommitOffset,
        limit: Duration,
    ) -> Result<(), CommitError> {
        self.commit(Offsets::from([(partition, offset)]), limit).await
    }

    /// Says that a drain is finished.
    pub fn drained(&self, drain: DrainId) {
        self.tell(Command::Drained(drain));
    }

    /// Subscribes to other topics.
    pub fn subscribe(&self, topics: BTreeSet<Arc<str>>) {
        self.tell(Command::Subscribe(topics));
    }

    /// Joins again.
    pub fn rejoin(&self, reason: &'static str) {
        self.tell(Command::Rejoin(reason));
    }

    /// Says that somebody else's commit in this member's name (a transaction's) was refused with `code`.
    pub fn refused(&self, code: ErrorCode, identity: &GroupIdentity) {
        let (generation, member_id) = (identity.generation, identity.member_id.clone());
        self.tell(Command::Refused { code, generation, member_id });
    }

    /// Leaves: asks for everything to be drained, commits it, says goodbye, all within `limit`. Events go on until
    /// [`GroupEvent::Left`], and must be served for the drain to finish.
    ///
    /// # Errors
    /// [`GroupError`] if the place ended by an error.
    ///
    /// # Cancel safety
    /// Dropping the future does not keep the member from leaving.
    pub async fn leave(&self, limit: Duration) -> Result<(), GroupError> {
        self.tell(Command::Leave { by: Instant::now() + limit });
        let mut member = self.member.clone();
        let ended = member.wait_for(|standing| standing.ended.is_some()).await;
        match ended.map(|standing| standing.ended.clone()) {
            Ok(Some(Ended::Failed(error))) => Err(error),
            _ => Ok(()),
        }
    }

    async fn commit_what(&self, what: What, limit: Duration) -> Result<(), CommitError> {
        let (reply, answer) = oneshot::channel();
        let until = Instant::now() + limit;
        self.tell(Command::Commit { what, until, reply });
        match timeout_at(until + Duration::from_millis(100), answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(CommitError::Ended),
            Err(_) => Err(CommitError::Timeout { after: limit }),
        }
    }

    fn tell(&self, command: Command) {
        // A task that has ended answers by its absence.
        let _ = self.commands.send(command);
    }
}

impl GroupEvents {
    /// The next event; none after [`GroupEvent::Left`] or [`GroupEvent::Failed`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&mut self) -> Option<GroupEvent> {
        self.0.recv().await
    }

    /// As [`next`](Self::next), polled.
    pub fn poll_next(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<GroupEvent>> {
        self.0.poll_recv(cx)
    }
}

impl From<Ended> for WaitError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Left => Self::Left,
            Ended::Failed(error) => Self::Failed(error),
        }
    }
}
