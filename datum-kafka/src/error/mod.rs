//! What can go wrong in the client.
//!
//! [`KafkaError`] is one pointer wide and cheap to clone, since the failure of one connection or partition is told to
//! everybody who waits on it. [`KafkaError::kind`] is the enum to match on. Every kind names its culprit (a broker, a
//! partition, a setting) and the message says what helps.
//!
//! Whether trying again can help is one question, [`KafkaError::is_retriable`], answered here once: connections that
//! broke, deadlines, and the broker codes whose table row says so.

mod subject;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use datum_net::DialError;
pub use subject::Subject;
use thiserror::Error;

use crate::TopicPartition;
use crate::group::GroupError;
use crate::settings::SettingsError;
pub use crate::wire::batch::BatchError;
pub use crate::wire::{ErrorCode, WireError};

/// A result of this crate.
pub type Result<T, E = KafkaError> = std::result::Result<T, E>;

/// An error of the client: cheap to clone, one pointer wide. Match on [`kind`](Self::kind).
#[derive(Clone, Debug, Error)]
#[error(transparent)]
pub struct KafkaError(Arc<KafkaErrorKind>);

impl KafkaError {
    /// What happened.
    pub fn kind(&self) -> &KafkaErrorKind {
        &self.0
    }

    /// The code, if a broker answered with one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self.kind() {
            KafkaErrorKind::Broker { code, .. } | KafkaErrorKind::Unauthorized { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same request may succeed if tried again, perhaps at another broker.
    pub fn is_retriable(&self) -> bool {
        match self.kind() {
            KafkaErrorKind::Dial(_)
            | KafkaErrorKind::Io { .. }
            | KafkaErrorKind::Closed { .. }
            | KafkaErrorKind::Timeout { .. }
            | KafkaErrorKind::UnknownBroker { .. }
            | KafkaErrorKind::NoLeader { .. } => true,
            KafkaErrorKind::Broker { code, .. } => code.is_retriable(),
            _ => false,
        }
    }

    /// Whether somebody answered at every address, and said that nobody listens there.
    pub fn is_refused(&self) -> bool {
        let KafkaErrorKind::Dial(error) = self.kind() else { return false };
        let refused = |attempt: &datum_net::Attempt| attempt.error.kind() == io::ErrorKind::ConnectionRefused;
        !error.attempts().is_empty() && error.attempts().iter().all(refused)
    }

    /// Whether the connection it happened on is gone.
    pub fn is_connection(&self) -> bool {
        matches!(
            self.kind(),
            KafkaErrorKind::Dial(_)
                | KafkaErrorKind::Io { .. }
                | KafkaErrorKind::Closed { .. }
                | KafkaErrorKind::Timeout { .. }
                | KafkaErrorKind::Oversize { .. }
                | KafkaErrorKind::Protocol { .. }
        )
    }

    /// A broker's refusal: [`KafkaErrorKind::Unauthorized`] if a permission is missing, else [`KafkaErrorKind::Broker`].
    pub fn broker(code: ErrorCode, api: &'static str, subject: Subject) -> Self {
        if is_authorization(code) {
            KafkaErrorKind::Unauthorized { code, api, subject }.into()
        } else {
            KafkaErrorKind::Broker { code, api, subject, message: None }.into()
        }
    }

    /// As [`broker`](Self::broker), with the sentence the broker sent along.
    pub fn broker_says(code: ErrorCode, api: &'static str, subject: Subject, message: Option<&str>) -> Self {
        match message {
            Some(message) if !is_authorization(code) && !message.is_empty() => {
                KafkaErrorKind::Broker { code, api, subject, message: Some(message.into()) }.into()
            }
            _ => Self::broker(code, api, subject),
        }
    }

    /// A response that does not keep to the protocol.
    pub fn protocol(peer: impl Into<Arc<str>>, api: &'static str, fault: ProtocolFault) -> Self {
        KafkaErrorKind::Protocol { peer: peer.into(), api, fault }.into()
    }
}

impl From<KafkaErrorKind> for KafkaError {
    #[cold]
    fn from(kind: KafkaErrorKind) -> Self {
        Self(Arc::new(kind))
    }
}

impl From<DialError> for KafkaError {
    fn from(error: DialError) -> Self {
        KafkaErrorKind::Dial(error).into()
    }
}

impl From<SettingsError> for KafkaError {
    fn from(error: SettingsError) -> Self {
        KafkaErrorKind::Settings(error).into()
    }
}

impl From<GroupError> for KafkaError {
    fn from(error: GroupError) -> Self {
        KafkaErrorKind::Group(error).into()
    }
}

/// What happened. `peer` is the broker's address as dialled.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KafkaErrorKind {
    /// No address answered.
    #[error(transparent)]
    Dial(DialError),
    /// The socket failed while in use.
    #[error("connection to {peer} failed: {error}; it will be opened again")]
    Io {
        /// The broker's address.
        peer: Arc<str>,
        /// The operating system's error.
        error: io::Error,
    },
    /// The peer, or we, closed the connection before this request was answered.
    #[error("connection to {peer} closed before {api} was answered ({reason}); the broker may be restarting")]
    Closed {
        /// The broker's address.
        peer: Arc<str>,
        /// The request.
        api: &'static str,
        /// How it closed.
        reason: CloseReason,
    },
    /// A deadline passed. The connection is closed with it, so that a late answer cannot meet another request.
    #[error("{peer} did not answer {api} within {after:?}; if it is only slow, raise request_timeout")]
    Timeout {
        /// The broker's address.
        peer: Arc<str>,
        /// The request.
        api: &'static str,
        /// The limit.
        after: Duration,
    },
    /// A length prefix beyond the limit; nothing was allocated for it.
    #[error(
        "{peer} announced a response of {announced} bytes, more than the {limit} permitted; raise max_response_bytes \
         if the fetch limits need it, else check that the port speaks plaintext Kafka"
    )]
    Oversize {
        /// The broker's address.
        peer: Arc<str>,
        /// The announced length, negative lengths included.
        announced: i32,
        /// The limit in bytes.
        limit: usize,
    },
    /// A response that does not keep to the protocol. The connection is closed.
    #[error("{peer} answered {api} against the protocol: {fault}; check that it is a Kafka broker")]
    Protocol {
        /// The broker's address.
        peer: Arc<str>,
        /// The request.
        api: &'static str,
        /// What is wrong.
        fault: ProtocolFault,
    },
    /// No version of a request is known to both sides.
    #[error("{peer} speaks {api} {broker}, this client {ours}; upgrade the older side")]
    Unsupported {
        /// The broker's address.
        peer: Arc<str>,
        /// The request.
        api: &'static str,
        /// The broker's versions, or that it has none.
        broker: VersionSpan,
        /// Ours.
        ours: VersionSpan,
    },
    /// A request that cannot be written, such as a name longer than the protocol permits.
    #[error("{api} cannot be encoded: {reason}")]
    Encode {
        /// The request.
        api: &'static str,
        /// What the encoder says.
        reason: Box<str>,
    },
    /// The broker refused.
    #[error(
        "{api} for {subject} failed with {code}{}",
        message.as_ref().map(|m| format!(" ({m})")).unwrap_or_default()
    )]
    Broker {
        /// Its code.
        code: ErrorCode,
        /// The request.
        api: &'static str,
        /// Whom it concerns.
        subject: Subject,
        /// The broker's own words, where the response has room for some.
        message: Option<Box<str>>,
    },
    /// A permission is missing. Never retried.
    #[error("{api} for {subject} is not permitted: {code}; grant it, or use other credentials")]
    Unauthorized {
        /// Its code.
        code: ErrorCode,
        /// The request.
        api: &'static str,
        /// Whom it concerns.
        subject: Subject,
    },
    /// A topic that stayed unknown for the whole grace period.
    #[error("topic `{topic}` does not exist, also not after {waited:?}; check the name, or create it")]
    UnknownTopic {
        /// The topic.
        topic: Arc<str>,
        /// How long it was looked for.
        waited: Duration,
    },
    /// A partition that the topic did not have for the whole grace period.
    #[error(
        "{partition} does not exist, also not after {waited:?}: the topic has {count} partitions, counted from 0; check the number"
    )]
    UnknownPartition {
        /// The partition.
        partition: TopicPartition,
        /// How many there are.
        count: usize,
        /// How long it was looked for.
        waited: Duration,
    },
    /// A broker that metadata does not know (any more).
    #[error("broker {broker} is not (or no longer) part of the cluster's metadata")]
    UnknownBroker {
        /// Its id.
        broker: i32,
    },
    /// The partition has no leader at present, or an unknown one.
    #[error("{partition} has no leader at present; an election may be under way")]
    NoLeader {
        /// The partition.
        partition: TopicPartition,
    },
    /// The topic was deleted and created again while in use; offsets of the old one mean nothing in the new one. The assignment is lost with it:
    /// nothing more is committed, and only a new assignment reads on.
    #[error("topic `{topic}` was deleted and created again while in use; restart, and choose where to start")]
    TopicRecreated {
        /// The topic.
        topic: Arc<str>,
    },
    /// The position is outside of the log, and `offset_reset` is `none`.
    #[error(
        "{partition}: offset {position} is outside of the log ({log_start} to {end}); records were deleted by retention, \
         or the offset is not of this topic. Reset the offset, or set offset_reset to earliest or latest"
    )]
    OffsetOutOfRange {
        /// The partition.
        partition: TopicPartition,
        /// Where the consumer stood.
        position: i64,
        /// The first offset the log holds.
        log_start: i64,
        /// The high watermark.
        end: i64,
    },
    /// No offset is committed, and `offset_reset` is `none`.
    #[error("{partition} has no committed offset; commit one, or set offset_reset to earliest or latest")]
    NoCommittedOffset {
        /// The partition.
        partition: TopicPartition,
    },
    /// The log was cut back below the position after an unclean election; what was read there is gone.
    #[error(
        "{partition}: records below position {position} were lost in an unclean election{}; what was read from there on is not in the \
         log any more. Seek to where to go on, or set offset_reset to earliest or latest",
        end.map(|end| format!(", the log and what was read part at offset {end}")).unwrap_or_default()
    )]
    LogTruncated {
        /// The partition.
        partition: TopicPartition,
        /// Where the consumer stood.
        position: i64,
        /// Up to where the log and what was read agree; `None` if the leader cannot say.
        end: Option<i64>,
    },
    /// A batch that stays unreadable after it was fetched again, or that this client cannot read at all (an unknown codec, an old format).
    #[error(
        "{partition}: the batch at offset {offset} cannot be read: {error}. Seek past it to go on without it"
    )]
    Batch {
        /// The partition.
        partition: TopicPartition,
        /// The first offset that could not be read.
        offset: i64,
        /// What is wrong with it.
        error: BatchError,
    },
    /// A batch larger than any response may be.
    #[error(
        "{partition}: the batch at offset {offset} has {size} bytes, more than max_response_bytes ({limit}); raise it"
    )]
    BatchTooLarge {
        /// The partition.
        partition: TopicPartition,
        /// Where the batch begins, or a little before.
        offset: i64,
        /// The size it needs, as far as is known.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Settings that contradict themselves or the protocol.
    #[error(transparent)]
    Settings(SettingsError),
    /// The place in the group has ended.
    #[error(transparent)]
    Group(GroupError),
    /// The client was closed.
    #[error("the client is closed")]
    Shutdown,
}

/// How a connection ended before an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed between two responses.
    #[error("by the peer")]
    Peer,
    /// The peer closed within a response.
    #[error("by the peer, {missing} bytes short of a whole response")]
    MidResponse {
        /// How many bytes were still to come.
        missing: usize,
    },
    /// Another request on the connection failed in a way that ends it.
    #[error("since another request on it failed")]
    Neighbour,
    /// This side closed it.
    #[error("by this side")]
    Local,
}

/// A response that does not keep to the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolFault {
    /// Responses come in the order of their requests; this one did not.
    #[error("correlation id {got} where {expected} was due")]
    Correlation {
        /// The id of the oldest unanswered request.
        expected: i32,
        /// What came.
        got: i32,
    },
    /// A response nobody had asked for.
    #[error("a response while no request was open")]
    Unasked,
    /// Too short even for its header.
    #[error("a frame of {length} bytes is shorter than a header")]
    Short {
        /// Its length.
        length: usize,
    },
    /// The body cannot be read.
    #[error(transparent)]
    Wire(WireError),
    /// The body decodes but lacks, repeats or contradicts something.
    #[error("{0}")]
    Content(&'static str),
}

/// A range of versions, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionSpan(pub Option<(i16, i16)>);

impl std::fmt::Display for VersionSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some((min, max)) => write!(f, "versions {min} to {max}"),
            None => f.write_str("not at all"),
        }
    }
}

/// Whether a permission is missing.
fn is_authorization(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::TopicAuthorizationFailed
            | ErrorCode::GroupAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::TransactionalIdAuthorizationFailed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_pointer_wide_and_shared_between_threads() {
        fn shared<T: Clone + Send + Sync + 'static>() {}
        shared::<KafkaError>();
        assert_eq!(size_of::<KafkaError>(), size_of::<usize>());
    }

    #[test]
    fn a_missing_permission_is_a_kind_of_its_own_and_never_retried() {
        let error =
            KafkaError::broker(ErrorCode::TopicAuthorizationFailed, "Fetch", Subject::topic("secret"));
        assert!(matches!(error.kind(), KafkaErrorKind::Unauthorized { .. }));
        assert!(!error.is_retriable());
        let text = error.to_string();
        assert!(text.contains("`secret`") && text.contains("TOPIC_AUTHORIZATION_FAILED"), "{text}");
    }
}
