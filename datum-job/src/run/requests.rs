//! What the driver asks for, done against the cluster.
//!
//! Each request is a future that owns what it needs and hands the producer back; the work goes on meanwhile. What an error
//! means is decided here, once: an [`Answer`] that the driver knows how to go on from, or the end of the job.

use std::sync::Arc;
use std::time::Duration;

use datum_kafka::group::{CommitError, Group, GroupIdentity, Offsets, WaitError};
use datum_kafka::producer::{Producer, ProducerRecord, SendFault};
use datum_kafka::transaction::{AbortReason, TransactionError, TransactionPhase, TransactionalProducer};
use datum_kafka::{ErrorCode, KafkaError, KafkaErrorKind, ProducerSettings, Subject};

use super::facts::{self, Question, Unfinished};
use super::{JobError, JobObserver, JobPoint};
use crate::protocol::{Answer, Lost};

/// What a request came to.
pub(super) enum Outcome {
    Answer(Answer),
    Fatal(JobError),
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

/// What a request gives back.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) producer: Option<TransactionalProducer>,
}

/// How long to wait before a coordinator that could not be reached is asked again.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(200);

/// A new producer takes the transactional id over.
pub(super) async fn init(settings: ProducerSettings) -> Finished {
    let made = async {
        let mut producer = TransactionalProducer::connect(settings).await?;
        producer.init().await?;
        Ok(producer)
    };
    match made.await {
        Ok(producer) => Finished { outcome: Answer::Done.into(), producer: Some(producer) },
        Err(error) => {
            if matches!(&error, TransactionError::Kafka(_)) {
                tokio::time::sleep(UNREACHABLE_PAUSE).await;
            }
            Finished { outcome: transaction_failed(error), producer: None }
        }
    }
}

/// Facts for the start.
pub(super) async fn ask(question: Question, limit: Duration) -> Outcome {
    let mut asked = tokio::time::timeout(limit, facts::ask(&question)).await;
    if let Ok(Ok(facts)) = &mut asked
        && facts.partitions.iter().all(|partition| partition.committed.is_none())
    {
        match facts::has_output(&question, limit).await {
            Ok(exists) => facts.output_exists = exists,
            Err(Unfinished::Kafka(error)) => asked = Ok(Err(error)),
            Err(Unfinished::Silent) => return Answer::Unknown.into(),
        }
    }
    match asked {
        Ok(Ok(facts)) => Answer::Facts(Box::new(facts)).into(),
        Ok(Err(error)) if error.code() == Some(ErrorCode::UnstableOffsetCommit) => Answer::Again.into(),
        Ok(Err(error)) => kafka_failed(error).await,
        Err(_) => Answer::Unknown.into(),
    }
}

/// A heartbeat that confirms the assignment.
pub(super) async fn confirm(group: Group, generation: i32, limit: Duration) -> Outcome {
    let answer = match group.confirm(limit).await {
        Ok(confirmed) if confirmed == generation => Answer::Done,
        Ok(_) => Answer::StaleGeneration,
        Err(WaitError::Timeout { .. }) => Answer::Unknown,
        Err(_) => Answer::Refused(Lost::NotAMember),
    };
    answer.into()
}

/// Output into the transaction, which it begins.
pub(super) async fn produce(
    mut producer: TransactionalProducer,
    records: Vec<ProducerRecord>,
    observer: Arc<dyn JobObserver>,
) -> Finished {
    let sent = async {
        begin(&mut producer, &*observer).await?;
        for record in records {
            // Its fate is the transaction's.
            drop(producer.send(record).await?);
        }
        producer.flush().await
    };
    let outcome = match sent.await {
        Ok(()) => Answer::Done.into(),
        Err(error) => transaction_failed(error),
    };
    Finished { outcome, producer: Some(producer) }
}

/// Offsets into the transaction, which it begins if there was no output.
pub(super) async fn commit_offsets(
    mut producer: TransactionalProducer,
    offsets: Offsets,
    group: Group,
    identity: GroupIdentity,
    observer: Arc<dyn JobObserver>,
) -> Finished {
    let sent = async {
        begin(&mut producer, &*observer).await?;
        producer.send_offsets(&offsets, &identity).await
    };
    let outcome = match sent.await {
        Ok(()) => Answer::Done.into(),
        Err(TransactionError::Generation { code, .. }) => match code {
            // The heartbeat will tell which generation this member is in now.
            ErrorCode::IllegalGeneration | ErrorCode::RebalanceInProgress => Answer::StaleGeneration.into(),
            _ => {
                group.refused(code, &identity);
                Answer::Refused(Lost::NotAMember).into()
            }
        },
        Err(error) => transaction_failed(error),
    };
    Finished { outcome, producer: Some(producer) }
}

/// The end of the transaction, committing.
pub(super) async fn end(mut producer: TransactionalProducer, observer: Arc<dyn JobObserver>) -> Finished {
    observer.at(JobPoint::OutputWritten);
    let outcome = match producer.commit().await {
        Ok(()) => {
            observer.at(JobPoint::TransactionEnded);
            Answer::Done.into()
        }
        Err(error) => transaction_failed(error),
    };
    Finished { outcome, producer: Some(producer) }
}

/// Output outside of a transaction, acknowledged by all.
pub(super) async fn produce_plain(
    producer: Arc<Producer>,
    records: Vec<ProducerRecord>,
    observer: Arc<dyn JobObserver>,
) -> Outcome {
    observer.at(JobPoint::BeforeTransaction);
    let sent = async {
        let mut deliveries = Vec::with_capacity(records.len());
        for record in records {
            deliveries.push(producer.send(record).await?);
        }
        for delivery in deliveries {
            delivery.await?;
        }
        Ok(())
    };
    match sent.await {
        Ok(()) => {
            observer.at(JobPoint::OutputWritten);
            Answer::Done.into()
        }
        Err(error) => send_failed(error),
    }
}

/// Offsets outside of a transaction.
pub(super) async fn commit_plain(
    group: Group,
    offsets: Offsets,
    limit: Duration,
    observer: Arc<dyn JobObserver>,
) -> Outcome {
    match group.commit(offsets, limit).await {
        Ok(()) => {
            observer.at(JobPoint::TransactionEnded);
            Answer::Done.into()
        }
        Err(CommitError::NotOwned { .. } | CommitError::Lost { .. } | CommitError::Ended) => {
            Answer::Refused(Lost::NotAMember).into()
        }
        Err(CommitError::Refused { code, partition }) if !code.is_retriable() => {
            let error = KafkaError::broker(code, "OffsetCommit", Subject::Partition(partition));
            Outcome::Fatal(error.into())
        }
        Err(_) => Answer::Unknown.into(),
    }
}

async fn begin(
    producer: &mut TransactionalProducer,
    observer: &dyn JobObserver,
) -> Result<(), TransactionError> {
    if producer.phase() == TransactionPhase::Ready {
        observer.at(JobPoint::BeforeTransaction);
        producer.begin().await?;
    }
    Ok(())
}

fn transaction_failed(error: TransactionError) -> Outcome {
    tracing::warn!(%error, "a transaction was not completed");
    match error {
        TransactionError::Fenced { .. } => Answer::Refused(Lost::Fenced).into(),
        TransactionError::OutcomeUnknown { .. } => {
            // It was asked for again for as long as it makes sense.
            Answer::Refused(Lost::Unknown(crate::protocol::Request::EndTransaction)).into()
        }
        TransactionError::Abortable { ref why, .. } if forbids(why) => {
            Outcome::Fatal(JobError::Transaction(error))
        }
        TransactionError::Abortable { .. } | TransactionError::Generation { .. } => {
            Answer::Refused(Lost::NotCommitted).into()
        }
        TransactionError::Kafka(error) if fatal(&error) => Outcome::Fatal(error.into()),
        TransactionError::Kafka(_) => Answer::Unknown.into(),
        TransactionError::Send(error) => send_failed(error),
        // The coordinator and this producer disagree: another one, after another assignment, finds out.
        TransactionError::Refused { code, .. } if !is_forbidden(code) => {
            Answer::Refused(Lost::NotCommitted).into()
        }
        error => Outcome::Fatal(JobError::Transaction(error)),
    }
}

fn send_failed(error: datum_kafka::producer::SendError) -> Outcome {
    match &error.why {
        SendFault::Failed(_) | SendFault::Identity(_) | SendFault::Closed => {
            tracing::warn!(%error, "output was not written");
            Answer::Refused(Lost::NotCommitted).into()
        }
        SendFault::Topic(cause) if !fatal(cause) => Answer::Refused(Lost::NotCommitted).into(),
        _ => Outcome::Fatal(JobError::Output(error)),
    }
}

async fn kafka_failed(error: KafkaError) -> Outcome {
    if fatal(&error) {
        return Outcome::Fatal(error.into());
    }
    tracing::warn!(%error, "facts for the start could not be had; they are asked for again");
    tokio::time::sleep(UNREACHABLE_PAUSE).await;
    Answer::Unknown.into()
}

/// Whether a person has to change something first.
fn fatal(error: &KafkaError) -> bool {
    matches!(
        error.kind(),
        KafkaErrorKind::Unauthorized { .. }
            | KafkaErrorKind::UnknownTopic { .. }
            | KafkaErrorKind::Unsupported { .. }
            | KafkaErrorKind::Settings(_)
            | KafkaErrorKind::Oversize { .. }
    ) || error.code().is_some_and(is_forbidden)
}

fn is_forbidden(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::TopicAuthorizationFailed
            | ErrorCode::GroupAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::TransactionalIdAuthorizationFailed
            | ErrorCode::OffsetMetadataTooLarge
            | ErrorCode::InvalidTransactionTimeout
    )
}

fn forbids(why: &AbortReason) -> bool {
    match why {
        AbortReason::Partition { code, .. } | AbortReason::Request { code, .. } => is_forbidden(*code),
        _ => false,
    }
}
