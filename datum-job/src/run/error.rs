//! Why a job cannot go on.

use std::error::Error;
use std::time::Duration;

use datum_kafka::group::GroupError;
use datum_kafka::transaction::TransactionError;
use datum_kafka::{KafkaError, TopicPartition};
use datum_window::RecordPosition;
use thiserror::Error;

use crate::machine::MachineError;
use crate::protocol::AssignmentError;
use crate::restore::Refusal;
use crate::settings::SettingsError;

/// Why a job cannot go on. Whatever it is, nothing was published twice or lost: a job started again recovers from what is
/// committed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobError {
    /// The start is refused.
    #[error("the job does not start: {0}")]
    Refused(#[from] Refusal),
    /// The group's ownership is broken, or it runs another job.
    #[error(transparent)]
    Ownership(#[from] AssignmentError),
    /// The place in the group has ended.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A record cannot be read, and the policy is to fail.
    #[error("record at offset {} of {topic}-{} cannot be read: {source}; skip or dead-letter such records, or mend the producer", at.offset, at.partition)]
    Unreadable {
        /// The input topic.
        topic: String,
        /// Where.
        at: RecordPosition,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A key lives in a partition that murmur2 does not give it.
    #[error(
        "key `{key}` of the record at offset {offset} of {partition} belongs to partition {belongs} under murmur2: the input \
         is not partitioned by the group key; run without co-partitioned mode, or repartition the input"
    )]
    KeyNotCoPartitioned {
        /// The key.
        key: String,
        /// Where it was met.
        partition: TopicPartition,
        /// Its offset.
        offset: i64,
        /// Where murmur2 puts it.
        belongs: i32,
    },
    /// The topic has grown under a co-partitioned job, or the machine was misused.
    #[error(transparent)]
    Machine(MachineError),
    /// The cluster forbids or lacks something.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    /// A transaction cannot be made here.
    #[error(transparent)]
    Transaction(TransactionError),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(datum_kafka::producer::SendError),
    /// A job reads one topic.
    #[error("the input names {given} topics; a job reads exactly one")]
    OneTopic {
        /// How many were given.
        given: usize,
    },
    /// A job that reads what it writes would not end, or not as meant.
    #[error("`{topic}` is both the input and an output of the job; name another topic for one of them")]
    OutputIsInput {
        /// The topic.
        topic: String,
    },
    /// The windows cannot be used.
    #[error(transparent)]
    Windows(#[from] datum_window::TumblingError),
    /// The aggregates cannot be published.
    #[error(transparent)]
    Aggregates(#[from] datum_window::AggregatesError),
    /// A dead owner's transaction has to be over when its partitions move.
    #[error(
        "transaction timeout {timeout:?} is not below the session timeout {session:?}; lower it, or raise the session timeout"
    )]
    TransactionTimeout {
        /// As set.
        timeout: Duration,
        /// As set.
        session: Duration,
    },
    /// A setting of the machine.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A setting of the clients.
    #[error(transparent)]
    KafkaSettings(datum_kafka::SettingsError),
}
