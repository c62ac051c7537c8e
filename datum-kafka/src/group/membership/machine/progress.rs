//! What happens by itself: joining, heartbeats, drains, leaving, losing.

use std::{collections::BTreeSet, time::Instant};

use bytes::Bytes;

use super::{Confirm, Coordinator, DrainId, Membership, State, Then};
use crate::group::{
    GroupError, Joining, LostReason, Rebalance, Refusal, TopicPartition,
    membership::message::{Event, Offer, Request, Revoke},
};

impl Membership {
    pub(super) fn advance(&mut self, now: Instant) {
        self.advance_leave(now);
        match self.state {
            State::Stable if self.rejoin.is_some() => {
                self.state = State::Preparing;
                self.prepare(now);
            }
            State::Preparing => self.prepare(now),
            _ => {}
        }
        if self.lives() && self.coordinator == Coordinator::Unknown && self.retry.passed(now) {
            let call = self.send_to(None, Request::FindCoordinator, self.config.request_timeout);
            self.coordinator = Coordinator::Finding(call);
        }
        let wanted = now >= self.heartbeat.due || self.heartbeat.confirm == Confirm::Wanted;
        if self.beats() && wanted && self.heartbeat.call.is_none() && self.node().is_some() {
            self.beat(now);
        }
    }

    pub(super) fn prepare(&mut self, now: Instant) {
        let cooperative = self.config.rebalance() == Rebalance::Cooperative;
        let goes = |tp: &&TopicPartition| !cooperative || !self.config.topics.contains(&tp.topic);
        let revoked: BTreeSet<_> = self.owned.iter().filter(goes).cloned().collect();
        if !revoked.is_empty() {
            return self.drain(now, revoked, Then::Join);
        }
        if self.node().is_none() || !self.retry.passed(now) {
            return;
        }
        let joining = Joining {
            member_id: &self.member_id,
            generation: self.generation,
            owned: &self.owned,
            topics: &self.config.topics,
            assignment_data: &self.assignment_data,
        };
        let offers = self
            .config
            .assignors
            .iter()
            .map(|assignor| Offer {
                protocol: assignor.name().to_owned(),
                topics: self.config.topics.clone(),
                owned: self.owned.clone(),
                generation: self.generation,
                user_data: assignor.subscription_data(&joining),
                rack: self.config.rack.clone(),
            })
            .collect();
        let reason = self.rejoin.unwrap_or("rejoin");
        let request = Request::Join { member_id: self.member_id.clone(), offers, reason };
        let call = self.send(request, self.held_back());
        self.heartbeat.call = None;
        if self.heartbeat.confirm == Confirm::Sent {
            self.heartbeat.confirm = Confirm::Wanted;
        }
        self.state = State::Joining { call, sent: now };
    }

    pub(super) fn beat(&mut self, now: Instant) {
        let request = Request::Heartbeat { member_id: self.member_id.clone(), generation: self.generation };
        let call = self.send(request, self.config.request_timeout.min(self.config.session_timeout));
        self.heartbeat.call = Some(call);
        self.heartbeat.due = now + self.config.heartbeat_every();
        if self.heartbeat.confirm == Confirm::Wanted {
            self.heartbeat.confirm = Confirm::Sent;
        }
    }

    pub(super) fn drain(&mut self, now: Instant, partitions: BTreeSet<TopicPartition>, then: Then) {
        self.drains += 1;
        let drain = DrainId(self.drains);
        let mut deadline = now + self.config.drain_limit();
        if let Some(by) = self.leave_by {
            deadline = deadline.min(by);
        }
        self.tell(Event::Revoke(Revoke { drain, partitions: partitions.clone(), deadline }));
        self.state = State::Draining { drain, partitions, deadline, then };
    }

    pub(super) fn end_drain(&mut self, now: Instant) {
        if let State::Draining { partitions, then, .. } = std::mem::replace(&mut self.state, State::Preparing)
        {
            self.owned.retain(|tp| !partitions.contains(tp));
            self.tell(Event::Revoked { partitions });
            if then == Then::Leave {
                self.goodbye(now);
            }
        }
    }

    /// Leaving waits for a state in which what is owned can still be committed, but never past its own deadline.
    pub(super) fn advance_leave(&mut self, now: Instant) {
        let Some(by) = self.leave_by else { return };
        match &self.state {
            State::Closed | State::Failed | State::Leaving { .. } => {}
            State::Draining { then: Then::Leave, .. } => {}
            State::Stable | State::Draining { .. } if !self.owned.is_empty() && now < by => {
                let all = self.owned.clone();
                self.drain(now, all, Then::Leave);
            }
            State::Joining { .. } | State::Assigning { .. } | State::Syncing { .. }
                if !self.owned.is_empty() && now < by => {}
            _ => self.goodbye(now),
        }
    }

    pub(super) fn goodbye(&mut self, now: Instant) {
        if !self.owned.is_empty() {
            self.lose(now, LostReason::Ended);
        }
        let known = !self.member_id.is_empty() && self.node().is_some();
        if known && (self.config.instance_id.is_none() || self.config.leave_static) {
            let call =
                self.send(Request::Leave { member_id: self.member_id.clone() }, self.config.request_timeout);
            self.session_end = None;
            self.generation = -1;
            self.state = State::Leaving { call };
        } else {
            self.close();
        }
    }

    pub(super) fn close(&mut self) {
        self.session_end = None;
        self.generation = -1;
        self.state = State::Closed;
        self.tell(Event::Left);
    }

    /// The member is out of its generation: everything it owned is gone, uncommitted.
    pub(super) fn lose(&mut self, now: Instant, reason: LostReason) {
        if reason == LostReason::UnknownMember {
            self.member_id.clear();
        }
        let was_member = self.generation >= 0;
        self.generation = -1;
        self.session_end = None;
        self.protocol = None;
        self.leader = false;
        self.assignment_data = Bytes::new();
        self.heartbeat.call = None;
        if self.heartbeat.confirm == Confirm::Sent {
            self.heartbeat.confirm = Confirm::Wanted;
        }
        let partitions = std::mem::take(&mut self.owned);
        if was_member || !partitions.is_empty() {
            self.tell(Event::Lost { partitions, reason });
        }
        let leaving = matches!(self.state, State::Draining { then: Then::Leave, .. });
        if self.lives() {
            self.rejoin.get_or_insert("the generation was lost");
            self.state = State::Preparing;
        }
        if leaving {
            self.goodbye(now);
        }
    }

    pub(super) fn fail(&mut self, error: GroupError) {
        if self.generation >= 0 || !self.owned.is_empty() {
            let partitions = std::mem::take(&mut self.owned);
            self.tell(Event::Lost { partitions, reason: LostReason::Ended });
        }
        self.generation = -1;
        self.session_end = None;
        self.heartbeat.call = None;
        self.state = State::Failed;
        self.tell(Event::Failed(error));
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.say_goodbye();
        let assignor = self.protocol.clone().unwrap_or_default();
        self.fail(GroupError::Refused { group: self.config.group.clone(), assignor, refusal });
    }

    /// Leaves without waiting, so that the others need not wait for this member's session to end.
    pub(super) fn say_goodbye(&mut self) {
        if self.config.instance_id.is_none() && self.node().is_some() {
            self.send(Request::Leave { member_id: self.member_id.clone() }, self.config.request_timeout);
        }
    }
}
