//! Offsets to commit, plainly or in a transaction.

use std::{collections::BTreeMap, sync::Arc};

use kafka_protocol::{messages::TopicName, protocol::StrBytes};

use crate::TopicPartition;

/// An offset to commit, and what goes beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitOffset {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record before it, -1 if unknown; lets the next reader notice a truncated log (KIP-320).
    pub leader_epoch: i32,
    /// A text of the committer's own; the broker refuses more than 4,096 bytes by default.
    pub metadata: Arc<str>,
}

impl CommitOffset {
    /// An offset with neither leader epoch nor metadata.
    pub fn new(offset: i64) -> Self {
        Self { offset, leader_epoch: -1, metadata: "".into() }
    }

    /// With the leader epoch of the last record before it.
    #[must_use]
    pub fn leader_epoch(mut self, epoch: i32) -> Self {
        self.leader_epoch = epoch;
        self
    }

    /// With a text beside it.
    #[must_use]
    pub fn metadata(mut self, text: impl Into<Arc<str>>) -> Self {
        self.metadata = text.into();
        self
    }
}

/// Offsets by partition.
pub type Offsets = BTreeMap<TopicPartition, CommitOffset>;

/// The offsets as requests have them: topic by topic, each partition's made by `part`.
pub(crate) fn by_topic<P>(
    offsets: &Offsets,
    part: impl Fn(&TopicPartition, &CommitOffset) -> P,
) -> Vec<(TopicName, Vec<P>)> {
    let mut topics: Vec<(TopicName, Vec<P>)> = Vec::new();
    for (partition, commit) in offsets {
        let made = part(partition, commit);
        match topics.last_mut().filter(|(name, _)| ***name == *partition.topic) {
            Some((_, parts)) => parts.push(made),
            None => {
                let name = TopicName(StrBytes::from_string(partition.topic.to_string()));
                topics.push((name, vec![made]));
            }
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_one_topic_are_together() {
        let places = [("b", 0), ("a", 2), ("b", 3), ("a", 1)];
        let offsets =
            places.iter().map(|(topic, p)| (TopicPartition::new(*topic, *p), CommitOffset::new(7))).collect();
        let topics = by_topic(&offsets, |partition, commit| (partition.partition, commit.offset));
        let found: Vec<_> = topics.iter().map(|(name, parts)| (name.as_str(), parts.as_slice())).collect();
        assert_eq!(found, [("a", &[(1, 7), (2, 7)][..]), ("b", &[(0, 7), (3, 7)][..])]);
    }
}
