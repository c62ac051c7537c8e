//! Whole groups in virtual time: machines against a model of the coordinator, with delay, reordering between connections, loss and members
//! that come, leave, stall and crash. Each seed is a run; a failing one is named and runs alone with `DATUM_SEED`.

use std::collections::BTreeMap;

use datum_net::Rng;

use super::*;
use crate::group::membership::Phase;

const TICK: Duration = Duration::from_millis(50);

/// The coordinator's side of the classic protocol, as far as a correct client can tell.
#[derive(Default)]
struct Coordinator {
    generation: i32,
    state: GroupState,
    members: BTreeMap<String, Registered>,
    next_id: u64,
    rebalance_by: Option<Instant>,
    leader: String,
    assigned: crate::group::Assignments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum GroupState {
    #[default]
    Empty,
    Preparing,
    Completing,
    Stable,
}

struct Registered {
    seen: Instant,
    offer: Offer,
    joining: Option<Ticket>,
    syncing: Option<Ticket>,
}

/// Which member's which call is to be answered.
type Ticket = (usize, CallId);

type Answers = Vec<(Ticket, Response)>;

fn code(code: ErrorCode) -> Response {
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

    fn request(&mut self, now: Instant, ticket: Ticket, request: Request, answers: &mut Answers) {
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
    fn commit(&mut self, now: Instant, id: &str, generation: i32) -> Result<(), ErrorCode> {
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

    fn tick(&mut self, now: Instant, session: Duration, answers: &mut Answers) {
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

struct Node {
    machine: Membership,
    alive: bool,
    /// Drains under way and when they will be done; some never.
    drains: Vec<(super::super::DrainId, Option<Instant>)>,
    owned: BTreeSet<TopicPartition>,
    draining: BTreeSet<TopicPartition>,
    losses: usize,
}

enum Flight {
    Request(Ticket, Request),
    Answer(Ticket, Response),
}

struct World {
    now: Instant,
    rng: Rng,
    coordinator: Coordinator,
    nodes: Vec<Node>,
    flights: Vec<(Instant, u64, Flight)>,
    timeouts: BTreeMap<Ticket, Instant>,
    sent: u64,
    cooperative: bool,
    /// Requests and answers get lost.
    lossy: bool,
    faulty: bool,
    refused_commits: usize,
}

impl World {
    fn new(seed: u64, cooperative: bool, lossy: bool) -> Self {
        Self {
            now: Instant::now(),
            rng: Rng::seeded(seed),
            coordinator: Coordinator::default(),
            nodes: Vec::new(),
            flights: Vec::new(),
            timeouts: BTreeMap::new(),
            sent: 0,
            cooperative,
            lossy,
            faulty: lossy,
            refused_commits: 0,
        }
    }

    fn add(&mut self) {
        let mut config = MembershipConfig::new("g", ["t"]);
        config.assignors =
            if self.cooperative { vec![Arc::new(CooperativeSticky)] } else { vec![Arc::new(Range)] };
        config.session_timeout = Duration::from_secs(6);
        config.rebalance_timeout = Duration::from_secs(10);
        config.heartbeat_interval = Duration::from_secs(1);
        config.drain_timeout = Duration::from_secs(4);
        config.request_timeout = Duration::from_secs(2);
        config.seed = self.rng.bits();
        let mut machine = Membership::new(config, self.now);
        machine.metadata(self.now, [("t".into(), 7)].into());
        machine.start(self.now);
        self.nodes.push(Node {
            machine,
            alive: true,
            drains: Vec::new(),
            owned: BTreeSet::new(),
            draining: BTreeSet::new(),
            losses: 0,
        });
    }

    fn fly(&mut self, flight: Flight) {
        if self.faulty && self.rng.below(40) == 0 {
            return;
        }
        let delay = Duration::from_millis(1 + self.rng.below(if self.faulty { 300 } else { 20 }) as u64);
        // One connection per member: what it carries in one direction stays in order.
        let lane = |flight: &Flight| match flight {
            Flight::Request(ticket, _) => (ticket.0, 0),
            Flight::Answer(ticket, _) => (ticket.0, 1),
        };
        let after = self.flights.iter().filter(|one| lane(&one.2) == lane(&flight)).map(|one| one.0).max();
        let at = (self.now + delay).max(after.unwrap_or(self.now));
        self.sent += 1;
        self.flights.push((at, self.sent, flight));
    }

    fn serve(&mut self, i: usize) {
        while let Some(output) = self.nodes[i].machine.poll() {
            match output {
                Output::Send { call, request, timeout, .. } => {
                    self.timeouts.insert((i, call), self.now + timeout);
                    self.fly(Flight::Request((i, call), request));
                }
                Output::Tell(event) => self.told(i, event),
            }
        }
    }

    fn told(&mut self, i: usize, event: Event) {
        let never = self.faulty && self.rng.below(10) == 0;
        let until = self.now + Duration::from_millis(self.rng.below(3_000) as u64);
        let node = &mut self.nodes[i];
        match event {
            Event::Assigned(assigned) => {
                assert!(assigned.added.is_disjoint(&node.owned), "what is new was not owned before");
                node.owned.extend(assigned.added);
            }
            Event::Revoke(revoke) => {
                assert!(revoke.partitions.is_subset(&node.owned), "only what is owned is revoked");
                node.draining = revoke.partitions;
                node.drains.push((revoke.drain, (!never).then_some(until)));
            }
            Event::Revoked { partitions } => {
                assert_eq!(partitions, node.draining, "a drain ends once, with what it began with");
                node.owned.retain(|tp| !partitions.contains(tp));
                node.draining.clear();
            }
            Event::Lost { partitions, .. } => {
                assert_eq!(
                    partitions, node.owned,
                    "a loss names what is still owned, a running drain's included"
                );
                node.owned.clear();
                node.draining.clear();
                node.losses += 1;
            }
            Event::Failed(error) => panic!("nothing here is fatal: {error}"),
            Event::CommitAs { .. } | Event::Confirmed { .. } | Event::NeedMetadata { .. } | Event::Left => {}
        }
    }

    fn step(&mut self) {
        self.now += TICK;
        let now = self.now;
        let mut due: Vec<_> = self.flights.extract_if(.., |one| one.0 <= now).collect();
        due.sort_by_key(|one| (one.0, one.1));
        for (_, _, flight) in due {
            let mut answers = Answers::new();
            match flight {
                Flight::Request(ticket, request) => {
                    self.coordinator.request(now, ticket, request, &mut answers);
                }
                Flight::Answer((i, call), response) => {
                    if self.timeouts.remove(&(i, call)).is_some() && self.nodes[i].alive {
                        self.nodes[i].machine.answered(now, call, response);
                        self.serve(i);
                    }
                }
            }
            self.answer(answers);
        }
        let mut answers = Answers::new();
        self.coordinator.tick(now, Duration::from_secs(6), &mut answers);
        self.answer(answers);
        let late: Vec<Ticket> = self.timeouts.iter().filter(|one| *one.1 <= now).map(|one| *one.0).collect();
        for (i, call) in late {
            self.timeouts.remove(&(i, call));
            if self.nodes[i].alive {
                self.nodes[i].machine.answered(now, call, Response::Trouble(Trouble::Unreachable));
                self.serve(i);
            }
        }
        for i in 0..self.nodes.len() {
            self.live(i);
        }
    }

    fn answer(&mut self, answers: Answers) {
        for (ticket, response) in answers {
            self.fly(Flight::Answer(ticket, response));
        }
    }

    fn live(&mut self, i: usize) {
        let now = self.now;
        let node = &mut self.nodes[i];
        if !node.alive {
            return;
        }
        if node.machine.deadline().is_some_and(|at| at <= now) {
            node.machine.tick(now);
        }
        let done: Vec<_> = node.drains.extract_if(.., |one| one.1.is_some_and(|at| at <= now)).collect();
        for (drain, _) in done {
            node.machine.drained(now, drain);
        }
        let stable = node.machine.phase() == Phase::Stable;
        assert!(!stable || (node.machine.generation() >= 0 && !node.machine.member_id().is_empty()));
        // A commit now and then, answered at once: no request of this member is between it and the coordinator's present state only if
        // nothing is lost and delays are small.
        let as_whom = node.machine.commit_as().map(|(generation, id)| (generation, id.to_owned()));
        if let Some((generation, id)) = as_whom.filter(|_| !self.lossy && self.rng.below(4) == 0) {
            let committed = self.coordinator.commit(now, &id, generation);
            if let Err(ErrorCode::IllegalGeneration | ErrorCode::UnknownMemberId) = committed {
                self.refused_commits += 1;
            }
        }
        self.serve(i);
    }

    /// No two live members own the same partition, as long as nobody was thrown out.
    fn disjoint(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.nodes
            .iter()
            .filter(|node| node.alive)
            .flat_map(|node| &node.owned)
            .all(|tp| seen.insert(tp.clone()))
    }

    fn settled(&self) -> bool {
        let live: Vec<_> = self.nodes.iter().filter(|node| node.alive).collect();
        let all: BTreeSet<_> = live.iter().flat_map(|node| &node.owned).collect();
        live.iter().all(|node| {
            node.machine.phase() == Phase::Stable && node.machine.generation() == self.coordinator.generation
        }) && self.coordinator.state == GroupState::Stable
            && all.len() == 7
            && self.disjoint()
    }

    fn settle(&mut self, what: &str) {
        for _ in 0..2_400 {
            if self.settled() {
                return;
            }
            self.step();
        }
        let standing: Vec<_> = self
            .nodes
            .iter()
            .map(|node| (node.alive, node.machine.phase(), node.machine.generation(), node.owned.len()))
            .collect();
        panic!(
            "{what}: not settled within two minutes: {standing:?}, group {} {:?}",
            self.coordinator.generation, self.coordinator.state
        );
    }
}

fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let one = std::env::var("DATUM_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let range = one.map_or(1..1 + count, |seed| seed..seed + 1);
    range.inspect(|seed| println!("seed {seed}"))
}

#[test]
fn without_loss_no_partition_has_two_owners_and_no_commit_meets_a_wrong_generation() {
    for seed in seeds(30) {
        for cooperative in [true, false] {
            let mut world = World::new(seed, cooperative, false);
            for count in 1..=4 {
                world.add();
                let begin = world.now;
                while world.now - begin < Duration::from_secs(15) {
                    world.step();
                    assert!(world.disjoint(), "two owners while member {count} joins");
                }
                world.settle("after a join");
            }
            let leaver = world.rng.below(4);
            let now = world.now;
            world.nodes[leaver].machine.leave(now, now + Duration::from_secs(5));
            for _ in 0..200 {
                world.step();
                assert!(world.disjoint(), "two owners while one leaves");
            }
            assert_eq!(world.nodes[leaver].machine.phase(), Phase::Closed);
            world.nodes[leaver].alive = false;
            world.settle("after a leave");
            assert_eq!(world.refused_commits, 0, "commits under a wrong generation or member id");
            assert_eq!(world.nodes.iter().map(|node| node.losses).sum::<usize>(), 0);
        }
    }
}

#[test]
fn with_loss_stalls_and_crashes_the_group_always_settles_once_they_end() {
    for seed in seeds(30) {
        let mut world = World::new(seed, seed % 2 == 0, true);
        for _ in 0..3 {
            world.add();
        }
        for _ in 0..1_200 {
            world.step();
            match world.rng.below(400) {
                0 if world.nodes.len() < 6 => world.add(),
                1 => {
                    let live = world.nodes.iter().filter(|node| node.alive).count();
                    let victim = world.rng.below(world.nodes.len());
                    if live > 1 {
                        world.nodes[victim].alive = false;
                    }
                }
                _ => {}
            }
        }
        world.faulty = false;
        world.settle("after the faults");
    }
}
