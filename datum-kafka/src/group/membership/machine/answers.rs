//! What each answer of the coordinator does.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use super::{Confirm, Coordinator, Membership, State, Then};
use crate::{
    group::{
        Assignments, GroupError, GroupMember, GroupView, LostReason, Received,
        membership::message::{Assigned, Event, JoinAnswer, Request, Response, SyncAnswer, Trouble},
    },
    wire::ErrorCode,
};

impl Membership {
    pub(super) fn on_coordinator(&mut self, now: Instant, response: Response) {
        self.coordinator = Coordinator::Unknown;
        match response {
            Response::Coordinator(node) => {
                self.coordinator = Coordinator::Node(node);
                self.retry.go_on();
                self.heartbeat.due = self.heartbeat.due.min(now);
            }
            Response::Trouble(Trouble::Code { code, .. }) => match code {
                ErrorCode::GroupAuthorizationFailed | ErrorCode::InvalidGroupId => {
                    self.fail(self.fatal("FindCoordinator", code));
                }
                _ => self.retry.later(now),
            },
            _ => self.retry.later(now),
        }
    }

    pub(super) fn on_heartbeat(&mut self, now: Instant, response: Response) {
        let asked = self.heartbeat.confirm == Confirm::Sent;
        match response {
            Response::Alive => {
                self.alive(now);
                self.retry.good();
                if asked && matches!(self.state, State::Stable | State::Draining { .. }) {
                    self.heartbeat.confirm = Confirm::No;
                    self.tell(Event::Confirmed { generation: self.generation });
                    return;
                }
            }
            Response::Trouble(Trouble::Code { code, .. }) => self.on_heartbeat_code(now, code),
            _ => {
                self.forget_coordinator(now);
                self.retry.later(now);
            }
        }
        if asked {
            self.heartbeat.confirm = Confirm::Wanted;
        }
    }

    pub(super) fn on_heartbeat_code(&mut self, now: Instant, code: ErrorCode) {
        match code {
            ErrorCode::RebalanceInProgress => {
                self.alive(now);
                self.rejoin.get_or_insert("the group is rebalancing");
            }
            ErrorCode::IllegalGeneration => self.lose(now, LostReason::IllegalGeneration),
            ErrorCode::UnknownMemberId => self.lose(now, LostReason::UnknownMember),
            ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                self.forget_coordinator(now);
                self.retry.soon(now);
            }
            code if code.is_retriable() => {
                self.retry.later(now);
                self.heartbeat.due = self.retry.at().unwrap_or(now);
            }
            ErrorCode::FencedInstanceId => self.fail(self.fenced()),
            code => self.fail(self.fatal("Heartbeat", code)),
        }
    }

    pub(super) fn on_join(&mut self, now: Instant, sent: Instant, response: Response) {
        self.resume_session(now, sent);
        self.state = State::Preparing;
        match response {
            Response::Joined(answer) => self.joined(now, answer),
            Response::Trouble(Trouble::Code { code, member_id }) => self.on_join_code(now, code, member_id),
            _ => {
                self.forget_coordinator(now);
                self.retry.later(now);
            }
        }
    }

    pub(super) fn on_join_code(&mut self, now: Instant, code: ErrorCode, member_id: Option<String>) {
        match code {
            ErrorCode::MemberIdRequired => match member_id.filter(|id| !id.is_empty()) {
                Some(id) => {
                    // At once (KIP-394), unless a broker should ask for one again and again.
                    if !std::mem::replace(&mut self.member_id, id).is_empty() {
                        self.retry.later(now);
                    }
                }
                None => self.fail(self.fatal("JoinGroup", code)),
            },
            ErrorCode::UnknownMemberId => {
                self.lose(now, LostReason::UnknownMember);
                self.retry.soon(now);
            }
            ErrorCode::IllegalGeneration => {
                self.lose(now, LostReason::IllegalGeneration);
                self.retry.soon(now);
            }
            ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                self.forget_coordinator(now);
                self.retry.soon(now);
            }
            ErrorCode::RebalanceInProgress => self.retry.later(now),
            code if code.is_retriable() => self.retry.later(now),
            code => self.fail(self.fatal("JoinGroup", code)),
        }
    }

    pub(super) fn joined(&mut self, now: Instant, answer: JoinAnswer) {
        if self.config.assignor(&answer.protocol).is_none() {
            self.say_goodbye();
            let (group, chosen) = (self.config.group.clone(), answer.protocol);
            return self.fail(GroupError::UnknownAssignor { group, chosen });
        }
        self.retry.good();
        self.rejoin = None;
        self.leader = answer.leader == answer.member_id;
        self.member_id = answer.member_id;
        self.generation = answer.generation;
        self.protocol = Some(answer.protocol);
        self.members = answer.members.iter().map(|member| member.id.clone()).collect();
        self.heartbeat.call = None;
        self.heartbeat.due = now + self.config.heartbeat_every();
        self.alive(now);
        if !self.leader {
            return self.sync(Assignments::new());
        }
        let wanted: BTreeSet<Arc<str>> =
            answer.members.iter().flat_map(|member| member.topics.iter().cloned()).collect();
        let unknown: BTreeSet<_> =
            wanted.iter().filter(|topic| !self.counts.contains_key(*topic)).cloned().collect();
        if answer.skip_assignment {
            self.watch(wanted);
            self.sync(Assignments::new());
        } else if unknown.is_empty() {
            self.decide(now, answer.members);
        } else {
            self.state =
                State::Assigning { members: answer.members, until: now + self.config.request_timeout };
            self.tell(Event::NeedMetadata { topics: wanted });
        }
    }

    pub(super) fn decide(&mut self, now: Instant, members: Vec<GroupMember>) {
        self.watch(members.iter().flat_map(|member| member.topics.iter().cloned()).collect());
        let view = GroupView::new(self.decided_on.clone(), members, self.generation);
        let decision = self.assignor_in_use().map(|assignor| assignor.assign(&view));
        match decision {
            Some(Ok(assignments)) => self.sync(assignments),
            Some(Err(refusal)) => self.refuse(refusal),
            None => self.lose(now, LostReason::Ended),
        }
    }

    pub(super) fn sync(&mut self, assignments: Assignments) {
        let request = Request::Sync {
            member_id: self.member_id.clone(),
            generation: self.generation,
            protocol: self.protocol.clone().unwrap_or_default(),
            assignments,
        };
        // The coordinator holds SyncGroup back until the leader has decided.
        let call = self.send(request, self.held_back());
        self.state = State::Syncing { call };
    }

    pub(super) fn on_sync(&mut self, now: Instant, response: Response) {
        self.state = State::Preparing;
        match response {
            Response::Synced(answer) => self.synced(now, answer),
            Response::Trouble(Trouble::Code { code, .. }) => match code {
                ErrorCode::RebalanceInProgress => {
                    self.alive(now);
                    self.rejoin.get_or_insert("the group is rebalancing");
                }
                ErrorCode::IllegalGeneration => self.lose(now, LostReason::IllegalGeneration),
                ErrorCode::UnknownMemberId => self.lose(now, LostReason::UnknownMember),
                ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                    self.forget_coordinator(now);
                    self.retry.soon(now);
                }
                code if code.is_retriable() => self.retry.later(now),
                code => self.fail(self.fatal("SyncGroup", code)),
            },
            _ => {
                self.forget_coordinator(now);
                self.retry.later(now);
            }
        }
    }

    pub(super) fn synced(&mut self, now: Instant, answer: SyncAnswer) {
        self.alive(now);
        self.retry.good();
        let mut partitions = answer.assignment.partitions;
        partitions.retain(|tp| tp.partition >= 0 && self.config.topics.contains(&tp.topic));
        let user_data = answer.assignment.user_data;
        let received = Received {
            member_id: &self.member_id,
            generation: self.generation,
            partitions: &partitions,
            user_data: &user_data,
            members: if self.leader { &self.members } else { &[] },
        };
        if let Some(Err(refusal)) = self.assignor_in_use().map(|assignor| assignor.accept(&received)) {
            return self.refuse(refusal);
        }
        let added: BTreeSet<_> = partitions.difference(&self.owned).cloned().collect();
        let revoked: BTreeSet<_> = self.owned.difference(&partitions).cloned().collect();
        self.owned.extend(added.iter().cloned());
        self.assignment_data = user_data.clone();
        self.state = State::Stable;
        self.tell(Event::Assigned(Assigned {
            generation: self.generation,
            member_id: self.member_id.clone(),
            protocol: self.protocol.clone().unwrap_or_default(),
            leader: self.leader,
            partitions,
            added,
            user_data,
        }));
        self.tell(Event::CommitAs { generation: self.generation, member_id: self.member_id.clone() });
        if !revoked.is_empty() && self.leave_by.is_none() {
            self.rejoin = Some("partitions have been given up");
            self.drain(now, revoked, Then::Join);
        }
    }
}
