//! What can go wrong in a command, and the exit code it ends with.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use datum::job::run::JobError;
use datum::kafka::TopicPartition;

use crate::options::OnBadRecord;

/// Why a command ended without doing what it was asked for. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line or a setting is wrong.
    #[error("{0}")]
    Usage(#[from] UsageError),
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried: `read`, `write`, `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of the input is not a record, and the policy is to fail.
    #[error(
        "{path}:{line} is not a record: {reason}; `--on-bad-record skip` counts and skips such lines",
        path = path.display()
    )]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What the decoder said.
        reason: String,
    },
    /// The embedded broker does not start.
    #[error(transparent)]
    Broker(#[from] datum::broker::StartError),
    /// The Kafka client gave up; it names the culprit and the remedy.
    #[error(transparent)]
    Kafka(#[from] datum::kafka::KafkaError),
    /// The job ended; it names the culprit and the remedy.
    #[error(transparent)]
    Job(JobError),
    /// A record of the job's input cannot be decoded, and the policy is to fail.
    #[error(
        "offset {offset} of {partition} is not a record: {source}; `--on-bad-record skip` counts and skips such records, \
         `--on-bad-record dead-letter` keeps them in `--dead-letter-topic`"
    )]
    Undecodable {
        /// Where.
        partition: TopicPartition,
        /// Its offset.
        offset: i64,
        /// What the decoder said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The input is not partitioned as `--co-partitioned` promises.
    #[error(
        "key `{key}` of the record at offset {offset} of {partition} belongs to partition {belongs} under murmur2: the input \
         does not keep what `--co-partitioned` promises; run without it (in another group), or repartition the input"
    )]
    NotCoPartitioned {
        /// The key.
        key: String,
        /// Where it was met.
        partition: TopicPartition,
        /// Its offset.
        offset: i64,
        /// Where murmur2 puts it.
        belongs: i32,
    },
    /// Offsets cannot be set beside a member that commits its own.
    #[error(
        "group {group} has members; stop them (or wait until their sessions have expired), then try again"
    )]
    GroupHasMembers {
        /// The group.
        group: String,
    },
    /// A transaction could not be ended.
    #[error(transparent)]
    Transaction(#[from] datum::kafka::transaction::TransactionError),
    /// The task that generates records was lost.
    #[error("the generator of records failed; please report this")]
    Generator,
    /// A record was not written.
    #[error(transparent)]
    Send(#[from] datum::kafka::producer::SendError),
    /// The histogram of the probe cannot be made.
    #[error("the histogram cannot be made")]
    Histogram,
    /// No threads, or no notifications of the system's.
    #[error("the system gives no runtime: {0}")]
    Runtime(#[source] io::Error),
    /// The stream failed; it names the stage, the culprit and the remedy.
    #[error(transparent)]
    Stream(#[from] datum::StreamError),
    /// The standard output could not be written.
    #[error("cannot write to the standard output: {0}")]
    Output(#[source] io::Error),
}

/// Remedies that are options here are named as options; the library's words are those of its API.
impl From<JobError> for CliError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Unreadable { topic, at, source } => {
                let partition = i32::try_from(at.partition).unwrap_or(i32::MAX);
                Self::Undecodable {
                    partition: TopicPartition::new(topic, partition),
                    offset: at.offset,
                    source,
                }
            }
            JobError::KeyNotCoPartitioned { key, partition, offset, belongs } => {
                Self::NotCoPartitioned { key, partition, offset, belongs }
            }
            error => Self::Job(error),
        }
    }
}

/// What is wrong with the command line or a setting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    /// Two options, or an option and its absence, make no sense together.
    #[error("{what}; {remedy}")]
    Combination {
        /// What does not fit.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The crash that was asked for is not one.
    #[cfg(feature = "crash-points")]
    #[error(
        "{variable}={given} is no crash point; write `POINT:kill` or `POINT:stop` with before-transaction, output-written or transaction-ended"
    )]
    CrashPoint {
        /// The variable of the environment.
        variable: &'static str,
        /// What it holds.
        given: String,
    },
    /// The windows described cannot be.
    #[error("the windows cannot be made: {0}")]
    Windows(#[from] datum::window::TumblingError),
}

impl UsageError {
    /// A policy of dead letters and their topic, of which neither makes sense without the other.
    pub(crate) fn dead_letters(policy: OnBadRecord, topic: Option<&str>) -> Result<(), Self> {
        match (policy == OnBadRecord::DeadLetter, topic) {
            (true, None) => Err(Self::combination(
                "`--on-bad-record dead-letter` has no topic to send to",
                "name one with `--dead-letter-topic`",
            )),
            (false, Some(_)) => Err(Self::combination(
                "`--dead-letter-topic` is given and nothing is sent there",
                "add `--on-bad-record dead-letter`",
            )),
            _ => Ok(()),
        }
    }

    /// What does not fit together, and what to do.
    pub(crate) fn combination(what: &str, remedy: &str) -> Self {
        Self::Combination { what: what.into(), remedy: remedy.into() }
    }
}

impl CliError {
    /// 1: the job failed. 2: the command line or a setting is wrong.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::from(1),
        }
    }

    /// Whether whoever read the output has gone, as `head` does: then there is nothing to complain about.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// For `map_err` on file operations.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
