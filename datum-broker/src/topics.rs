//! Topics by name and by id: creation, growth, deletion, and their settings.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use crate::code::Code;
use crate::log::partition::Partition;

/// Bytes in the longest topic name.
const LONGEST_NAME: usize = 249;
/// Partitions that one topic may have: a request cannot make the broker allocate without bound.
const MOST_PARTITIONS: i32 = 10_000;

/// One setting of a topic that the broker knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub name: &'static str,
    pub default: &'static str,
    pub kind: Kind,
}

/// How a setting's value is read; the number is the protocol's `config_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean = 1,
    String = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// Turns on dropping of what every group has committed, for one topic (see
/// [`Builder::delete_consumed`](crate::Builder::delete_consumed)).
pub(crate) const DELETE_CONSUMED: &str = "datum.delete.consumed";

const fn setting(name: &'static str, default: &'static str, kind: Kind) -> Setting {
    Setting { name, default, kind }
}

/// Every setting that a topic may carry. Those that make no sense for a log in memory are kept and told, no more.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("cleanup.policy", "delete", Kind::List),
    setting("compression.type", "producer", Kind::String),
    setting(DELETE_CONSUMED, "false", Kind::Boolean),
    setting("delete.retention.ms", "86400000", Kind::Long),
    setting("file.delete.delay.ms", "60000", Kind::Long),
    setting("flush.messages", "9223372036854775807", Kind::Long),
    setting("flush.ms", "9223372036854775807", Kind::Long),
    setting("index.interval.bytes", "4096", Kind::Int),
    setting("max.compaction.lag.ms", "9223372036854775807", Kind::Long),
    setting("max.message.bytes", "1048588", Kind::Int),
    setting("message.timestamp.after.max.ms", "3600000", Kind::Long),
    setting("message.timestamp.before.max.ms", "9223372036854775807", Kind::Long),
    setting("message.timestamp.type", "CreateTime", Kind::String),
    setting("min.cleanable.dirty.ratio", "0.5", Kind::Double),
    setting("min.compaction.lag.ms", "0", Kind::Long),
    setting("min.insync.replicas", "1", Kind::Int),
    setting("preallocate", "false", Kind::Boolean),
    setting("retention.bytes", "-1", Kind::Long),
    setting("retention.ms", "604800000", Kind::Long),
    setting("segment.bytes", "1073741824", Kind::Int),
    setting("segment.index.bytes", "10485760", Kind::Int),
    setting("segment.jitter.ms", "0", Kind::Long),
    setting("segment.ms", "604800000", Kind::Long),
    setting("unclean.leader.election.enable", "false", Kind::Boolean),
];

/// A topic's settings: what was set, and what the log reads of it.
#[derive(Clone, Debug)]
pub(crate) struct TopicConfig {
    /// What differs from the defaults, by name.
    pub overrides: BTreeMap<String, String>,
    pub retention_ms: i64,
    pub retention_bytes: i64,
    pub max_message_bytes: i64,
    pub log_append_time: bool,
    pub before_max_ms: i64,
    pub after_max_ms: i64,
    pub delete: bool,
    pub compact: bool,
    pub delete_consumed: bool,
}

impl TopicConfig {
    /// Reads settings over the defaults.
    ///
    /// # Errors
    /// What is wrong with which setting, in words for the client.
    pub(crate) fn new(overrides: BTreeMap<String, String>) -> Result<Self, String> {
        for (name, value) in &overrides {
            let Some(setting) = SETTINGS.iter().find(|known| known.name == name) else {
                return Err(format!("Unknown topic config name: {name}"));
            };
            check(setting, value)?;
        }
        let text = |name: &str| -> &str {
            overrides.get(name).map(String::as_str).unwrap_or_else(|| {
                SETTINGS.iter().find(|known| known.name == name).map_or("", |known| known.default)
            })
        };
        let number = |name: &str| text(name).parse::<i64>().unwrap_or(i64::MAX);
        let policies = || text("cleanup.policy").split(',').map(str::trim);
        Ok(Self {
            retention_ms: number("retention.ms"),
            retention_bytes: number("retention.bytes"),
            max_message_bytes: number("max.message.bytes"),
            log_append_time: text("message.timestamp.type") == "LogAppendTime",
            before_max_ms: number("message.timestamp.before.max.ms"),
            after_max_ms: number("message.timestamp.after.max.ms"),
            delete: policies().any(|policy| policy == "delete"),
            compact: policies().any(|policy| policy == "compact"),
            delete_consumed: text(DELETE_CONSUMED) == "true",
            overrides,
        })
    }

    /// Whether retention drops records; a topic that is only compacted keeps them.
    pub(crate) fn deletes(&self) -> bool {
        self.delete
    }

    /// The value of a setting, and whether it was set on the topic.
    pub(crate) fn value<'a>(&'a self, setting: &'a Setting) -> (&'a str, bool) {
        match self.overrides.get(setting.name) {
            Some(value) => (value, true),
            None => (setting.default, false),
        }
    }
}

fn check(setting: &Setting, value: &str) -> Result<(), String> {
    let good = match (setting.name, setting.kind) {
        ("cleanup.policy", _) => {
            value.split(',').all(|policy| matches!(policy.trim(), "delete" | "compact" | ""))
        }
        ("message.timestamp.type", _) => matches!(value, "CreateTime" | "LogAppendTime"),
        ("compression.type", _) => {
            matches!(value, "producer" | "uncompressed" | "gzip" | "snappy" | "lz4" | "zstd")
        }
        ("retention.ms" | "retention.bytes", _) => value.parse::<i64>().is_ok_and(|n| n >= -1),
        (_, Kind::Boolean) => matches!(value, "true" | "false"),
        (_, Kind::Int) => value.parse::<i32>().is_ok_and(|n| n >= 0),
        (_, Kind::Long) => value.parse::<i64>().is_ok_and(|n| n >= 0),
        (_, Kind::Double) => value.parse::<f64>().is_ok_and(|n| (0.0..=1.0).contains(&n)),
        (_, Kind::String | Kind::List) => true,
    };
    if good { Ok(()) } else { Err(format!("Invalid value {value} for configuration {}", setting.name)) }
}

/// A topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub id: Uuid,
    pub config: TopicConfig,
    pub partitions: Vec<Partition>,
}

/// All topics of the broker.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    by_name: BTreeMap<String, Topic>,
    names: HashMap<Uuid, String>,
    /// Where the next first leader goes.
    turn: usize,
}

impl Topics {
    /// Creates a topic whose partitions are led by `nodes` in turn.
    ///
    /// # Errors
    /// `TopicAlreadyExists`, `InvalidTopicException`, `InvalidPartitions`.
    pub(crate) fn create(
        &mut self,
        name: &str,
        id: Uuid,
        partitions: i32,
        config: TopicConfig,
        nodes: &[i32],
    ) -> Result<(), Code> {
        check_name(name)?;
        if self.by_name.contains_key(name) {
            return Err(Code::TopicAlreadyExists);
        }
        if !(1..=MOST_PARTITIONS).contains(&partitions) {
            return Err(Code::InvalidPartitions);
        }
        let partitions = (0..partitions).map(|_| Partition::new(self.next_leader(nodes))).collect();
        self.names.insert(id, name.to_owned());
        self.by_name.insert(name.to_owned(), Topic { id, config, partitions });
        Ok(())
    }

    /// Grows a topic to `count` partitions.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`; `InvalidPartitions` when it has as many already, or `count` is too large.
    pub(crate) fn grow(&mut self, name: &str, count: i32, nodes: &[i32]) -> Result<(), Code> {
        let have = self.by_name.get(name).ok_or(Code::UnknownTopicOrPartition)?.partitions.len();
        let want = usize::try_from(count).map_err(|_| Code::InvalidPartitions)?;
        if want <= have || count > MOST_PARTITIONS {
            return Err(Code::InvalidPartitions);
        }
        let new: Vec<_> = (have..want).map(|_| Partition::new(self.next_leader(nodes))).collect();
        if let Some(topic) = self.by_name.get_mut(name) {
            topic.partitions.extend(new);
        }
        Ok(())
    }

    fn next_leader(&mut self, nodes: &[i32]) -> i32 {
        self.turn += 1;
        nodes[(self.turn - 1) % nodes.len()]
    }

    /// Deletes a topic and answers with it.
    pub(crate) fn delete(&mut self, name: &str) -> Option<Topic> {
        let topic = self.by_name.remove(name)?;
        self.names.remove(&topic.id);
        Some(topic)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Topic> {
        self.by_name.get_mut(name)
    }

    /// The name that belongs to an id.
    pub(crate) fn name_of(&self, id: Uuid) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Topic)> {
        self.by_name.iter().map(|(name, topic)| (name.as_str(), topic))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Topic)> {
        self.by_name.iter_mut().map(|(name, topic)| (name.as_str(), topic))
    }

    /// # Errors
    /// `UnknownTopicOrPartition`.
    pub(crate) fn partition(&self, name: &str, index: i32) -> Result<&Partition, Code> {
        let topic = self.get(name).ok_or(Code::UnknownTopicOrPartition)?;
        let index = usize::try_from(index).map_err(|_| Code::UnknownTopicOrPartition)?;
        topic.partitions.get(index).ok_or(Code::UnknownTopicOrPartition)
    }

    /// # Errors
    /// `UnknownTopicOrPartition`.
    pub(crate) fn partition_mut(&mut self, name: &str, index: i32) -> Result<&mut Partition, Code> {
        let topic = self.get_mut(name).ok_or(Code::UnknownTopicOrPartition)?;
        let index = usize::try_from(index).map_err(|_| Code::UnknownTopicOrPartition)?;
        topic.partitions.get_mut(index).ok_or(Code::UnknownTopicOrPartition)
    }

    /// Bytes in all logs.
    pub(crate) fn bytes(&self) -> u64 {
        self.by_name.values().flat_map(|topic| &topic.partitions).map(Partition::bytes).sum()
    }
}

/// # Errors
/// `InvalidTopicException` for a name that Kafka would refuse.
pub(crate) fn check_name(name: &str) -> Result<(), Code> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let good = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name != "."
        && name != ".."
        && name.bytes().all(legal);
    if good { Ok(()) } else { Err(Code::InvalidTopicException) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<TopicConfig, String> {
        TopicConfig::new(pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    #[test]
    fn settings_are_checked_and_read() {
        let read = config(&[("cleanup.policy", "compact,delete"), ("retention.ms", "-1")]).expect("valid");
        assert!(read.compact && read.delete && !read.log_append_time);
        assert_eq!((read.retention_ms, read.max_message_bytes), (-1, 1_048_588));
        assert!(config(&[("retention.ms", "-2")]).is_err());
        assert!(config(&[("retention.msx", "1")]).is_err_and(|why| why.contains("retention.msx")));
    }

    #[test]
    fn leaders_go_round_and_growth_never_shrinks() {
        let mut topics = Topics::default();
        let settings = config(&[]).expect("the defaults are valid");
        topics.create("a", Uuid::from_u128(1), 3, settings.clone(), &[1, 2]).expect("new");
        let leaders = |topics: &Topics| {
            topics.get("a").expect("there").partitions.iter().map(|p| p.leader).collect::<Vec<_>>()
        };
        assert_eq!(leaders(&topics), [1, 2, 1]);
        topics.grow("a", 4, &[1, 2]).expect("more");
        assert_eq!(leaders(&topics), [1, 2, 1, 2]);
        assert_eq!(topics.grow("a", 4, &[1, 2]), Err(Code::InvalidPartitions));
        let again = topics.create("a", Uuid::from_u128(2), 1, settings.clone(), &[1]);
        assert_eq!(again, Err(Code::TopicAlreadyExists));
        let odd = topics.create("a/b", Uuid::from_u128(2), 1, settings, &[1]);
        assert_eq!(odd, Err(Code::InvalidTopicException));
    }
}
