//! Settings of a consumer.

use std::sync::Arc;
use std::time::Duration;

use super::error::topic;
use super::{ClientSettings, FetchSettings, GroupSettings, SettingsError};
use crate::TopicPartition;

/// Which records a consumer sees while transactions write to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Records of open and of aborted transactions too.
    ReadUncommitted,
    /// Only what was committed (or written without a transaction), in log order, up to the last stable offset. The default:
    /// it costs nothing on topics without transactions, and an aborted record never was.
    #[default]
    ReadCommitted,
}

/// Where to start when there is no committed offset, or when it is outside of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OffsetReset {
    /// At the first record the log holds. The default, unlike Kafka's: a pipeline that skips what was written before its
    /// first start, or during an outage longer than retention, loses data without a word.
    #[default]
    Earliest,
    /// At the end: only what is written from now on. Partitions that appear later still start at their beginning.
    Latest,
    /// Nowhere: the stream fails and says so.
    None,
}

/// Where a manually assigned partition starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At the first record the log holds.
    Beginning,
    /// At the end; with [`Isolation::ReadCommitted`] at the last stable offset.
    End,
    /// At this offset.
    Offset(i64),
    /// At the first record whose timestamp (milliseconds since the epoch) is this or later, or at the end if none is.
    Timestamp(i64),
}

/// Settings of a consumer: which topics, as a member of which group or by manual assignment, and how it fetches.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConsumerSettings {
    /// Connections and metadata.
    pub client: ClientSettings,
    /// Group membership; unused with a manual assignment.
    pub group: GroupSettings,
    /// Topics to subscribe to.
    pub topics: Vec<Arc<str>>,
    /// Partitions assigned by hand, without a group.
    pub assignment: Vec<(TopicPartition, StartAt)>,
    /// Sizes and waits of fetching.
    pub fetch: FetchSettings,
    /// What is seen of transactions. Default [`Isolation::ReadCommitted`].
    pub isolation: Isolation,
    /// Where to start without a valid offset. Default [`OffsetReset::Earliest`].
    pub offset_reset: OffsetReset,
}

impl ConsumerSettings {
    /// Settings for the cluster behind `bootstrap` (`host:port`, several separated by commas).
    pub fn new(bootstrap: &str) -> Self {
        Self {
            client: ClientSettings::new(bootstrap),
            group: GroupSettings::default(),
            topics: Vec::new(),
            assignment: Vec::new(),
            fetch: FetchSettings::default(),
            isolation: Isolation::default(),
            offset_reset: OffsetReset::default(),
        }
    }

    /// Joins this group.
    pub fn group(mut self, group: &str) -> Self {
        self.group.group = group.into();
        self
    }

    /// Subscribes to one more topic.
    pub fn topic(mut self, topic: &str) -> Self {
        self.topics.push(topic.into());
        self
    }

    /// Assigns one more partition by hand.
    pub fn assign(mut self, partition: TopicPartition, start: StartAt) -> Self {
        self.assignment.push((partition, start));
        self
    }

    /// Sets [`isolation`](Self#structfield.isolation).
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets [`offset_reset`](Self#structfield.offset_reset).
    pub fn offset_reset(mut self, reset: OffsetReset) -> Self {
        self.offset_reset = reset;
        self
    }

    /// Sets [`client.client_id`](ClientSettings#structfield.client_id).
    pub fn client_id(mut self, id: &str) -> Self {
        self.client = self.client.client_id(id);
        self
    }

    /// Sets [`client.metadata_max_age`](ClientSettings#structfield.metadata_max_age).
    pub fn metadata_max_age(mut self, age: Duration) -> Self {
        self.client = self.client.metadata_max_age(age);
        self
    }

    /// Sets [`group.instance_id`](GroupSettings#structfield.instance_id).
    pub fn instance_id(mut self, id: &str) -> Self {
        self.group.instance_id = Some(id.into());
        self
    }

    /// Sets [`group.session_timeout`](GroupSettings#structfield.session_timeout), and the heartbeat interval to at most a third of it.
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.group.session_timeout = timeout;
        self.group.heartbeat_interval = self.group.heartbeat_interval.min(timeout / 3);
        self
    }

    /// Sets [`group.cooperative`](GroupSettings#structfield.cooperative).
    pub fn cooperative(mut self, cooperative: bool) -> Self {
        self.group.cooperative = cooperative;
        self
    }

    /// Sets [`group.commit_interval`](GroupSettings#structfield.commit_interval).
    pub fn commit_interval(mut self, interval: Duration) -> Self {
        self.group.commit_interval = interval;
        self
    }

    /// Changes the client settings.
    pub fn with_client(mut self, change: impl FnOnce(ClientSettings) -> ClientSettings) -> Self {
        self.client = change(self.client);
        self
    }

    /// Changes the fetch settings.
    ///
    /// ```
    /// use datum_kafka::ConsumerSettings;
    /// let settings = ConsumerSettings::new("localhost:9092").with_fetch(|fetch| fetch.partition_max_bytes(1 << 20));
    /// assert_eq!(settings.fetch.partition_max_bytes, 1 << 20);
    /// ```
    pub fn with_fetch(mut self, change: impl FnOnce(FetchSettings) -> FetchSettings) -> Self {
        self.fetch = change(self.fetch);
        self
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that does not hold.
    pub fn validate(&self) -> Result<(), SettingsError> {
        self.client.validate()?;
        self.fetch.validate(self.client.max_response_bytes)?;
        for name in self.topics.iter().chain(self.assignment.iter().map(|(partition, _)| &partition.topic)) {
            topic(name)?;
        }
        match (self.topics.is_empty(), self.assignment.is_empty()) {
            (true, true) => Err(SettingsError::Missing {
                setting: "topic",
                remedy: "name topics with .topic(..), or partitions with .assign(..)",
            }),
            (false, false) => Err(SettingsError::Conflict {
                first: "topic",
                second: "assign",
                remedy: "either subscribe as a member of a group or assign partitions by hand",
            }),
            (false, true) => self.group.validate(),
            (true, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_contradictions_and_names_the_setting() {
        let base = || ConsumerSettings::new("localhost:9092");
        let err = |settings: ConsumerSettings| settings.validate().unwrap_err().to_string();
        assert!(err(base()).starts_with("topic is not set"));
        assert!(err(base().topic("a")).starts_with("group ``"));
        assert!(err(base().group("g").topic("a b")).contains("`a b`"));
        assert!(
            err(ConsumerSettings::new("nowhere").group("g").topic("a")).starts_with("bootstrap: `nowhere`")
        );
        let both = base().group("g").topic("a").assign(TopicPartition::new("a", 0), StartAt::End);
        assert!(err(both).contains("do not go together"));
        assert!(
            err(base().group("g").topic("a").session_timeout(Duration::ZERO)).starts_with("session_timeout")
        );
        let wide = base().group("g").topic("a").with_fetch(|f| f.max_bytes(1 << 30));
        assert!(err(wide).starts_with("fetch.max_bytes and max_response_bytes"));
        base().group("g").topic("a").validate().unwrap();
        base().assign(TopicPartition::new("a", 0), StartAt::Beginning).validate().unwrap();
    }
}
