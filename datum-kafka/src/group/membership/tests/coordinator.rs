//! A model of the coordinator, against which machines are run.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
pub(super) struct Coordinator {
    pub(super) generation: i32,
    pub(super) state: GroupState,
    members: BTreeMap<String, Registered>,
    next_id: u64,
    rebalance_by: Option<Instant>,
    leader: String,
    assigned: crate::group::Assignments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum GroupState {
    #[default]
    Empty,
    Preparing,
    Completing,
    Stable,
}

pub(super) struct Registered {
    seen: Instant,
    offer: Offer,
    joining: Option<Ticket>,
    syncing: Option<Ticket>,
}

/// Which member's which call is to be answered.
pub(super) type Ticket = (usize, CallId);

pub(super) type Answers = Vec<(Ticket, Response)>;

pub(super) fn code(code: ErrorCode) -> Response {
    Response::Trouble(Trouble::code(code))
}

impl Coordinator {
    fn prepare(&mut self, now: Instant, answers: &mut Answers) {
        for member in self.members.values_mut() {
            if let Some(ticket) = member.syncing.take() {
                answers.push((ticket, code(ErrorCode::RebalanceInProgress)));
            }
        }
        if self.state != GroupState::Preparing {
            self.state = GroupState::Preparing;
            self.rebalance_by = Some(now + Duration::from_secs(10));
        }
    }

    pub(super) fn request(&mut self, now: Instant, ticket: Ticket, request: Request, answers: &mut Answers) {
        match request {
            Request::FindCoordinator => answers.push((ticket, Response::Coordinator(1))),
            Request::Join { member_id, offers, .. } => self.join(now, ticket, member_id, offers, answers),
            Request::Sync { member_id, generation, assignments, .. } => {
                let state = self.state;
                let current = self.generation;
                let Some(member) = self.members.get_mut(&member_id) else {
                    return answers.push((ticket, code(ErrorCode::UnknownMemberId)));
                };
                member.seen = now;
                if generation != current {
                    return answers.push((ticket, code(ErrorCode::IllegalGeneration)));
                }
                match state {
                    GroupState::Completing => {
                        member.syncing = Some(ticket);
                        if member_id == self.leader {
                            self.assigned = assignments;
                            self.state = GroupState::Stable;
                            for (id, member) in &mut self.members {
                                if let Some(ticket) = member.syncing.take() {
                                    let assignment = self.assigned.get(id).cloned().unwrap_or_default();
                                    answers.push((ticket, Response::Synced(SyncAnswer { assignment })));
                                }
                            }
                        }
                    }
                    GroupState::Stable => {
                        let assignment = self.assigned.get(&member_id).cloned().unwrap_or_default();
                        answers.push((ticket, Response::Synced(SyncAnswer { assignment })));
                    }
                    _ => answers.push((ticket, code(ErrorCode::RebalanceInProgress))),
                }
            }
            Request::Heartbeat { member_id, generation } => {
                let answer = match self.commit(now, &member_id, generation) {
                    Ok(()) if self.state == GroupState::Preparing => code(ErrorCode::RebalanceInProgress),
                    Ok(()) | Err(ErrorCode::RebalanceInProgress) => Response::Alive,
                    Err(refused) => code(refused),
                };
                answers.push((ticket, answer));
            }
            Request::Leave { member_id } => {
                self.remove(now, &member_id, answers);
                answers.push((ticket, Response::Left));
            }
        }
        self.complete(now, answers);
    }

    fn join(&mut self, now: Instant, ticket: Ticket, id: String, offers: Vec<Offer>, answers: &mut Answers) {
        if id.is_empty() {
            self.next_id += 1;
            let given = Trouble::Code {
                code: ErrorCode::MemberIdRequired,
                member_id: Some(format!("m{:04}", self.next_id)),
            };
            return answers.push((ticket, Response::Trouble(given)));
        }
        let Some(offer) = offers.into_iter().next() else { return };
        // An id that was given out and never used, or one that was thrown out: only the counter tells.
        let number: u64 = id[1..].parse().unwrap_or(0);
        let known = self.members.contains_key(&id) || number == self.next_id || self.generation == 0;
        if !known {
            return answers.push((ticket, code(ErrorCode::UnknownMemberId)));
        }
        self.members.insert(id, Registered { seen: now, offer, joining: Some(ticket), syncing: None });
        self.prepare(now, answers);
    }

    /// Whether a commit in that name would be taken.
    pub(super) fn commit(&mut self, now: Instant, id: &str, generation: i32) -> Result<(), ErrorCode> {
        let (current, state) = (self.generation, self.state);
        let member = self.members.get_mut(id).ok_or(ErrorCode::UnknownMemberId)?;
        member.seen = now;
        match (generation == current, state) {
            (false, _) => Err(ErrorCode::IllegalGeneration),
            (true, GroupState::Completing) => Err(ErrorCode::RebalanceInProgress),
            (true, _) => Ok(()),
        }
    }

    fn remove(&mut self, now: Instant, id: &str, answers: &mut Answers) {
        if let Some(member) = self.members.remove(id) {
            for ticket in [member.joining, member.syncing].into_iter().flatten() {
                answers.push((ticket, code(ErrorCode::UnknownMemberId)));
            }
            self.prepare(now, answers);
        }
    }

    pub(super) fn tick(&mut self, now: Instant, session: Duration, answers: &mut Answers) {
        let silent: Vec<String> = self
            .members
            .iter()
            .filter(|(_, member)| {
                member.joining.is_none() && member.syncing.is_none() && now > member.seen + session
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in silent {
            self.remove(now, &id, answers);
        }
        self.complete(now, answers);
    }

    fn complete(&mut self, now: Instant, answers: &mut Answers) {
        if self.state != GroupState::Preparing {
            return;
        }
        let late = self.rebalance_by.is_some_and(|by| now >= by);
        if late {
            self.members.retain(|_, member| member.joining.is_some());
        }
        if self.members.is_empty() {
            self.state = GroupState::Empty;
            return;
        }
        if self.members.values().all(|member| member.joining.is_some()) {
            self.generation += 1;
            self.state = GroupState::Completing;
            self.leader = self.members.keys().next().cloned().unwrap_or_default();
            let members: Vec<GroupMember> = self
                .members
                .iter()
                .map(|(id, member)| GroupMember {
                    id: id.clone(),
                    topics: member.offer.topics.clone(),
                    owned: member.offer.owned.iter().cloned().collect(),
                    generation: member.offer.generation,
                    ..GroupMember::default()
                })
                .collect();
            for (id, member) in &mut self.members {
                member.seen = now;
                let Some(ticket) = member.joining.take() else { continue };
                let leads = *id == self.leader;
                let answer = JoinAnswer {
                    member_id: id.clone(),
                    generation: self.generation,
                    protocol: member.offer.protocol.clone(),
                    leader: self.leader.clone(),
                    skip_assignment: false,
                    members: if leads { members.clone() } else { Vec::new() },
                };
                answers.push((ticket, Response::Joined(answer)));
            }
        }
    }
}
