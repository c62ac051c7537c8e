//! What is known of the cluster: its brokers, and of the topics asked for their partitions and leaders.
//!
//! A [`Metadata`] is a value that never changes; each answer of a broker makes a new one out of the last
//! ([`Metadata::merge`]). The rules that keep a stale broker's answer from undoing what is known better:
//! - a leader is accepted only with an epoch at least as high as the known one (KIP-320);
//! - a topic that comes back with another id was deleted and created again: its partitions start over, and
//!   [`Topic::id`] tells whoever still holds offsets of the old one;
//! - a topic that a broker does not know keeps its partitions, with the error beside them, since a broker that was just
//!   started knows less than the others.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datum_net::Address;

use crate::TopicPartition;
use crate::error::ErrorCode;

pub use crate::wire::topic::TopicId;

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its id.
    pub id: i32,
    /// Where it listens for clients.
    pub address: Address,
    /// Its rack or zone, where configured.
    pub rack: Option<Arc<str>>,
}

/// A partition's leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The leading broker; `None` during an election.
    pub leader: Option<i32>,
    /// How often leadership has changed; -1 where the broker does not say.
    pub epoch: i32,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its identity.
    pub id: TopicId,
    /// What the last answer said about the topic as a whole.
    pub error: ErrorCode,
    /// Whether it is one of Kafka's own.
    pub internal: bool,
    /// Its partitions by index.
    pub partitions: Vec<Leadership>,
}

/// What is known of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Grows with every change.
    pub generation: u64,
    /// The cluster's id, where known.
    pub cluster_id: Option<Arc<str>>,
    /// The brokers by id.
    pub brokers: BTreeMap<i32, Broker>,
    /// The topics asked for.
    pub topics: HashMap<Arc<str>, Topic>,
}

/// One broker's answer, in our own types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) cluster_id: Option<Arc<str>>,
    pub(super) brokers: Vec<Broker>,
    pub(super) topics: Vec<(Arc<str>, Topic)>,
}

impl Metadata {
    /// A topic by name.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// How many partitions the topic has; `None` if it is not known.
    pub fn partition_count(&self, topic: &str) -> Option<usize> {
        self.topic(topic).filter(|topic| !topic.partitions.is_empty()).map(|topic| topic.partitions.len())
    }

    /// The leadership of a partition, if the partition is known.
    pub fn leadership(&self, partition: &TopicPartition) -> Option<Leadership> {
        let index = usize::try_from(partition.partition).ok()?;
        self.topic(&partition.topic)?.partitions.get(index).copied()
    }

    /// The name of the topic with this id.
    pub fn topic_name(&self, id: &TopicId) -> Option<&Arc<str>> {
        self.topics
            .iter()
            .find(|(_, topic)| topic.id == *id && *id != TopicId::default())
            .map(|(name, _)| name)
    }

    /// What is known after `answer`.
    pub(super) fn merge(&self, answer: Answer) -> Self {
        let mut next = self.clone();
        next.generation += 1;
        if answer.cluster_id.is_some() {
            next.cluster_id = answer.cluster_id;
        }
        if !answer.brokers.is_empty() {
            next.brokers = answer.brokers.into_iter().map(|broker| (broker.id, broker)).collect();
        }
        for (name, topic) in answer.topics {
            match next.topics.get_mut(&name) {
                Some(known) => known.merge(topic),
                None => {
                    next.topics.insert(name, topic);
                }
            }
        }
        next
    }

    /// Without any broker, so that the bootstrap addresses are asked next.
    pub(super) fn without_brokers(&self) -> Self {
        Self { generation: self.generation + 1, brokers: BTreeMap::new(), ..self.clone() }
    }

    /// What is known after a broker has said in passing who leads a partition now (KIP-951). `None`: nothing new.
    pub(super) fn hint(
        &self,
        partition: &TopicPartition,
        leader: Leadership,
        broker: Option<Broker>,
    ) -> Option<Self> {
        let known = self.leadership(partition)?;
        if leader.epoch <= known.epoch || leader.leader.is_none() {
            return None;
        }
        let mut next = self.clone();
        next.generation += 1;
        if let Some(broker) = broker {
            next.brokers.insert(broker.id, broker);
        }
        let index = usize::try_from(partition.partition).ok()?;
        *next.topics.get_mut(&partition.topic)?.partitions.get_mut(index)? = leader;
        Some(next)
    }
}

impl Topic {
    fn merge(&mut self, new: Self) {
        self.error = new.error;
        if !new.error.is_ok() && new.partitions.is_empty() {
            return;
        }
        let recreated = new.id != self.id && self.id != TopicId::default() && new.id != TopicId::default();
        if recreated {
            *self = new;
            return;
        }
        self.id = new.id;
        self.internal = new.internal;
        for (i, leadership) in new.partitions.into_iter().enumerate() {
            match self.partitions.get_mut(i) {
                Some(known) if leadership.epoch >= known.epoch || leadership.epoch < 0 => *known = leadership,
                Some(_) => {}
                None => self.partitions.push(leadership),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(id: u8, leaders: &[(i32, i32)]) -> Topic {
        Topic {
            id: [id; 16],
            error: ErrorCode::None,
            internal: false,
            partitions: leaders
                .iter()
                .map(|&(leader, epoch)| Leadership { leader: Some(leader), epoch })
                .collect(),
        }
    }

    fn known(topic: Topic) -> Metadata {
        Metadata::default().merge(Answer { topics: vec![("t".into(), topic)], ..Answer::default() })
    }

    fn leader(metadata: &Metadata, partition: i32) -> (Option<i32>, i32) {
        let found = metadata.leadership(&TopicPartition::new("t", partition)).unwrap();
        (found.leader, found.epoch)
    }

    #[test]
    fn a_stale_broker_cannot_bring_an_old_leader_back() {
        let metadata = known(topic(1, &[(3, 7)]));
        let stale =
            metadata.merge(Answer { topics: vec![("t".into(), topic(1, &[(2, 6)]))], ..Answer::default() });
        assert_eq!(leader(&stale, 0), (Some(3), 7));
        let newer = stale
            .merge(Answer { topics: vec![("t".into(), topic(1, &[(1, 8), (2, 0)]))], ..Answer::default() });
        assert_eq!((leader(&newer, 0), leader(&newer, 1)), ((Some(1), 8), (Some(2), 0)));
    }

    #[test]
    fn a_recreated_topic_starts_over() {
        let metadata = known(topic(1, &[(3, 7), (3, 7)]));
        let new =
            metadata.merge(Answer { topics: vec![("t".into(), topic(2, &[(2, 0)]))], ..Answer::default() });
        assert_eq!((leader(&new, 0), new.partition_count("t")), ((Some(2), 0), Some(1)));
        assert_eq!(new.topic("t").unwrap().id, [2; 16]);
    }

    #[test]
    fn a_broker_that_does_not_know_a_topic_does_not_take_it_away() {
        let metadata = known(topic(1, &[(3, 7)]));
        let unknown =
            Topic { error: ErrorCode::UnknownTopicOrPartition, partitions: Vec::new(), ..topic(0, &[]) };
        let next = metadata.merge(Answer { topics: vec![("t".into(), unknown)], ..Answer::default() });
        assert_eq!((leader(&next, 0), next.topic("t").unwrap().error.is_ok()), ((Some(3), 7), false));
    }

    #[test]
    fn a_hint_counts_only_if_it_is_newer() {
        let metadata = known(topic(1, &[(3, 7)]));
        let partition = TopicPartition::new("t", 0);
        assert!(metadata.hint(&partition, Leadership { leader: Some(2), epoch: 7 }, None).is_none());
        let broker = Broker { id: 9, address: Address::new("nine", 9092), rack: None };
        let next = metadata.hint(&partition, Leadership { leader: Some(9), epoch: 8 }, Some(broker)).unwrap();
        assert_eq!(leader(&next, 0), (Some(9), 8));
        assert_eq!(next.brokers[&9].address.port(), 9092);
    }
}
