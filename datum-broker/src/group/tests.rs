//! The coordinator in virtual time: no clock, no sockets, every answer accounted for.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::code::Code;
use crate::group::{
    Answer, Committed, Committer, GroupSettings, Groups, JoinRequest, State, SyncRequest, Ticket,
};
use crate::random::Random;

const SESSION: i64 = 10_000;
const REBALANCE: i64 = 30_000;

struct World {
    groups: Groups,
    now: i64,
    tickets: Ticket,
    answers: BTreeMap<Ticket, Answer>,
}

impl World {
    fn new(initial_delay: i64) -> Self {
        let settings = GroupSettings { min_session: 1_000, max_session: 100_000, initial_delay, max_size: 3 };
        Self { groups: Groups::new(settings, Random::new(1)), now: 0, tickets: 0, answers: BTreeMap::new() }
    }

    /// Moves the time on, deadline by deadline.
    fn pass(&mut self, by: i64) {
        let end = self.now + by;
        while let Some(deadline) = self.groups.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.groups.tick(self.now);
            self.collect();
            assert!(self.groups.deadline().is_none_or(|next| next > self.now), "a tick does all that is due");
        }
        self.now = end;
    }

    fn collect(&mut self) {
        for (ticket, answer) in self.groups.answers() {
            assert!(self.answers.insert(ticket, answer).is_none(), "one answer per request");
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.tickets
    }

    fn join(&mut self, member: &str, instance: Option<&str>, offers: &[&str]) -> Ticket {
        let ticket = self.ticket();
        let request = JoinRequest {
            group: "g".to_owned(),
            member: member.to_owned(),
            instance: instance.map(str::to_owned),
            client_id: "client".to_owned(),
            host: String::new(),
            session_timeout: SESSION,
            rebalance_timeout: REBALANCE,
            protocol_type: "consumer".to_owned(),
            protocols: offers.iter().map(|name| ((*name).to_owned(), Bytes::new())).collect(),
            known_id_required: false,
            may_skip_assignment: true,
        };
        self.groups.join(request, ticket, self.now);
        self.collect();
        ticket
    }

    /// Member id, generation, leader and chosen assignor; the error code if it failed.
    fn joined(&mut self, ticket: Ticket) -> Result<(String, i32, String, String), Code> {
        match self.answers.remove(&ticket) {
            Some(Answer::Join(answer)) => answer.outcome.map(|joined| {
                (answer.member, joined.generation, joined.leader, joined.protocol.unwrap_or_default())
            }),
            other => panic!("no answer to a join: {other:?}"),
        }
    }

    fn waits(&self, ticket: Ticket) -> bool {
        !self.answers.contains_key(&ticket)
    }

    fn sync(&mut self, member: &str, generation: i32, assignments: &[(&str, &'static [u8])]) -> Ticket {
        let ticket = self.ticket();
        let request = SyncRequest {
            group: "g".to_owned(),
            member: member.to_owned(),
            instance: None,
            generation,
            protocol_type: None,
            protocol: None,
            assignments: assignments
                .iter()
                .map(|&(id, blob)| (id.to_owned(), Bytes::from_static(blob)))
                .collect(),
        };
        self.groups.sync(request, ticket, self.now);
        self.collect();
        ticket
    }

    fn synced(&mut self, ticket: Ticket) -> Result<Bytes, Code> {
        match self.answers.remove(&ticket) {
            Some(Answer::Sync(outcome)) => outcome.map(|(_, _, assignment)| assignment),
            other => panic!("no answer to a sync: {other:?}"),
        }
    }

    fn heartbeat(&mut self, member: &str, generation: i32) -> Result<(), Code> {
        let outcome = self.groups.heartbeat("g", member, None, generation, self.now);
        self.collect();
        outcome
    }

    fn state(&self) -> State {
        self.groups.get("g").map_or(State::Empty, |group| group.state)
    }

    /// A stable group of two; the first leads.
    fn two(&mut self) -> (String, String) {
        let first = self.join("", None, &["range"]);
        let (first, ..) = self.joined(first).expect("alone");
        let second = self.join("", None, &["range"]);
        let again = self.join(&first, None, &["range"]);
        self.joined(again).expect("both");
        let (second, generation, ..) = self.joined(second).expect("both");
        let sync = self.sync(&first, generation, &[(&first, b"1"), (&second, b"2")]);
        self.synced(sync).expect("assigned");
        let sync = self.sync(&second, generation, &[]);
        assert_eq!(self.synced(sync), Ok(Bytes::from_static(b"2")));
        (first, second)
    }
}

#[test]
fn sessions_end_by_the_clock_and_not_before() {
    let mut world = World::new(0);
    let (first, second) = world.two();
    world.pass(SESSION - 1);
    assert_eq!(world.heartbeat(&first, 2), Ok(()));
    world.pass(1);
    assert_eq!(world.heartbeat(&first, 2), Err(Code::RebalanceInProgress), "the second is silent");
    assert_eq!(world.heartbeat(&second, 2), Err(Code::UnknownMemberId));
    world.pass(SESSION);
    assert_eq!(world.state(), State::Empty, "nobody is left");
    assert_eq!(world.groups.deadline(), None, "and nothing is waited for");
}

#[test]
fn a_member_that_waits_for_the_barrier_does_not_expire() {
    let mut world = World::new(0);
    let (first, second) = world.two();
    let waiting = world.join(&second, None, &["range", "other"]);
    for _ in 0..5 {
        world.pass(SESSION / 2);
        assert_eq!(world.heartbeat(&first, 2), Err(Code::RebalanceInProgress));
        assert!(world.waits(waiting));
    }
    world.pass(REBALANCE - 5 * SESSION / 2);
    let (id, generation, leader, _) = world.joined(waiting).expect("the barrier has given up");
    assert_eq!((id.as_str(), generation, leader.as_str()), (second.as_str(), 3, second.as_str()));
    assert_eq!(world.heartbeat(&first, 2), Err(Code::UnknownMemberId));
}

#[test]
fn an_empty_group_may_wait_for_more_members() {
    let mut world = World::new(3_000);
    let first = world.join("", None, &["range"]);
    world.pass(2_000);
    let second = world.join("", None, &["range"]);
    world.pass(2_999);
    assert!(world.waits(first) && world.waits(second), "each newcomer extends the wait");
    world.pass(1);
    assert_eq!(world.joined(first).expect("together").1, 1);
    assert_eq!(world.joined(second).expect("together").1, 1);
}

#[test]
fn a_member_that_never_asks_for_its_assignment_is_put_out() {
    let mut world = World::new(0);
    let first = world.join("", None, &["range"]);
    let (first, ..) = world.joined(first).expect("alone");
    let second = world.join("", None, &["range"]);
    let again = world.join(&first, None, &["range"]);
    world.joined(again).expect("both");
    let (second, generation, ..) = world.joined(second).expect("both");
    let follower = world.sync(&second, generation, &[]);
    for _ in 0..4 {
        assert_eq!(world.heartbeat(&first, generation), Ok(()), "the leader lives, and assigns nothing");
        world.pass(REBALANCE / 4);
    }
    assert_eq!(world.synced(follower), Err(Code::RebalanceInProgress));
    assert_eq!(world.heartbeat(&first, generation), Err(Code::UnknownMemberId));
}

#[test]
fn the_assignor_that_most_want_among_those_all_offer_is_chosen() {
    let mut world = World::new(1_000);
    let tickets = [&["sticky", "range"][..], &["other", "range", "sticky"], &["range", "sticky"]]
        .map(|o| world.join("", None, o));
    world.pass(1_000);
    for ticket in tickets {
        assert_eq!(world.joined(ticket).expect("joined").3, "range");
    }
    let fourth = world.join("", None, &["range"]);
    assert_eq!(world.joined(fourth), Err(Code::GroupMaxSizeReached));
}

#[test]
fn whoever_waits_under_a_static_id_is_fenced_by_its_next_holder() {
    let mut world = World::new(5_000);
    let old = world.join("", Some("one"), &["range"]);
    let new = world.join("", Some("one"), &["range"]);
    assert_eq!(world.joined(old), Err(Code::FencedInstanceId));
    world.pass(5_000);
    world.joined(new).expect("the new holder joins");
    assert_eq!(world.groups.get("g").map(|group| group.members.len()), Some(1));
}

#[test]
fn a_static_member_that_comes_back_ends_the_barrier_that_waits_for_it() {
    let mut world = World::new(0);
    let first = world.join("", Some("one"), &["a"]);
    let (one, generation, ..) = world.joined(first).unwrap();
    let sync = world.sync_as(&one, "one", generation);
    world.synced(sync).unwrap();
    // Another comes, and the barrier waits for the first, which has died and comes back without its id.
    let other = world.join("", None, &["a"]);
    assert!(world.waits(other));
    let back = world.join("", Some("one"), &["a"]);
    let (_, next, ..) = world.joined(back).unwrap();
    assert_eq!(next, generation + 1);
    assert_eq!(world.joined(other).unwrap().1, next);
}

#[test]
fn static_members_survive_a_barrier_that_they_miss() {
    let mut world = World::new(0);
    let first = world.join("", Some("one"), &["range"]);
    let (first, generation, ..) = world.joined(first).expect("alone");
    let sync = world.sync_as(&first, "one", generation);
    world.synced(sync).expect("assigned");
    let second = world.join("", None, &["range"]);
    for _ in 0..4 {
        world.pass(REBALANCE / 4);
        let _ = world.groups.heartbeat("g", &first, Some("one"), generation, world.now);
    }
    let (.., leader, _) = world.joined(second).expect("the barrier has given up");
    let group = world.groups.get("g").expect("there");
    assert_eq!(group.members.len(), 2, "the static one keeps its place");
    assert_ne!(leader, first, "and does not lead");
}

impl World {
    fn sync_as(&mut self, member: &str, instance: &str, generation: i32) -> Ticket {
        let ticket = self.ticket();
        let request = SyncRequest {
            group: "g".to_owned(),
            member: member.to_owned(),
            instance: Some(instance.to_owned()),
            generation,
            protocol_type: None,
            protocol: None,
            assignments: BTreeMap::from([(member.to_owned(), Bytes::from_static(b"x"))]),
        };
        self.groups.sync(request, ticket, self.now);
        self.collect();
        ticket
    }
}

fn offset(offset: i64) -> Committed {
    Committed { offset, leader_epoch: -1, metadata: String::new(), order: 0 }
}

#[test]
fn a_transactions_offset_never_covers_a_later_commit() {
    let mut world = World::new(0);
    let nobody = Committer { member: "", instance: None, generation: -1 };
    let position = || ("t".to_owned(), 0);
    world.groups.check_commit("g", nobody, true, 0).expect("an empty group takes it");
    world.groups.store("g", position(), offset(10), Some(7));
    let found = |world: &World| {
        let offsets = &world.groups.get("g").expect("there").offsets;
        (offsets.committed.get(&position()).map(|found| found.offset), offsets.is_unstable(&position()))
    };
    assert_eq!(found(&world), (None, true));
    world.groups.store("g", position(), offset(20), None);
    world.groups.end_transaction("g", 7, true);
    assert_eq!(found(&world), (Some(20), false));
    world.groups.store("g", position(), offset(30), Some(7));
    world.groups.end_transaction("g", 7, false);
    assert_eq!(found(&world), (Some(20), false), "aborted");
}

#[test]
fn what_is_consumed_is_what_every_group_has_committed() {
    let mut world = World::new(0);
    assert_eq!(world.groups.consumed("t", 0), None);
    let nobody = Committer { member: "", instance: None, generation: -1 };
    for (group, at) in [("a", 10), ("b", 4)] {
        world.groups.check_commit(group, nobody, false, 0).expect("empty");
        world.groups.store(group, ("t".to_owned(), 0), offset(at), None);
    }
    assert_eq!(world.groups.consumed("t", 0), Some(4));
    assert_eq!(world.groups.consumed("t", 1), None);
}

/// Members come, go, fall silent and repeat themselves at random: every request is answered by its deadline, and members
/// of one generation agree on the leader.
#[test]
fn no_request_waits_for_ever() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut world = World::new(if seed % 2 == 0 { 0 } else { 3_000 });
        let mut members: Vec<String> = Vec::new();
        let mut asked: Vec<(Ticket, i64)> = Vec::new();
        let mut leaders: BTreeMap<i32, String> = BTreeMap::new();
        for _ in 0..200 {
            let member =
                members.get(usize::try_from(random.next() % 4).expect("small")).cloned().unwrap_or_default();
            let generation = world.groups.get("g").map_or(0, |group| group.generation);
            match random.next() % 6 {
                0 | 1 => asked.push((world.join(&member, None, &["range"]), world.now)),
                2 => asked.push((world.sync(&member, generation, &[]), world.now)),
                3 => drop(world.heartbeat(&member, generation)),
                4 => {
                    let _ = world.groups.leave("g", &member, None, world.now);
                    world.collect();
                }
                _ => world.pass(i64::try_from(random.next() % 12_000).expect("small")),
            }
            asked.retain(|(ticket, since)| {
                assert!(
                    world.now - since <= 2 * REBALANCE || !world.waits(*ticket),
                    "seed {seed}: {ticket} waits"
                );
                let Some(Answer::Join(answer)) = world.answers.get(ticket) else {
                    return world.waits(*ticket);
                };
                if let Ok(joined) = &answer.outcome {
                    let leader = leaders.entry(joined.generation).or_insert_with(|| joined.leader.clone());
                    assert_eq!(*leader, joined.leader, "seed {seed}: generation {}", joined.generation);
                    if !members.contains(&answer.member) {
                        members.insert(0, answer.member.clone());
                    }
                }
                false
            });
        }
    }
}
