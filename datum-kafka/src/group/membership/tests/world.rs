//! Whole groups in virtual time: machines against a model of the coordinator, with delay, reordering between connections, loss and members
//! that come, leave, stall and crash. Each seed is a run; a failing one is named and runs alone with `DATUM_SEED`.

use std::collections::BTreeMap;

use datum_net::Rng;

use super::coordinator::{Answers, Coordinator, GroupState, Ticket};
use super::*;
use crate::group::membership::Phase;

const TICK: Duration = Duration::from_millis(50);

/// The coordinator's side of the classic protocol, as far as a correct client can tell.
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
