//! The machine itself: its state, its inputs and outputs. Its calling contract stands in the page above.

mod answers;
mod progress;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    config::MembershipConfig,
    message::{CallId, Counts, Event, Output, Request, Response},
    retry::Retry,
};
use crate::{
    group::{GroupError, GroupMember, LostReason, TopicPartition},
    wire::ErrorCode,
};

/// Names one drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DrainId(u64);

/// Where a membership stands, for logs, metrics and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not started.
    Unjoined,
    /// About to join: looking for the coordinator, or waiting to try again.
    Preparing,
    /// JoinGroup is outstanding.
    Joining,
    /// Leader, waiting for partition counts.
    Assigning,
    /// SyncGroup is outstanding.
    Syncing,
    /// A member of a generation.
    Stable,
    /// Waiting until partitions have been given up.
    Draining,
    /// LeaveGroup is outstanding.
    Leaving,
    /// Left.
    Closed,
    /// Ended by an error.
    Failed,
}

/// One member of one classic group. See the [module page](super) for how to drive it.
#[derive(Debug)]
pub struct Membership {
    config: MembershipConfig,
    state: State,
    coordinator: Coordinator,
    member_id: String,
    /// -1 while the member belongs to none.
    generation: i32,
    protocol: Option<String>,
    leader: bool,
    members: Vec<String>,
    owned: BTreeSet<TopicPartition>,
    assignment_data: Bytes,
    heartbeat: Heartbeat,
    /// When the session is lost, while the member belongs to a generation.
    session_end: Option<Instant>,
    counts: Counts,
    /// The topics the leader decided upon, whether they exist or not, and the counts they had.
    watched: BTreeSet<Arc<str>>,
    decided_on: Counts,
    rejoin: Option<&'static str>,
    leave_by: Option<Instant>,
    retry: Retry,
    calls: u64,
    drains: u64,
    out: VecDeque<Output>,
}

#[derive(Debug)]
enum State {
    Unjoined,
    Preparing,
    Joining { call: CallId, sent: Instant },
    Assigning { members: Vec<GroupMember>, until: Instant },
    Syncing { call: CallId },
    Stable,
    Draining { drain: DrainId, partitions: BTreeSet<TopicPartition>, deadline: Instant, then: Then },
    Leaving { call: CallId },
    Closed,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Join,
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coordinator {
    Unknown,
    Finding(CallId),
    Node(i32),
}

#[derive(Debug)]
struct Heartbeat {
    call: Option<CallId>,
    due: Instant,
    confirm: Confirm,
}

/// Whether somebody waits for a heartbeat that was sent after they asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirm {
    No,
    Wanted,
    Sent,
}

impl Membership {
    /// A member that has not started.
    pub fn new(config: MembershipConfig, now: Instant) -> Self {
        let retry = Retry::new(config.retry_min, config.retry_max, config.seed);
        Self {
            config,
            state: State::Unjoined,
            coordinator: Coordinator::Unknown,
            member_id: String::new(),
            generation: -1,
            protocol: None,
            leader: false,
            members: Vec::new(),
            owned: BTreeSet::new(),
            assignment_data: Bytes::new(),
            heartbeat: Heartbeat { call: None, due: now, confirm: Confirm::No },
            session_end: None,
            counts: BTreeMap::new(),
            watched: BTreeSet::new(),
            decided_on: BTreeMap::new(),
            rejoin: None,
            leave_by: None,
            retry,
            calls: 0,
            drains: 0,
            out: VecDeque::new(),
        }
    }

    /// Begins to join. Has no effect a second time.
    pub fn start(&mut self, now: Instant) {
        if matches!(self.state, State::Unjoined) {
            self.state = State::Preparing;
            self.rejoin = Some("first join");
            self.advance(now);
        }
    }

    /// Hands in the answer to `call`; ignored if the machine no longer waits for it.
    pub fn answered(&mut self, now: Instant, call: CallId, response: Response) {
        if self.coordinator == Coordinator::Finding(call) {
            self.on_coordinator(now, response);
        } else if self.heartbeat.call == Some(call) {
            self.heartbeat.call = None;
            self.on_heartbeat(now, response);
        } else {
            match self.state {
                State::Joining { call: waiting, sent } if waiting == call => {
                    self.on_join(now, sent, response);
                }
                State::Syncing { call: waiting } if waiting == call => self.on_sync(now, response),
                State::Leaving { call: waiting } if waiting == call => self.close(),
                _ => return,
            }
        }
        self.advance(now);
    }

    /// Hands in the partition counts of the subscribed topics and of those asked for by [`Event::NeedMetadata`]. A topic that is missing
    /// does not exist.
    pub fn metadata(&mut self, now: Instant, counts: Counts) {
        self.counts = counts;
        if let State::Assigning { members, .. } = &mut self.state {
            let members = std::mem::take(members);
            self.decide(now, members);
        } else if self.leader && self.generation >= 0 && self.counts_of(&self.watched) != self.decided_on {
            self.rejoin.get_or_insert("partition counts have changed");
        }
        self.advance(now);
    }

    /// Says that the partitions of a drain are given up: nothing of them is emitted any more and what had to be committed is.
    pub fn drained(&mut self, now: Instant, drain: DrainId) {
        if matches!(&self.state, State::Draining { drain: running, .. } if *running == drain) {
            self.end_drain(now);
            self.advance(now);
        }
    }

    /// Hands in a commit's error code, and the generation and member id it was sent with.
    pub fn commit_refused(&mut self, now: Instant, code: ErrorCode, generation: i32, member_id: &str) {
        let stale = generation != self.generation || member_id != self.member_id || self.generation < 0;
        // While JoinGroup is outstanding its own answer tells more than a commit that was under way when it was sent.
        if stale || matches!(self.state, State::Joining { .. } | State::Leaving { .. }) {
            return;
        }
        match code {
            ErrorCode::UnknownMemberId => self.lose(now, LostReason::UnknownMember),
            ErrorCode::IllegalGeneration => self.lose(now, LostReason::IllegalGeneration),
            ErrorCode::FencedInstanceId => self.fail(self.fenced()),
            ErrorCode::RebalanceInProgress => {
                self.rejoin.get_or_insert("the group is rebalancing");
            }
            ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                self.forget_coordinator(now);
                self.retry.soon(now);
            }
            _ => {}
        }
        self.advance(now);
    }

    /// Subscribes to other topics.
    pub fn subscribe(&mut self, now: Instant, topics: BTreeSet<Arc<str>>) {
        if topics != self.config.topics {
            self.config.topics = topics;
            self.rejoin.get_or_insert("the subscription has changed");
            self.advance(now);
        }
    }

    /// Joins again although nothing seems to call for it.
    pub fn rejoin(&mut self, now: Instant, reason: &'static str) {
        self.rejoin.get_or_insert(reason);
        self.advance(now);
    }

    /// Asks for a heartbeat from now on to be answered without error: [`Event::Confirmed`] tells. A rebalance in between delays it to the next
    /// generation, a loss is told as [`Event::Lost`] and ends the wait at the next assignment.
    pub fn confirm(&mut self, now: Instant) {
        self.heartbeat.confirm = Confirm::Wanted;
        self.advance(now);
    }

    /// The coordinator is known not to be where it was (its connection broke).
    pub fn coordinator_gone(&mut self, now: Instant) {
        self.forget_coordinator(now);
        self.retry.soon(now);
        self.advance(now);
    }

    /// Leaves: drains and commits everything, says goodbye, all of it until `by` at the latest.
    pub fn leave(&mut self, now: Instant, by: Instant) {
        match self.state {
            State::Closed | State::Failed | State::Leaving { .. } => return,
            State::Unjoined => self.close(),
            _ => self.leave_by = Some(self.leave_by.map_or(by, |old| old.min(by))),
        }
        self.advance(now);
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Instant) {
        if self.session().is_some_and(|end| now >= end) {
            self.lose(now, LostReason::SessionExpired);
        }
        if matches!(&self.state, State::Draining { deadline, .. } if now >= *deadline) {
            self.end_drain(now);
        }
        if let State::Assigning { members, until } = &mut self.state
            && now >= *until
        {
            let members = std::mem::take(members);
            self.decide(now, members);
        }
        self.advance(now);
    }

    /// When [`tick`](Self::tick) is due next.
    pub fn deadline(&self) -> Option<Instant> {
        let state = match &self.state {
            State::Draining { deadline, .. } => Some(*deadline),
            State::Assigning { until, .. } => Some(*until),
            _ => None,
        };
        let beat = (self.beats() && self.heartbeat.call.is_none() && self.node().is_some())
            .then_some(if self.heartbeat.confirm == Confirm::Wanted {
                None
            } else {
                Some(self.heartbeat.due)
            })
            .flatten();
        let retry = self.retry.at().filter(|_| self.waits_for_retry());
        [state, beat, retry, self.session(), self.leave_by.filter(|_| self.lives())]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes the next request or event, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Under which generation and member id a commit may be sent now, if at all.
    pub fn commit_as(&self) -> Option<(i32, &str)> {
        let may = self.generation >= 0 && matches!(self.state, State::Stable | State::Draining { .. });
        may.then_some((self.generation, self.member_id.as_str()))
    }

    /// Where the membership stands.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Unjoined => Phase::Unjoined,
            State::Preparing => Phase::Preparing,
            State::Joining { .. } => Phase::Joining,
            State::Assigning { .. } => Phase::Assigning,
            State::Syncing { .. } => Phase::Syncing,
            State::Stable => Phase::Stable,
            State::Draining { .. } => Phase::Draining,
            State::Leaving { .. } => Phase::Leaving,
            State::Closed => Phase::Closed,
            State::Failed => Phase::Failed,
        }
    }

    /// The coordinator's node, if known.
    pub fn node(&self) -> Option<i32> {
        match self.coordinator {
            Coordinator::Node(node) => Some(node),
            _ => None,
        }
    }

    /// What the member owns, partitions of a running drain included.
    pub fn owned(&self) -> &BTreeSet<TopicPartition> {
        &self.owned
    }

    /// The member's id, empty before the first join.
    pub fn member_id(&self) -> &str {
        &self.member_id
    }

    /// The generation the member belongs to, -1 for none.
    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// The settings.
    pub fn config(&self) -> &MembershipConfig {
        &self.config
    }

    fn alive(&mut self, now: Instant) {
        if self.generation >= 0 {
            self.session_end = Some(now + self.config.session_timeout);
        }
    }

    fn forget_coordinator(&mut self, now: Instant) {
        self.coordinator = Coordinator::Unknown;
        self.heartbeat.call = None;
        if self.heartbeat.confirm == Confirm::Sent {
            self.heartbeat.confirm = Confirm::Wanted;
        }
        match self.state {
            // What was outstanding there will not be answered in time.
            State::Joining { sent, .. } => {
                self.resume_session(now, sent);
                self.state = State::Preparing;
            }
            State::Syncing { .. } => self.state = State::Preparing,
            State::Leaving { .. } => self.close(),
            _ => {}
        }
    }

    fn lives(&self) -> bool {
        !matches!(self.state, State::Unjoined | State::Leaving { .. } | State::Closed | State::Failed)
    }

    fn beats(&self) -> bool {
        self.generation >= 0
            && matches!(
                self.state,
                State::Assigning { .. } | State::Syncing { .. } | State::Stable | State::Draining { .. }
            )
    }

    /// When the session ends; never while JoinGroup is outstanding.
    fn session(&self) -> Option<Instant> {
        self.session_end.filter(|_| !matches!(self.state, State::Joining { .. }))
    }

    /// The session clock stood still while the coordinator waited with us.
    fn resume_session(&mut self, now: Instant, sent: Instant) {
        self.session_end = self.session_end.map(|end| end + now.saturating_duration_since(sent));
    }

    fn waits_for_retry(&self) -> bool {
        let knows = matches!(self.coordinator, Coordinator::Node(_));
        let finding = matches!(self.coordinator, Coordinator::Finding(_));
        self.lives() && !finding && (!knows || matches!(self.state, State::Preparing))
    }

    fn held_back(&self) -> Duration {
        (self.config.rebalance_timeout + Duration::from_secs(5)).max(self.config.request_timeout)
    }

    fn watch(&mut self, topics: BTreeSet<Arc<str>>) {
        self.decided_on = self.counts_of(&topics);
        self.watched = topics;
    }

    fn counts_of(&self, topics: &BTreeSet<Arc<str>>) -> Counts {
        topics
            .iter()
            .filter_map(|topic| self.counts.get(topic).map(|count| (topic.clone(), *count)))
            .collect()
    }

    fn assignor_in_use(&self) -> Option<&Arc<dyn crate::group::Assignor>> {
        self.protocol.as_deref().and_then(|name| self.config.assignor(name))
    }

    fn send(&mut self, request: Request, timeout: Duration) -> CallId {
        self.send_to(self.node(), request, timeout)
    }

    fn send_to(&mut self, to: Option<i32>, request: Request, timeout: Duration) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.out.push_back(Output::Send { call, to, request, timeout });
        call
    }

    fn tell(&mut self, event: Event) {
        self.out.push_back(Output::Tell(event));
    }

    fn fenced(&self) -> GroupError {
        let instance = self.config.instance_id.clone().unwrap_or_default();
        GroupError::Fenced { group: self.config.group.clone(), instance }
    }

    fn fatal(&self, request: &'static str, code: ErrorCode) -> GroupError {
        let group = self.config.group.clone();
        match code {
            ErrorCode::FencedInstanceId => self.fenced(),
            ErrorCode::InconsistentGroupProtocol => {
                let offered =
                    self.config.assignors.iter().map(|assignor| assignor.name().to_owned()).collect();
                GroupError::NoCommonAssignor { group, offered }
            }
            ErrorCode::InvalidSessionTimeout => {
                GroupError::SessionTimeout { group, timeout: self.config.session_timeout }
            }
            ErrorCode::GroupMaxSizeReached => GroupError::Full { group },
            ErrorCode::InvalidGroupId => GroupError::InvalidGroup { group },
            ErrorCode::GroupAuthorizationFailed | ErrorCode::TopicAuthorizationFailed => {
                GroupError::Unauthorized { group, code }
            }
            code => GroupError::Unexpected { group, request, code },
        }
    }
}
