//! Whom a refusal concerns: the words that make an error message point at something.

use std::fmt;
use std::sync::Arc;

use crate::TopicPartition;

/// The culprit of a broker's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The cluster as a whole.
    Cluster,
    /// A broker by id.
    Broker(i32),
    /// A topic.
    Topic(Arc<str>),
    /// A partition.
    Partition(TopicPartition),
    /// A consumer group.
    Group(Arc<str>),
    /// A member of a consumer group.
    Member {
        /// The group.
        group: Arc<str>,
        /// The member id.
        member: Arc<str>,
    },
    /// A transactional id.
    TransactionalId(Arc<str>),
    /// A producer id of a producer without a transactional id.
    Producer(i64),
}

impl Subject {
    /// A topic.
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        Self::Topic(name.into())
    }

    /// A partition.
    pub fn partition(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self::Partition(TopicPartition::new(topic, partition))
    }

    /// A consumer group.
    pub fn group(name: impl Into<Arc<str>>) -> Self {
        Self::Group(name.into())
    }

    /// A transactional id.
    pub fn transactional_id(id: impl Into<Arc<str>>) -> Self {
        Self::TransactionalId(id.into())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("the cluster"),
            Self::Broker(id) => write!(f, "broker {id}"),
            Self::Topic(topic) => write!(f, "topic `{topic}`"),
            Self::Partition(partition) => write!(f, "partition {partition}"),
            Self::Group(group) => write!(f, "group `{group}`"),
            Self::Member { group, member } => write!(f, "member `{member}` of group `{group}`"),
            Self::TransactionalId(id) => write!(f, "transactional id `{id}`"),
            Self::Producer(id) => write!(f, "producer {id}"),
        }
    }
}

impl From<TopicPartition> for Subject {
    fn from(partition: TopicPartition) -> Self {
        Self::Partition(partition)
    }
}
