//! JoinGroup: who takes part in the next generation.

use bytes::Bytes;

use crate::code::Code;
use crate::group::member::Member;
use crate::group::registry::{GroupSettings, Groups};
use crate::group::state::{Group, Outbox, State};
use crate::group::{Answer, Ticket};

/// A JoinGroup request, whatever its version.
#[derive(Clone, Debug)]
pub(crate) struct JoinRequest {
    pub group: String,
    pub member: String,
    pub instance: Option<String>,
    pub client_id: String,
    pub host: String,
    pub session_timeout: i64,
    pub rebalance_timeout: i64,
    pub protocol_type: String,
    pub protocols: Vec<(String, Bytes)>,
    /// Whether a dynamic member must first take the id it is given (v4 and later).
    pub known_id_required: bool,
    /// Whether the client understands `skip_assignment` (v9 and later).
    pub may_skip_assignment: bool,
}

/// A join that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol: Option<String>,
    pub leader: String,
    /// Everybody with subscriptions, for the leader only.
    pub members: Vec<(String, Option<String>, Bytes)>,
    pub skip_assignment: bool,
}

/// The answer to a join; the member id is told with an error too (`MemberIdRequired` gives it out).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinAnswer {
    pub member: String,
    pub outcome: Result<Joined, Code>,
}

impl Groups {
    /// Takes a JoinGroup; its answer appears in the outbox under `ticket`, now or at the end of the barrier.
    pub(crate) fn join(&mut self, request: JoinRequest, ticket: Ticket, now: i64) {
        let member = request.member.clone();
        if let Err((member, code)) =
            self.try_join(request, ticket, now).map_err(|(m, c)| (m.unwrap_or(member), c))
        {
            self.outbox.push((ticket, Answer::Join(JoinAnswer { member, outcome: Err(code) })));
        }
    }

    fn try_join(
        &mut self,
        request: JoinRequest,
        ticket: Ticket,
        now: i64,
    ) -> Result<(), (Option<String>, Code)> {
        let refuse = |code| (None, code);
        if request.group.is_empty() {
            return Err(refuse(Code::InvalidGroupId));
        }
        let settings = self.settings;
        if !(settings.min_session..=settings.max_session).contains(&request.session_timeout) {
            return Err(refuse(Code::InvalidSessionTimeout));
        }
        let known = self.groups.contains_key(&request.group);
        if !known && !request.member.is_empty() {
            return Err(refuse(Code::UnknownMemberId));
        }
        if !known && (request.protocol_type.is_empty() || request.protocols.is_empty()) {
            return Err(refuse(Code::InconsistentGroupProtocol));
        }
        let order = self.next_order();
        let fresh = format!("{}-{}", request.client_id, self.random_id());
        let group = self.groups.entry(request.group.clone()).or_default();
        if !group.accepts(&request.protocol_type, &request.protocols) {
            return Err(refuse(Code::InconsistentGroupProtocol));
        }
        let mut step = Step { group, out: &mut self.outbox, settings, ticket, now, order };
        match (request.member.is_empty(), request.instance.clone()) {
            (true, Some(instance)) => step.static_newcomer(request, &instance, fresh).map_err(refuse),
            (true, None) => step.newcomer(request, fresh),
            (false, _) => step.known(request).map_err(refuse),
        }
    }
}

/// One join being applied to its group.
struct Step<'a> {
    group: &'a mut Group,
    out: &'a mut Outbox,
    settings: GroupSettings,
    ticket: Ticket,
    now: i64,
    order: u64,
}

impl Step<'_> {
    fn newcomer(&mut self, request: JoinRequest, id: String) -> Result<(), (Option<String>, Code)> {
        if self.group.members.len() + self.group.pending.len() >= self.settings.max_size {
            return Err((None, Code::GroupMaxSizeReached));
        }
        if request.known_id_required {
            self.group.pending.insert(id.clone(), self.now + request.session_timeout);
            return Err((Some(id), Code::MemberIdRequired));
        }
        self.add(request, id);
        Ok(())
    }

    fn static_newcomer(&mut self, request: JoinRequest, instance: &str, id: String) -> Result<(), Code> {
        let Some(old) = self.group.static_member(instance).map(|member| member.id.clone()) else {
            if self.group.members.len() >= self.settings.max_size {
                return Err(Code::GroupMaxSizeReached);
            }
            self.add(request, id);
            return Ok(());
        };
        let old_leader = self.group.leader.clone();
        self.replace(&old, &id);
        self.update(&request, &id);
        match self.group.state {
            State::Stable if self.group.select_protocol() == self.group.protocol => {
                self.answer_unchanged(&request, id, old_leader);
            }
            State::PreparingRebalance => {
                self.wait(&id);
                // It may be the one that the barrier has been waiting for.
                self.group.complete_if_all_joined(self.now, self.out);
            }
            State::Stable | State::CompletingRebalance | State::Empty => {
                self.wait(&id);
                self.group.rebalance(self.now, self.settings.initial_delay, self.out);
            }
        }
        Ok(())
    }

    /// A static member came back and nothing changes for the others.
    fn answer_unchanged(&mut self, request: &JoinRequest, id: String, old_leader: Option<String>) {
        let skip = self.group.is_leader(&id) && request.may_skip_assignment;
        let members = if skip { self.group.roster() } else { Vec::new() };
        let mut answer = self.group.joined(id.clone(), members, skip);
        if let (Ok(joined), false) = (&mut answer.outcome, request.may_skip_assignment) {
            // An older client would assign anew if it found itself the leader.
            joined.leader = old_leader.unwrap_or_default();
        }
        if let Some(member) = self.group.members.get_mut(&id) {
            member.touch(self.now);
        }
        self.out.push((self.ticket, Answer::Join(answer)));
    }

    /// Gives a static member a new id; whoever waits under the old one is fenced.
    fn replace(&mut self, old: &str, new: &str) {
        let Some(mut member) = self.group.members.remove(old) else { return };
        if let Some(ticket) = member.join.take() {
            let fenced = JoinAnswer { member: old.to_owned(), outcome: Err(Code::FencedInstanceId) };
            self.out.push((ticket, Answer::Join(fenced)));
        }
        if let Some(ticket) = member.sync.take() {
            self.out.push((ticket, Answer::Sync(Err(Code::FencedInstanceId))));
        }
        if self.group.is_leader(old) {
            self.group.leader = Some(new.to_owned());
        }
        new.clone_into(&mut member.id);
        self.group.members.insert(new.to_owned(), member);
    }

    fn known(&mut self, request: JoinRequest) -> Result<(), Code> {
        let id = request.member.clone();
        if request.instance.is_none() && self.group.pending.remove(&id).is_some() {
            self.add(request, id);
            return Ok(());
        }
        self.group.check_member(&id, request.instance.as_deref())?;
        let member = self.group.members.get(&id).ok_or(Code::UnknownMemberId)?;
        let changed = member.protocols != request.protocols;
        let repeated = match self.group.state {
            State::Empty => return Err(Code::UnknownMemberId),
            State::PreparingRebalance => false,
            State::CompletingRebalance => !changed,
            State::Stable => !changed && !self.group.is_leader(&id),
        };
        if repeated {
            let members = if self.group.is_leader(&id) { self.group.roster() } else { Vec::new() };
            let answer = self.group.joined(id, members, false);
            self.out.push((self.ticket, Answer::Join(answer)));
            return Ok(());
        }
        self.update(&request, &id);
        self.wait(&id);
        self.group.rebalance(self.now, self.settings.initial_delay, self.out);
        self.group.complete_if_all_joined(self.now, self.out);
        Ok(())
    }

    fn add(&mut self, request: JoinRequest, id: String) {
        if self.group.members.is_empty() {
            self.group.protocol_type = Some(request.protocol_type.clone());
        }
        let member = Member {
            id: id.clone(),
            instance: request.instance.clone(),
            client_id: request.client_id.clone(),
            host: request.host.clone(),
            session_timeout: request.session_timeout,
            rebalance_timeout: request.rebalance_timeout,
            protocols: request.protocols.clone(),
            assignment: Bytes::new(),
            join: None,
            sync: None,
            synced: false,
            session_deadline: self.now + request.session_timeout,
            order: self.order,
        };
        self.group.members.insert(id.clone(), member);
        self.group.leader.get_or_insert_with(|| id.clone());
        self.wait(&id);
        if let Some((until, limit)) = &mut self.group.initial_wait {
            *until = (self.now + self.settings.initial_delay).min(*limit);
        }
        self.group.rebalance(self.now, self.settings.initial_delay, self.out);
        self.group.complete_if_all_joined(self.now, self.out);
    }

    fn update(&mut self, request: &JoinRequest, id: &str) {
        if let Some(member) = self.group.members.get_mut(id) {
            member.protocols.clone_from(&request.protocols);
            member.session_timeout = request.session_timeout;
            member.rebalance_timeout = request.rebalance_timeout;
            member.client_id.clone_from(&request.client_id);
            member.host.clone_from(&request.host);
        }
    }

    /// Notes that a member waits for the barrier. A repeated join replaces the first, which is answered so that the
    /// client joins again.
    fn wait(&mut self, id: &str) {
        let Some(member) = self.group.members.get_mut(id) else { return };
        if let Some(earlier) = member.join.replace(self.ticket) {
            let answer = JoinAnswer { member: id.to_owned(), outcome: Err(Code::RebalanceInProgress) };
            self.out.push((earlier, Answer::Join(answer)));
        }
    }
}
