//! Where a job runs and how.

use std::sync::Arc;
use std::time::Duration;

use datum_kafka::{ConsumerSettings, ProducerSettings};

use super::JobError;
use crate::protocol::{Delivery, Ending};

/// Where a job reads and writes, and how it behaves in its group.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunSettings {
    /// The input: bootstrap, group, session, exactly one topic, fetch sizes. Isolation is read committed and the offset
    /// policy none, whatever is set: the job decides where to start.
    pub input: ConsumerSettings,
    /// The output: bootstrap, compression, batches. Transactional id and timeout are the job's.
    pub output: ProducerSettings,
    /// The topics that may hold this group's output: looked through for a sign of an earlier run when the group has no
    /// offsets.
    pub output_topics: Vec<Arc<str>>,
    /// What a crash may do to the output. Default: exactly once.
    pub delivery: Delivery,
    /// When it ends by itself. Default: never.
    pub ending: Ending,
    /// Start at the group's offsets though they carry no state, or afresh though output exists. Default: false.
    pub reset: bool,
    /// The longest a transaction may be open: 8 s, below the session timeout, so that a dead owner's transaction is over
    /// when its partitions move.
    pub transaction_timeout: Duration,
    /// How long one request to a coordinator or for facts may take before it counts as unknown: 10 s.
    pub request_limit: Duration,
    /// How often metadata is fetched, so that a new partition is met in time: 5 s.
    pub metadata_interval: Duration,
    /// How long leaving the group may take at the end: 5 s.
    pub leave_limit: Duration,
}

impl RunSettings {
    /// The defaults for an input and an output. A session timeout that was not chosen becomes 10 s.
    #[must_use]
    pub fn new(input: ConsumerSettings, output: ProducerSettings) -> Self {
        let chosen = input.group.session_timeout != datum_kafka::GroupSettings::default().session_timeout;
        let input = if chosen { input } else { input.session_timeout(Duration::from_secs(10)) };
        Self {
            input,
            output,
            output_topics: Vec::new(),
            delivery: Delivery::ExactlyOnce,
            ending: Ending::Never,
            reset: false,
            transaction_timeout: Duration::from_secs(8),
            request_limit: Duration::from_secs(10),
            metadata_interval: Duration::from_secs(5),
            leave_limit: Duration::from_secs(5),
        }
    }

    /// The input topic.
    pub(super) fn topic(&self) -> Result<Arc<str>, JobError> {
        match &self.input.topics[..] {
            [topic] => Ok(topic.clone()),
            topics => Err(JobError::OneTopic { given: topics.len() }),
        }
    }

    /// The group.
    pub(super) fn group(&self) -> Arc<str> {
        self.input.group.group.clone()
    }

    pub(super) fn check(&self) -> Result<(), JobError> {
        self.topic()?;
        self.input.validate().map_err(JobError::KafkaSettings)?;
        self.output.validate().map_err(JobError::KafkaSettings)?;
        let session = self.input.group.session_timeout;
        if self.delivery == Delivery::ExactlyOnce && self.transaction_timeout >= session {
            return Err(JobError::TransactionTimeout { timeout: self.transaction_timeout, session });
        }
        Ok(())
    }
}

/// The transactional id of a job's owner: the group's name, or `{group}/{topic}/{partition}` of a co-partitioned job's.
#[must_use]
pub fn transactional_id(group: &str, topic: &str, partition: Option<u32>) -> Arc<str> {
    match partition {
        None => group.into(),
        Some(partition) => format!("{group}/{topic}/{partition}").into(),
    }
}
