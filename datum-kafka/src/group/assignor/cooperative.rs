//! Cooperative-sticky: balance with as few moves as possible, and never a partition to two members at once.
//!
//! The decision has three steps.
//! 1. *Keep*: each partition stays with whoever claims it with the highest generation (KIP-792); a tie is nobody's.
//! 2. *Level*: what nobody holds goes to the least loaded of those who may have it. Then, while some member carries at least two
//!    more than another that it can reach, one partition is passed along the shortest chain of members between them. Each pass
//!    lowers the sum of the squared loads, so the loop ends; when it ends no chain can improve the balance.
//! 3. *Withhold* (KIP-429): a partition that its new member does not hold and somebody else still claims is given to nobody in this
//!    generation. Its holder sees it gone, drains, and joins again; the next decision finds it free.
//!
//! Deterministic: members in order of their ids, partitions in order of their names. Cost: a chain search is one pass over members and
//! topics, and there are at most as many as partitions that have to move.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{Assignments, Assignor, GroupMember, GroupView, Rebalance, Refusal, plain};
use crate::group::TopicPartition;

/// The `cooperative-sticky` assignor; cooperative.
#[derive(Clone, Copy, Debug, Default)]
pub struct CooperativeSticky;

impl Assignor for CooperativeSticky {
    fn name(&self) -> &'static str {
        "cooperative-sticky"
    }

    fn rebalance(&self) -> Rebalance {
        Rebalance::Cooperative
    }

    fn assign(&self, view: &GroupView) -> Result<Assignments, Refusal> {
        let claims = Claims::of(view);
        let mut level = Level::new(view, &claims);
        level.give_out();
        level.even_out();
        let mut sets: BTreeMap<String, BTreeSet<TopicPartition>> = BTreeMap::new();
        for (index, member) in view.members.iter().enumerate() {
            let mut set = level.take(index);
            set.retain(|tp| !claims.held_by_another(tp, index));
            sets.insert(member.id.clone(), set);
        }
        Ok(plain(sets))
    }
}

/// Who claims what: members as indexes into the view.
struct Claims {
    /// Everybody who claims a partition, whatever the generation.
    all: BTreeMap<TopicPartition, Vec<usize>>,
    /// Whose claim counts.
    keeper: BTreeMap<TopicPartition, usize>,
}

impl Claims {
    fn of(view: &GroupView) -> Self {
        let mut all: BTreeMap<TopicPartition, Vec<usize>> = BTreeMap::new();
        for (index, member) in view.members.iter().enumerate() {
            for tp in member.claims(&view.topics) {
                all.entry(tp).or_default().push(index);
            }
        }
        let keeper = all
            .iter()
            .filter_map(|(tp, holders)| newest(&view.members, holders).map(|index| (tp.clone(), index)))
            .collect();
        Self { all, keeper }
    }

    fn held_by_another(&self, tp: &TopicPartition, index: usize) -> bool {
        self.all.get(tp).is_some_and(|holders| holders.iter().any(|holder| *holder != index))
    }
}

/// The one holder with the highest generation, or nobody where two share it.
fn newest(members: &[GroupMember], holders: &[usize]) -> Option<usize> {
    let top = holders.iter().map(|index| members[*index].generation).max()?;
    let mut newest = holders.iter().filter(|index| members[**index].generation == top);
    match (newest.next(), newest.next()) {
        (Some(index), None) => Some(*index),
        _ => None,
    }
}

/// The loads while they are being levelled.
struct Level<'a> {
    view: &'a GroupView,
    claims: &'a Claims,
    /// Per member, per topic: its partitions.
    held: Vec<BTreeMap<Arc<str>, BTreeSet<i32>>>,
    load: Vec<usize>,
    /// Per topic that exists: the members that read it, in order.
    readers: BTreeMap<Arc<str>, Vec<usize>>,
}

impl<'a> Level<'a> {
    fn new(view: &'a GroupView, claims: &'a Claims) -> Self {
        let mut readers: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for (index, member) in view.members.iter().enumerate() {
            for topic in member.topics.iter().filter(|topic| view.topics.contains_key(*topic)) {
                readers.entry(topic.clone()).or_default().push(index);
            }
        }
        let mut level = Self {
            view,
            claims,
            held: vec![BTreeMap::new(); view.members.len()],
            load: vec![0; view.members.len()],
            readers,
        };
        for (tp, index) in &claims.keeper {
            level.put(*index, &tp.topic, tp.partition);
        }
        level
    }

    /// Gives what nobody keeps to the least loaded reader; topics with few readers first, since they have the least choice.
    fn give_out(&mut self) {
        let mut topics: Vec<(usize, Arc<str>)> =
            self.readers.iter().map(|(topic, readers)| (readers.len(), topic.clone())).collect();
        topics.sort();
        for (_, topic) in topics {
            let count = self.view.topics.get(&topic).copied().unwrap_or(0);
            let readers = self.readers.get(&topic).cloned().unwrap_or_default();
            for partition in 0..count {
                if self.claims.keeper.contains_key(&TopicPartition::new(topic.clone(), partition)) {
                    continue;
                }
                if let Some(index) = readers.iter().copied().min_by_key(|index| (self.load[*index], *index)) {
                    self.put(index, &topic, partition);
                }
            }
        }
    }

    /// Passes partitions along chains until no chain improves the balance.
    fn even_out(&mut self) {
        let mut order: Vec<usize> = (0..self.load.len()).collect();
        loop {
            order.sort_by_key(|index| (std::cmp::Reverse(self.load[*index]), *index));
            let Some(chain) = order.iter().find_map(|from| self.chain(*from)) else { return };
            for (from, to, topic) in chain {
                self.pass(from, to, &topic);
            }
        }
    }

    /// The shortest chain from `from` to a member with at least two less, the least loaded of equals; none if there is none.
    fn chain(&self, from: usize) -> Option<Vec<(usize, usize, Arc<str>)>> {
        let enough = self.load[from].checked_sub(2)?;
        if self.load.iter().all(|load| *load > enough) {
            return None;
        }
        let mut came: BTreeMap<usize, (usize, Arc<str>)> = BTreeMap::new();
        let mut seen_topics: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut ring = VecDeque::from([(from, 0usize)]);
        let mut best: Option<(usize, usize, usize)> = None;
        while let Some((index, depth)) = ring.pop_front() {
            if best.is_some_and(|(found, _, _)| depth >= found) {
                break;
            }
            for topic in self.held[index].keys() {
                if !seen_topics.insert(topic.clone()) {
                    continue;
                }
                for reader in self.readers.get(topic).into_iter().flatten().copied() {
                    if reader == from || came.contains_key(&reader) {
                        continue;
                    }
                    came.insert(reader, (index, topic.clone()));
                    ring.push_back((reader, depth + 1));
                    let found = (depth + 1, self.load[reader], reader);
                    if self.load[reader] <= enough && best.is_none_or(|best| found < best) {
                        best = Some(found);
                    }
                }
            }
        }
        let (_, _, mut to) = best?;
        let mut chain = Vec::new();
        while to != from {
            let (before, topic) = came.get(&to)?;
            chain.push((*before, to, topic.clone()));
            to = *before;
        }
        Some(chain)
    }

    /// Moves one partition of `topic`: the one whose move disturbs least.
    fn pass(&mut self, from: usize, to: usize, topic: &Arc<str>) {
        let Some(partitions) = self.held[from].get_mut(topic) else { return };
        let disturbs = |partition: i32| {
            let tp = TopicPartition::new(topic.clone(), partition);
            match self.claims.keeper.get(&tp) {
                Some(keeper) if *keeper == to => 0,
                Some(keeper) if *keeper == from => 2,
                _ => 1,
            }
        };
        let Some(partition) = partitions
            .iter()
            .copied()
            .min_by_key(|partition| (disturbs(*partition), std::cmp::Reverse(*partition)))
        else {
            return;
        };
        partitions.remove(&partition);
        if partitions.is_empty() {
            self.held[from].remove(topic);
        }
        self.load[from] -= 1;
        self.put(to, topic, partition);
    }

    fn put(&mut self, index: usize, topic: &Arc<str>, partition: i32) {
        if self.held[index].entry(topic.clone()).or_default().insert(partition) {
            self.load[index] += 1;
        }
    }

    fn take(&mut self, index: usize) -> BTreeSet<TopicPartition> {
        std::mem::take(&mut self.held[index])
            .into_iter()
            .flat_map(|(topic, partitions)| {
                partitions.into_iter().map(move |partition| TopicPartition::new(topic.clone(), partition))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::group::assignor::TopicCounts;

    fn topics(counts: &[i32]) -> TopicCounts {
        counts.iter().enumerate().map(|(i, count)| (format!("t{i}").into(), *count)).collect()
    }

    /// One whole rebalance: decides, lets members give up what was taken, decides again until nothing is withheld.
    fn settle(counts: &TopicCounts, mut members: Vec<GroupMember>) -> (Vec<GroupMember>, usize) {
        for round in 1..=3 {
            let generation = 100 + i32::try_from(round).unwrap();
            let view = GroupView::new(counts.clone(), members.clone(), generation);
            let decision = CooperativeSticky.assign(&view).unwrap();
            no_partition_twice(&decision, &members, counts);
            let mut gave_up = false;
            for member in &mut members {
                let now = &decision[&member.id].partitions;
                gave_up |= member.claims(counts).iter().any(|tp| !now.contains(tp));
                member.owned = now.iter().cloned().collect();
                member.generation = generation;
            }
            if !gave_up {
                return (members, round);
            }
        }
        panic!("a cooperative rebalance takes at most two decisions and one to confirm");
    }

    /// Nobody gets what somebody else still holds, nobody gets a topic it did not ask for.
    fn no_partition_twice(decision: &Assignments, members: &[GroupMember], counts: &TopicCounts) {
        let mut given = BTreeSet::new();
        let claims: Vec<_> = members.iter().map(|member| member.claims(counts)).collect();
        for (index, member) in members.iter().enumerate() {
            for tp in &decision[&member.id].partitions {
                assert!(given.insert(tp.clone()), "{tp} was given twice");
                assert!(member.topics.contains(&tp.topic) && (0..counts[&tp.topic]).contains(&tp.partition));
                let elsewhere =
                    claims.iter().enumerate().any(|(other, set)| other != index && set.contains(tp));
                assert!(!elsewhere, "{tp} was given to {} while another member holds it", member.id);
            }
        }
    }

    fn complete_and_balanced(members: &[GroupMember], counts: &TopicCounts) {
        let given: BTreeSet<_> = members.iter().flat_map(|member| member.owned.iter().cloned()).collect();
        for (topic, count) in counts {
            if members.iter().any(|member| member.topics.contains(topic)) {
                for partition in 0..*count {
                    let tp = TopicPartition::new(topic.clone(), partition);
                    assert!(given.contains(&tp), "{tp} was given to nobody");
                }
            }
        }
        for rich in members {
            for poor in members.iter().filter(|poor| rich.owned.len() > poor.owned.len() + 1) {
                let passable = rich.owned.iter().any(|tp| poor.topics.contains(&tp.topic));
                assert!(
                    !passable,
                    "{} has {}, {} only {}",
                    rich.id,
                    rich.owned.len(),
                    poor.id,
                    poor.owned.len()
                );
            }
        }
    }

    /// A member as drawn: a mask of the topics it reads, its claims as (topic, partition), its generation.
    type Drawn = (u8, Vec<(u8, i32)>, i32);

    fn group() -> impl Strategy<Value = (Vec<i32>, Vec<Drawn>)> {
        let claim = (0u8..5, -2i32..12);
        let member = (1u8..32, prop::collection::vec(claim, 0..20), -1i32..4);
        (prop::collection::vec(0i32..9, 1..5), prop::collection::vec(member, 1..7))
    }

    fn build(spec: &[Drawn]) -> Vec<GroupMember> {
        spec.iter()
            .enumerate()
            .map(|(i, (mask, owned, generation))| {
                let names = (0..5).filter(|t| mask & (1 << t) != 0).map(|t| format!("t{t}"));
                let mut member = GroupMember::new(format!("m{i}"), names);
                member.owned = owned.iter().map(|(t, p)| TopicPartition::new(format!("t{t}"), *p)).collect();
                member.generation = *generation;
                member
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn any_group_with_any_claims_settles_complete_balanced_and_without_two_owners((counts, spec) in group()) {
            let counts = topics(&counts);
            let (members, _) = settle(&counts, build(&spec));
            complete_and_balanced(&members, &counts);
        }

        #[test]
        fn a_settled_group_does_not_move((counts, spec) in group()) {
            let counts = topics(&counts);
            let (members, _) = settle(&counts, build(&spec));
            let (after, rounds) = settle(&counts, members.clone());
            prop_assert_eq!(rounds, 1);
            for (before, after) in members.iter().zip(&after) {
                prop_assert_eq!(&before.owned, &after.owned);
            }
        }

        #[test]
        fn one_more_or_one_less_equal_member_moves_only_what_balance_needs(count in 1i32..60, n in 1usize..8) {
            let counts = topics(&[count]);
            let fresh = |range: std::ops::Range<usize>| {
                range.map(|i| GroupMember::new(format!("m{i}"), ["t0"])).collect::<Vec<_>>()
            };
            let (before, _) = settle(&counts, fresh(0..n));
            let mut more = before.clone();
            more.extend(fresh(n..n + 1));
            let (after, _) = settle(&counts, more);
            let moved = after.last().unwrap().owned.len();
            prop_assert_eq!(moved, usize::try_from(count).unwrap() / (n + 1));
            for (old, new) in before.iter().zip(&after) {
                prop_assert!(new.owned.iter().all(|tp| old.owned.contains(tp)), "an old member got something new");
            }
            let (left, _) = settle(&counts, after[1..].to_vec());
            for (old, new) in after[1..].iter().zip(&left) {
                prop_assert!(old.owned.iter().all(|tp| new.owned.contains(tp)), "a leaver disturbed the others");
            }
        }
    }

    #[test]
    fn chains_balance_what_no_single_move_can() {
        // a reads t0; b reads t0 and t1; c reads t1. All of t0 is with a, all of t1 with b.
        let mut a = GroupMember::new("a", ["t0"]);
        let mut b = GroupMember::new("b", ["t0", "t1"]);
        let c = GroupMember::new("c", ["t1"]);
        a.owned = (0..4).map(|p| TopicPartition::new("t0", p)).collect();
        b.owned = (0..3).map(|p| TopicPartition::new("t1", p)).collect();
        (a.generation, b.generation) = (5, 5);
        let (members, _) = settle(&topics(&[4, 3]), vec![a, b, c]);
        let mut loads: Vec<_> = members.iter().map(|m| m.owned.len()).collect();
        loads.sort_unstable();
        assert_eq!(loads, [2, 2, 3]);
    }

    #[test]
    fn the_newest_claim_wins_and_equal_ones_cancel() {
        let claim = |id: &str, generation| {
            let mut member = GroupMember::new(id, ["t0"]);
            member.owned = vec![TopicPartition::new("t0", 0)];
            member.generation = generation;
            member
        };
        let counts = topics(&[1]);
        let view = GroupView::new(counts.clone(), vec![claim("a", 3), claim("b", 4)], 5);
        assert_eq!(Claims::of(&view).keeper.values().copied().collect::<Vec<_>>(), [1]);
        let view = GroupView::new(counts, vec![claim("a", 4), claim("b", 4)], 5);
        assert!(Claims::of(&view).keeper.is_empty());
        let decision = CooperativeSticky.assign(&view).unwrap();
        assert!(decision.values().all(|member| member.partitions.is_empty()), "both give it up first");
    }

    #[test]
    fn a_large_group_is_decided_quickly() {
        let counts = topics(&[1_500, 1_500]);
        let fresh: Vec<_> = (0..60).map(|i| GroupMember::new(format!("m{i:03}"), ["t0", "t1"])).collect();
        let (mut members, _) = settle(&counts, fresh);
        members.push(GroupMember::new("new", ["t0", "t1"]));
        let (members, rounds) = settle(&counts, members);
        assert_eq!(rounds, 2);
        complete_and_balanced(&members, &counts);
    }
}
