//! A classic group: its members, its state, and the steps between states.
//!
//! ```text
//! Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance --leader's sync--> Stable
//!                        ^------------- join, leave, session over -------------|------------------------------|
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::code::Code;
use crate::group::join::{JoinAnswer, Joined};
use crate::group::member::Member;
use crate::group::offsets::Offsets;
use crate::group::sync::SyncAnswer;
use crate::group::{Answer, Ticket};

/// Where a group is in its rebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl State {
    /// The name that tools show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// Answers that came due.
pub(crate) type Outbox = Vec<(Ticket, Answer)>;

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    pub state: State,
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol: Option<String>,
    pub leader: Option<String>,
    pub members: BTreeMap<String, Member>,
    /// Member ids given out and not used yet, with the time at which they lapse.
    pub pending: BTreeMap<String, i64>,
    pub offsets: Offsets,
    /// When the join barrier stops waiting.
    pub join_deadline: Option<i64>,
    /// Until when an empty group waits for more members although all have joined, and the most it may.
    pub initial_wait: Option<(i64, i64)>,
    /// When members that have not asked for their assignment are put out.
    pub sync_deadline: Option<i64>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            state: State::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            pending: BTreeMap::new(),
            offsets: Offsets::default(),
            join_deadline: None,
            initial_wait: None,
            sync_deadline: None,
        }
    }
}

impl Group {
    /// The member that holds a static instance id.
    pub(crate) fn static_member(&self, instance: &str) -> Option<&Member> {
        self.members.values().find(|member| member.instance.as_deref() == Some(instance))
    }

    /// # Errors
    /// `FencedInstanceId` when another member holds the instance id; `UnknownMemberId`.
    pub(crate) fn check_member(&self, member: &str, instance: Option<&str>) -> Result<(), Code> {
        if let Some(instance) = instance {
            let holder = self.static_member(instance).ok_or(Code::UnknownMemberId)?;
            if holder.id != member {
                return Err(Code::FencedInstanceId);
            }
        }
        if self.members.contains_key(member) { Ok(()) } else { Err(Code::UnknownMemberId) }
    }

    /// Whether a member that offers these assignors can live with those present.
    pub(crate) fn accepts(&self, protocol_type: &str, offered: &[(String, bytes::Bytes)]) -> bool {
        if self.members.is_empty() {
            return !protocol_type.is_empty() && !offered.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && offered.iter().any(|(name, _)| self.members.values().all(|member| member.offers(name)))
    }

    /// The assignor that most members want among those that all offer; the leader's order decides a tie.
    pub(crate) fn select_protocol(&self) -> Option<String> {
        let common = |name: &str| self.members.values().all(|member| member.offers(name));
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some((wanted, _)) = member.protocols.iter().find(|(name, _)| common(name)) {
                *votes.entry(wanted).or_default() += 1;
            }
        }
        let most = votes.values().max().copied()?;
        let first = self.leader.as_ref().and_then(|id| self.members.get(id));
        let ranked = first.into_iter().chain(self.members.values()).flat_map(|member| &member.protocols);
        ranked.map(|(name, _)| name).find(|name| votes.get(name.as_str()) == Some(&most)).cloned()
    }

    /// Starts a rebalance unless one is being prepared.
    pub(crate) fn rebalance(&mut self, now: i64, initial_delay: i64, out: &mut Outbox) {
        if self.state == State::PreparingRebalance {
            return;
        }
        if self.state == State::CompletingRebalance {
            self.reset_assignments(now, out);
        }
        let limit = now + self.longest_rebalance();
        self.initial_wait = (self.state == State::Empty && initial_delay > 0)
            .then(|| ((now + initial_delay).min(limit), limit));
        self.join_deadline = Some(limit);
        self.sync_deadline = None;
        self.state = State::PreparingRebalance;
        self.complete_if_all_joined(now, out);
    }

    /// Whoever waits for an assignment is sent to join again, with a fresh session: it could not send heartbeats.
    fn reset_assignments(&mut self, now: i64, out: &mut Outbox) {
        for member in self.members.values_mut() {
            member.assignment.clear();
            if let Some(ticket) = member.sync.take() {
                member.touch(now);
                out.push((ticket, Answer::Sync(Err(Code::RebalanceInProgress))));
            }
        }
    }

    /// Longest time that any member allows a rebalance.
    pub(crate) fn longest_rebalance(&self) -> i64 {
        self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or(0)
    }

    /// Ends the barrier when everybody is there and nobody is announced.
    pub(crate) fn complete_if_all_joined(&mut self, now: i64, out: &mut Outbox) {
        let all = self.members.values().all(|member| member.join.is_some());
        if self.state == State::PreparingRebalance
            && all
            && self.pending.is_empty()
            && self.initial_wait.is_none()
        {
            self.complete_join(now, out);
        }
    }

    /// Ends the barrier: members that did not come are put out (static ones stay), a leader is chosen, the generation
    /// rises, everybody is answered.
    pub(crate) fn complete_join(&mut self, now: i64, out: &mut Outbox) {
        self.members.retain(|_, member| member.join.is_some() || member.instance.is_some());
        self.initial_wait = None;
        if self.members.is_empty() {
            self.become_empty();
            return;
        }
        if !self.elect_leader() {
            // Only static members, and none came back: they get as long again.
            self.join_deadline = Some(now + self.longest_rebalance());
            return;
        }
        self.join_deadline = None;
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.protocol = self.select_protocol();
        self.state = State::CompletingRebalance;
        self.sync_deadline = Some(now + self.longest_rebalance());
        let everyone = self.roster();
        let answers: Vec<_> = self
            .members
            .values_mut()
            .filter_map(|member| {
                member.synced = false;
                member.touch(now);
                member.join.take().map(|ticket| (ticket, member.id.clone()))
            })
            .collect();
        for (ticket, id) in answers {
            let members = if self.is_leader(&id) { everyone.clone() } else { Vec::new() };
            out.push((ticket, Answer::Join(self.joined(id, members, false))));
        }
    }

    fn elect_leader(&mut self) -> bool {
        let came = |member: &Member| member.join.is_some();
        if self.leader.as_ref().and_then(|id| self.members.get(id)).is_some_and(came) {
            return true;
        }
        let next = self.members.values().filter(|member| came(member)).min_by_key(|member| member.order);
        self.leader = next.map(|member| member.id.clone()).or_else(|| self.leader.take());
        next_is_present(&self.members, self.leader.as_deref())
    }

    fn become_empty(&mut self) {
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.state = State::Empty;
        self.protocol = None;
        self.leader = None;
        self.join_deadline = None;
        self.initial_wait = None;
        self.sync_deadline = None;
    }

    pub(crate) fn is_leader(&self, id: &str) -> bool {
        self.leader.as_deref() == Some(id)
    }

    /// All members with their subscriptions under the chosen protocol.
    pub(crate) fn roster(&self) -> Vec<(String, Option<String>, bytes::Bytes)> {
        let protocol = self.protocol.clone().unwrap_or_default();
        let mut members: Vec<_> = self.members.values().collect();
        members.sort_unstable_by_key(|member| member.order);
        members.iter().map(|m| (m.id.clone(), m.instance.clone(), m.metadata(&protocol))).collect()
    }

    /// The answer to a join that succeeded.
    pub(crate) fn joined(
        &self,
        member: String,
        members: Vec<(String, Option<String>, bytes::Bytes)>,
        skip_assignment: bool,
    ) -> JoinAnswer {
        JoinAnswer {
            member,
            outcome: Ok(Joined {
                generation: self.generation,
                protocol_type: self.protocol_type.clone(),
                protocol: self.protocol.clone(),
                leader: self.leader.clone().unwrap_or_default(),
                members,
                skip_assignment,
            }),
        }
    }

    /// The assignment of one member, as an answer to its sync.
    pub(crate) fn assignment(&self, member: &str) -> SyncAnswer {
        let member = self.members.get(member).ok_or(Code::UnknownMemberId)?;
        Ok((self.protocol_type.clone(), self.protocol.clone(), member.assignment.clone()))
    }

    /// Puts a member out and lets the rest rebalance.
    pub(crate) fn remove(&mut self, id: &str, now: i64, out: &mut Outbox) {
        let Some(gone) = self.members.remove(id) else { return };
        if let Some(ticket) = gone.join {
            let answer = JoinAnswer { member: id.to_owned(), outcome: Err(Code::UnknownMemberId) };
            out.push((ticket, Answer::Join(answer)));
        }
        if let Some(ticket) = gone.sync {
            out.push((ticket, Answer::Sync(Err(Code::UnknownMemberId))));
        }
        self.changed(now, out);
    }

    /// Somebody has gone, if only a member that was announced: Kafka has the rest rebalance for that too.
    pub(crate) fn changed(&mut self, now: i64, out: &mut Outbox) {
        match self.state {
            State::PreparingRebalance => self.complete_if_all_joined(now, out),
            State::CompletingRebalance | State::Stable => self.rebalance(now, 0, out),
            State::Empty => {}
        }
    }

    /// Everything whose time has come.
    pub(crate) fn tick(&mut self, now: i64, out: &mut Outbox) {
        let lapsed = self.pending.len();
        self.pending.retain(|_, deadline| *deadline > now);
        if self.pending.len() != lapsed {
            self.complete_if_all_joined(now, out);
        }
        if self.initial_wait.is_some_and(|(until, _)| until <= now) {
            self.initial_wait = None;
            self.complete_if_all_joined(now, out);
        }
        let dead: Vec<String> = self
            .members
            .values()
            .filter(|member| !member.waits() && member.session_deadline <= now)
            .map(|member| member.id.clone())
            .collect();
        for id in dead {
            self.remove(&id, now, out);
        }
        if self.join_deadline.is_some_and(|deadline| deadline <= now) {
            self.complete_join(now, out);
        }
        if self.sync_deadline.is_some_and(|deadline| deadline <= now) {
            self.sync_deadline = None;
            let late: BTreeSet<String> = self
                .members
                .values()
                .filter(|member| !member.synced)
                .map(|member| member.id.clone())
                .collect();
            for id in late {
                self.remove(&id, now, out);
            }
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn deadline(&self) -> Option<i64> {
        let sessions = self.members.values().filter(|m| !m.waits()).map(|m| m.session_deadline);
        let pending = self.pending.values().copied();
        let timers = [self.join_deadline, self.initial_wait.map(|(until, _)| until), self.sync_deadline]
            .into_iter()
            .flatten();
        sessions.chain(pending).chain(timers).min()
    }

    /// Topics that the members subscribe to, as far as their subscriptions are those of the consumer protocol.
    pub(crate) fn subscribes(&self, topic: &str) -> bool {
        self.protocol_type.as_deref() == Some("consumer")
            && self.members.values().flat_map(|m| &m.protocols).any(|(_, blob)| names_topic(blob, topic))
    }
}

fn next_is_present(members: &BTreeMap<String, Member>, leader: Option<&str>) -> bool {
    leader.and_then(|id| members.get(id)).is_some_and(|member| member.join.is_some())
}

/// Whether a subscription of the consumer protocol (version, then an array of strings) lists `topic`.
fn names_topic(blob: &[u8], topic: &str) -> bool {
    let Some(count) = blob.get(2..6) else { return false };
    let count = i32::from_be_bytes([count[0], count[1], count[2], count[3]]);
    let mut rest = &blob[6..];
    for _ in 0..count {
        let [a, b, tail @ ..] = rest else { return false };
        let length = usize::from(u16::from_be_bytes([*a, *b]));
        let Some(name) = tail.get(..length) else { return false };
        if name == topic.as_bytes() {
            return true;
        }
        rest = &tail[length..];
    }
    false
}
