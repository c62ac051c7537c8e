//! Range: each topic cut into one run of neighbouring partitions per subscriber.
//!
//! The same cut as the Java client's `RangeAssignor` without racks, so that a mixed group agrees whoever leads. Partitions with the
//! same number of two topics with equal counts and subscribers go to the same member. Cost: one pass over members and partitions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Assignments, Assignor, GroupView, Rebalance, Refusal, plain};
use crate::group::TopicPartition;

/// The `range` assignor; eager.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range;

impl Assignor for Range {
    fn name(&self) -> &'static str {
        "range"
    }

    fn rebalance(&self) -> Rebalance {
        Rebalance::Eager
    }

    fn assign(&self, view: &GroupView) -> Result<Assignments, Refusal> {
        let mut sets: BTreeMap<String, BTreeSet<TopicPartition>> =
            view.members.iter().map(|member| (member.id.clone(), BTreeSet::new())).collect();
        for (topic, count) in &view.topics {
            let mut readers: Vec<_> = view.members.iter().filter(|m| m.topics.contains(topic)).collect();
            readers.sort_by_key(|member| member.standing());
            let mut cuts = Cuts::new(*count, readers.len());
            for reader in readers {
                let run = cuts.next_run();
                if let Some(set) = sets.get_mut(&reader.id) {
                    set.extend(run.map(|partition| TopicPartition::new(topic.clone(), partition)));
                }
            }
        }
        Ok(plain(sets))
    }
}

/// Cuts `0..count` into runs whose lengths differ by at most one, the longer ones first.
struct Cuts {
    next: i32,
    length: i32,
    longer: i32,
}

impl Cuts {
    fn new(count: i32, readers: usize) -> Self {
        let readers = i32::try_from(readers).unwrap_or(i32::MAX).max(1);
        let count = count.max(0);
        Self { next: 0, length: count / readers, longer: count % readers }
    }

    fn next_run(&mut self) -> std::ops::Range<i32> {
        let start = self.next;
        self.next += self.length;
        if self.longer > 0 {
            self.longer -= 1;
            self.next += 1;
        }
        start..self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::assignor::{GroupMember, TopicCounts};

    fn view(topics: &[(&str, i32)], members: Vec<GroupMember>) -> GroupView {
        let topics: TopicCounts = topics.iter().map(|(name, count)| ((*name).into(), *count)).collect();
        GroupView::new(topics, members, 1)
    }

    fn partitions(decision: &Assignments, id: &str) -> Vec<String> {
        decision[id].partitions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_members_get_the_odd_partitions() {
        let members = vec![GroupMember::new("b", ["t", "u"]), GroupMember::new("a", ["t", "u"])];
        let decision = Range.assign(&view(&[("t", 3), ("u", 3)], members)).unwrap();
        assert_eq!(partitions(&decision, "a"), ["t-0", "t-1", "u-0", "u-1"]);
        assert_eq!(partitions(&decision, "b"), ["t-2", "u-2"]);
    }

    #[test]
    fn static_members_stand_before_dynamic_ones_by_instance() {
        let mut late = GroupMember::new("1", ["t"]);
        late.instance_id = Some("z".into());
        let mut early = GroupMember::new("9", ["t"]);
        early.instance_id = Some("a".into());
        let decision =
            Range.assign(&view(&[("t", 3)], vec![GroupMember::new("0", ["t"]), late, early])).unwrap();
        assert_eq!(partitions(&decision, "9"), ["t-0"]);
        assert_eq!(partitions(&decision, "1"), ["t-1"]);
        assert_eq!(partitions(&decision, "0"), ["t-2"]);
    }

    #[test]
    fn a_topic_that_does_not_exist_gives_nothing_and_more_members_than_partitions_leave_some_idle() {
        let members = vec![GroupMember::new("a", ["t", "gone"]), GroupMember::new("b", ["t"])];
        let decision = Range.assign(&view(&[("t", 1)], members)).unwrap();
        assert_eq!(partitions(&decision, "a"), ["t-0"]);
        assert!(partitions(&decision, "b").is_empty());
    }
}
