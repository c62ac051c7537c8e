//! The machine alone, answered by hand; and whole groups in virtual time against a model of the coordinator.

mod codes;
mod coordinator;
mod world;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Assigned, CallId, Event, JoinAnswer, Membership, MembershipConfig, Offer, Output, Request, Response,
    Revoke, SyncAnswer, Trouble,
};
use crate::{
    group::{Assignor, CooperativeSticky, GroupError, GroupMember, MemberAssignment, Range, TopicPartition},
    wire::ErrorCode,
};

/// One machine, its time, and what it said and was not yet asked about.
struct Alone {
    machine: Membership,
    now: Instant,
    sent: Vec<(CallId, Request)>,
    told: Vec<Event>,
}

impl Alone {
    fn new(assignor: Arc<dyn Assignor>) -> Self {
        Self::with(|config| config.assignors = vec![assignor])
    }

    fn with(set: impl FnOnce(&mut MembershipConfig)) -> Self {
        let mut config = MembershipConfig::new("g", ["t"]);
        set(&mut config);
        let now = Instant::now();
        let mut alone =
            Self { machine: Membership::new(config, now), now, sent: Vec::new(), told: Vec::new() };
        alone.machine.metadata(now, [("t".into(), 4)].into());
        alone.machine.start(now);
        alone.take();
        alone
    }

    fn take(&mut self) {
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Send { call, request, .. } => self.sent.push((call, request)),
                Output::Tell(event) => self.told.push(event),
            }
        }
    }

    /// Lets time pass up to `by` from now, as a shell would.
    fn pass(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(at) = self.machine.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.machine.tick(self.now);
            self.take();
        }
        self.now = end;
    }

    fn answer(&mut self, wanted: fn(&Request) -> bool, response: Response) -> Request {
        let found = self.sent.iter().position(|(_, request)| wanted(request));
        let at = found.unwrap_or_else(|| panic!("not among {:?}", self.sent));
        let (call, request) = self.sent.remove(at);
        self.machine.answered(self.now, call, response);
        self.take();
        request
    }

    fn refuse(&mut self, wanted: fn(&Request) -> bool, code: ErrorCode) -> Request {
        self.answer(wanted, Response::Trouble(Trouble::code(code)))
    }

    /// Answers FindCoordinator and JoinGroup as a follower of `generation`, up to SyncGroup.
    fn follow(&mut self, generation: i32) {
        if self.sent.iter().any(|(_, request)| finds(request)) {
            self.answer(finds, Response::Coordinator(1));
        }
        let protocol = self.machine.config().assignors[0].name().to_owned();
        let answer = JoinAnswer {
            member_id: "me".into(),
            generation,
            protocol,
            leader: "other".into(),
            skip_assignment: false,
            members: Vec::new(),
        };
        self.answer(joins, Response::Joined(answer));
    }

    /// A follower's whole join, ending with `partitions`.
    fn settle(&mut self, generation: i32, partitions: &[i32]) {
        self.follow(generation);
        self.answer(syncs, assignment(partitions));
    }

    fn told(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.told)
    }

    fn revoke(&mut self) -> Revoke {
        let found = self.told().into_iter().find_map(|event| match event {
            Event::Revoke(revoke) => Some(revoke),
            _ => None,
        });
        found.expect("a revoke")
    }
}

fn assignment(partitions: &[i32]) -> Response {
    let assignment = MemberAssignment { partitions: set(partitions), ..MemberAssignment::default() };
    Response::Synced(SyncAnswer { assignment })
}

fn set(partitions: &[i32]) -> BTreeSet<TopicPartition> {
    partitions.iter().map(|partition| TopicPartition::new("t", *partition)).collect()
}

fn finds(request: &Request) -> bool {
    matches!(request, Request::FindCoordinator)
}

fn joins(request: &Request) -> bool {
    matches!(request, Request::Join { .. })
}

fn syncs(request: &Request) -> bool {
    matches!(request, Request::Sync { .. })
}

fn beats(request: &Request) -> bool {
    matches!(request, Request::Heartbeat { .. })
}

fn leaves(request: &Request) -> bool {
    matches!(request, Request::Leave { .. })
}

fn lost(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Lost { .. }))
}

fn failure(events: &[Event]) -> Option<&GroupError> {
    events.iter().find_map(|event| match event {
        Event::Failed(error) => Some(error),
        _ => None,
    })
}

fn joined_as(request: &Request) -> (&str, &BTreeSet<TopicPartition>, i32) {
    match request {
        Request::Join { member_id, offers, .. } => (member_id, &offers[0].owned, offers[0].generation),
        other => panic!("{other:?} is not a JoinGroup"),
    }
}

fn leader_answer(members: Vec<GroupMember>, protocol: &str, generation: i32) -> Response {
    Response::Joined(JoinAnswer {
        member_id: "me".into(),
        generation,
        protocol: protocol.into(),
        leader: "me".into(),
        skip_assignment: false,
        members,
    })
}
