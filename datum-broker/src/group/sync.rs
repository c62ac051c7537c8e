//! SyncGroup, Heartbeat and LeaveGroup: the assignment, the signs of life, the farewell.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::code::Code;
use crate::group::registry::Groups;
use crate::group::state::{Group, Outbox, State};
use crate::group::{Answer, Ticket};

/// A SyncGroup request, whatever its version.
#[derive(Clone, Debug)]
pub(crate) struct SyncRequest {
    pub group: String,
    pub member: String,
    pub instance: Option<String>,
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol: Option<String>,
    /// By member id; only the leader's counts.
    pub assignments: BTreeMap<String, Bytes>,
}

/// Protocol type, protocol and the member's assignment.
pub(crate) type SyncAnswer = Result<(Option<String>, Option<String>, Bytes), Code>;

impl Groups {
    /// Takes a SyncGroup; its answer appears in the outbox under `ticket`, now or when the leader has assigned.
    pub(crate) fn sync(&mut self, request: SyncRequest, ticket: Ticket, now: i64) {
        let Self { groups, outbox, .. } = self;
        let outcome = match groups.get_mut(&request.group) {
            Some(group) => group.sync(request, ticket, now, outbox),
            None => Err(Code::UnknownMemberId),
        };
        if let Err(code) = outcome {
            outbox.push((ticket, Answer::Sync(Err(code))));
        }
    }

    /// # Errors
    /// `UnknownMemberId`, `FencedInstanceId`, `IllegalGeneration`; `RebalanceInProgress` asks the member to join.
    pub(crate) fn heartbeat(
        &mut self,
        group: &str,
        member: &str,
        instance: Option<&str>,
        generation: i32,
        now: i64,
    ) -> Result<(), Code> {
        let group = self.groups.get_mut(group).ok_or(Code::UnknownMemberId)?;
        group.check_member(member, instance)?;
        if generation != group.generation {
            return Err(Code::IllegalGeneration);
        }
        if group.state == State::Empty {
            return Err(Code::UnknownMemberId);
        }
        if let Some(member) = group.members.get_mut(member) {
            member.touch(now);
        }
        if group.state == State::PreparingRebalance { Err(Code::RebalanceInProgress) } else { Ok(()) }
    }

    /// Takes one member out; its name is the member id, or the instance id with an empty member id.
    ///
    /// # Errors
    /// `UnknownMemberId`, `FencedInstanceId`.
    pub(crate) fn leave(
        &mut self,
        group: &str,
        member: &str,
        instance: Option<&str>,
        now: i64,
    ) -> Result<(), Code> {
        let Self { groups, outbox, .. } = self;
        let group = groups.get_mut(group).ok_or(Code::UnknownMemberId)?;
        let id = match instance {
            Some(instance) => {
                let holder = group.static_member(instance).ok_or(Code::UnknownMemberId)?;
                if !member.is_empty() && holder.id != member {
                    return Err(Code::FencedInstanceId);
                }
                holder.id.clone()
            }
            None => member.to_owned(),
        };
        if group.pending.remove(&id).is_some() {
            group.changed(now, outbox);
            return Ok(());
        }
        if !group.members.contains_key(&id) {
            return Err(Code::UnknownMemberId);
        }
        group.remove(&id, now, outbox);
        Ok(())
    }
}

impl Group {
    fn sync(&mut self, request: SyncRequest, ticket: Ticket, now: i64, out: &mut Outbox) -> Result<(), Code> {
        let id = request.member.as_str();
        self.check_member(id, request.instance.as_deref())?;
        if request.generation != self.generation {
            return Err(Code::IllegalGeneration);
        }
        let differs = |told: &Option<String>, ours: &Option<String>| told.is_some() && told != ours;
        if differs(&request.protocol_type, &self.protocol_type) || differs(&request.protocol, &self.protocol)
        {
            return Err(Code::InconsistentGroupProtocol);
        }
        match self.state {
            State::Empty => return Err(Code::UnknownMemberId),
            State::PreparingRebalance => return Err(Code::RebalanceInProgress),
            State::CompletingRebalance | State::Stable => {}
        }
        let leads = self.is_leader(id);
        if let Some(member) = self.members.get_mut(id) {
            member.synced = true;
            member.touch(now);
            if self.state == State::CompletingRebalance
                && let Some(earlier) = member.sync.replace(ticket)
            {
                out.push((earlier, Answer::Sync(Err(Code::RebalanceInProgress))));
            }
        }
        if self.state == State::Stable {
            out.push((ticket, Answer::Sync(self.assignment(id))));
        } else if leads {
            self.assign(request.assignments, now, out);
        }
        if self.members.values().all(|member| member.synced) {
            self.sync_deadline = None;
        }
        Ok(())
    }

    /// The leader has spoken: everybody who waits gets an assignment, an empty one where it named none.
    fn assign(&mut self, mut assignments: BTreeMap<String, Bytes>, now: i64, out: &mut Outbox) {
        self.state = State::Stable;
        let waiting: Vec<_> = self
            .members
            .values_mut()
            .filter_map(|member| {
                member.assignment = assignments.remove(&member.id).unwrap_or_default();
                member.touch(now);
                member.sync.take().map(|ticket| (ticket, member.id.clone()))
            })
            .collect();
        for (ticket, id) in waiting {
            out.push((ticket, Answer::Sync(self.assignment(&id))));
        }
    }
}
