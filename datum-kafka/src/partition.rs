//! The name of one partition of one topic.

use std::fmt;
use std::sync::Arc;

/// One partition of one topic.
///
/// Cloning is a reference count: the topic's name is shared. Orders by topic name, then by partition number, so that every
/// set of partitions has one well-defined order.
///
/// ```
/// use datum_kafka::TopicPartition;
/// assert_eq!(TopicPartition::new("orders", 3).to_string(), "orders-3");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Names `partition` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}
