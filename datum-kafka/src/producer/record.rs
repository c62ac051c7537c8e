//! A record to be produced, and what became of it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{Failure, ticket::Answered};
use crate::{KafkaError, TopicPartition};

/// A record to be produced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerRecord {
    /// Its topic.
    pub topic: Arc<str>,
    /// Its partition; none to have it chosen by the key, or for a record without key by turns.
    pub partition: Option<i32>,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; none is a tombstone for a compacted topic.
    pub value: Option<Bytes>,
    /// Its headers, in order; names may repeat.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    /// Its timestamp in milliseconds since 1970; none for the time of sending.
    pub timestamp: Option<i64>,
}

impl ProducerRecord {
    /// A record with a value for `topic`.
    ///
    /// ```
    /// use datum_kafka::producer::ProducerRecord;
    ///
    /// let record = ProducerRecord::new("orders", "a value").key("a key").timestamp(1_700_000_000_000);
    /// assert_eq!(record.key.as_deref(), Some(&b"a key"[..]));
    /// ```
    pub fn new(topic: impl Into<Arc<str>>, value: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), value: Some(value.into()), ..Self::default() }
    }

    /// A record without a value: it deletes its key from a compacted topic.
    pub fn tombstone(topic: impl Into<Arc<str>>, key: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), key: Some(key.into()), ..Self::default() }
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Sets the timestamp, milliseconds since 1970.
    #[must_use]
    pub fn timestamp(mut self, millis: i64) -> Self {
        self.timestamp = Some(millis);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// About how many bytes it takes in a batch; never less than it does.
    pub(crate) fn size(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| 10 + name.len() + value.as_ref().map_or(0, Bytes::len))
            .sum();
        let blob = |bytes: &Option<Bytes>| 5 + bytes.as_ref().map_or(0, Bytes::len);
        21 + blob(&self.key) + blob(&self.value) + headers
    }
}

/// A record that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Where.
    pub partition: TopicPartition,
    /// Its offset; none if the broker only knows that it was written before.
    pub offset: Option<i64>,
}

/// A record that was not written, or of which that is not certain.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a record for {subject} was not delivered: {why}{}", if *.possibly_written { "; it may have been written nevertheless" } else { "" })]
pub struct SendError {
    /// Its topic or partition.
    pub subject: Arc<str>,
    /// Why.
    pub why: SendFault,
    /// Whether it may be in the log nevertheless. Sending it again may then write it twice.
    pub possibly_written: bool,
}

/// Why a record was not delivered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendFault {
    /// Its batch was given up.
    #[error(transparent)]
    Failed(Failure),
    /// It is larger than the producer takes.
    #[error(
        "it takes {size} bytes and max_request_bytes is {limit}; raise it, and the topic's max.message.bytes with it"
    )]
    TooLarge {
        /// Its size in a batch.
        size: usize,
        /// The setting.
        limit: usize,
    },
    /// The partition asked for does not exist.
    #[error("partition {partition} does not exist, the topic has {count}")]
    NoSuchPartition {
        /// What was asked for.
        partition: i32,
        /// How many there are.
        count: usize,
    },
    /// The topic cannot be found out about.
    #[error(transparent)]
    Topic(KafkaError),
    /// The producer has no identity: the cluster gave it none.
    #[error("the producer got no producer id: {0}")]
    Identity(KafkaError),
    /// The producer was closed.
    #[error("the producer is closed")]
    Closed,
}

impl From<Failure> for SendFault {
    fn from(why: Failure) -> Self {
        match why {
            Failure::Identity(code) => Self::Identity(super::identity::refused(code)),
            why => Self::Failed(why),
        }
    }
}

/// What becomes of one record: a future that is ready when its batch is written or given up. Dropping it recalls nothing.
#[derive(Debug)]
pub struct Delivery {
    pub(super) partition: TopicPartition,
    pub(super) answer: oneshot::Receiver<Answered>,
}

impl Future for Delivery {
    type Output = Result<Delivered, SendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = std::task::ready!(Pin::new(&mut self.answer).poll(cx));
        let subject = || self.partition.to_string().into();
        Poll::Ready(match answer {
            Ok(Ok(offset)) => Ok(Delivered { partition: self.partition.clone(), offset }),
            Ok(Err((why, possibly_written))) => {
                Err(SendError { subject: subject(), why: why.into(), possibly_written })
            }
            Err(_) => Err(SendError { subject: subject(), why: SendFault::Closed, possibly_written: true }),
        })
    }
}
