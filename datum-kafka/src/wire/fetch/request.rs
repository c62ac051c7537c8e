//! What a client asks for.

use super::{FIRST_VERSION_BY_ID, NAME, check_version, flexible};
use crate::wire::WireError;
use crate::wire::topic::TopicRef;
use crate::wire::writer::Writer;

/// A Fetch request of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// How long the broker may wait for `min_bytes`, milliseconds.
    pub max_wait_ms: i32,
    /// The broker answers once it has this many bytes.
    pub min_bytes: i32,
    /// Most bytes of the answer; the first batch comes even if it is larger (KIP-74).
    pub max_bytes: i32,
    /// Whether the answer ends at the last stable offset and lists aborted transactions.
    pub read_committed: bool,
    /// The fetch session, 0 to begin one or to have none. From version 7.
    pub session_id: i32,
    /// The session's epoch: 0 begins one, -1 has none or ends it. From version 7.
    pub session_epoch: i32,
    /// The partitions; in a session, those that changed. The broker fills the answer in this order.
    pub topics: Vec<FetchTopic>,
    /// The partitions to drop from the session. From version 7.
    pub forgotten: Vec<ForgottenTopic>,
    /// The consumer's rack, empty if it has none. From version 11.
    pub rack: Box<str>,
}

impl Default for FetchRequest {
    /// No partitions, no session, `read_committed`, and Kafka's default limits.
    fn default() -> Self {
        Self {
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 50 << 20,
            read_committed: true,
            session_id: 0,
            session_epoch: -1,
            topics: Vec::new(),
            forgotten: Vec::new(),
            rack: "".into(),
        }
    }
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchTopic {
    /// The topic.
    pub topic: TopicRef,
    /// Its partitions.
    pub partitions: Vec<FetchPartition>,
}

/// From where one partition is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    /// The partition's number.
    pub partition: i32,
    /// The epoch of the leader as the client knows it, -1 to have it unchecked. From version 9.
    pub current_leader_epoch: i32,
    /// The first offset wanted.
    pub fetch_offset: i64,
    /// The epoch of the last batch fetched, -1 to have divergence unchecked. From version 12.
    pub last_fetched_epoch: i32,
    /// Most bytes of this partition; a first batch comes even if it is larger.
    pub max_bytes: i32,
}

/// Partitions of one topic that a session no longer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenTopic {
    /// The topic.
    pub topic: TopicRef,
    /// Its partitions' numbers.
    pub partitions: Vec<i32>,
}

impl FetchRequest {
    /// Appends the body, without header.
    ///
    /// # Errors
    /// [`WireError::UnsupportedVersion`], [`WireError::NotExpressible`] if a topic has no id from version 13 on, or
    /// [`WireError::TooLong`].
    pub fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), WireError> {
        check_version(version)?;
        let mut w = Writer::new(out, flexible(version));
        if version <= 14 {
            // Replica id: -1 is a consumer.
            w.i32(-1);
        }
        w.i32(self.max_wait_ms);
        w.i32(self.min_bytes);
        w.i32(self.max_bytes);
        w.i8(i8::from(self.read_committed));
        if version >= 7 {
            w.i32(self.session_id);
            w.i32(self.session_epoch);
        }
        w.array("fetch topics", self.topics.len())?;
        for topic in &self.topics {
            topic.encode(version, &mut w)?;
        }
        if version >= 7 {
            w.array("forgotten topics", self.forgotten.len())?;
            for topic in &self.forgotten {
                topic.encode(version, &mut w)?;
            }
        }
        if version >= 11 {
            w.string("rack", &self.rack)?;
        }
        w.no_tagged_fields();
        Ok(())
    }
}

impl FetchTopic {
    fn encode(&self, version: i16, w: &mut Writer<'_>) -> Result<(), WireError> {
        put_topic(&self.topic, version, w)?;
        w.array("fetch partitions", self.partitions.len())?;
        for partition in &self.partitions {
            partition.encode(version, w);
        }
        w.no_tagged_fields();
        Ok(())
    }
}

impl FetchPartition {
    fn encode(&self, version: i16, w: &mut Writer<'_>) {
        w.i32(self.partition);
        if version >= 9 {
            w.i32(self.current_leader_epoch);
        }
        w.i64(self.fetch_offset);
        if version >= 12 {
            w.i32(self.last_fetched_epoch);
        }
        if version >= 5 {
            // Log start offset: followers tell theirs, a consumer has none.
            w.i64(-1);
        }
        w.i32(self.max_bytes);
        w.no_tagged_fields();
    }
}

impl ForgottenTopic {
    fn encode(&self, version: i16, w: &mut Writer<'_>) -> Result<(), WireError> {
        put_topic(&self.topic, version, w)?;
        w.array("forgotten partitions", self.partitions.len())?;
        for partition in &self.partitions {
            w.i32(*partition);
        }
        w.no_tagged_fields();
        Ok(())
    }
}

fn put_topic(topic: &TopicRef, version: i16, w: &mut Writer<'_>) -> Result<(), WireError> {
    if version < FIRST_VERSION_BY_ID {
        return w.string("topic", &topic.name);
    }
    if !topic.has_id() {
        return Err(WireError::NotExpressible { what: NAME, version });
    }
    w.uuid(&topic.id);
    Ok(())
}
