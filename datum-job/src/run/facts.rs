//! What a start is decided from, asked of the cluster.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use datum_kafka::admin::{Admin, OffsetSpec};
use datum_kafka::cluster::Cluster;
use datum_kafka::consumer::Consumer;
use datum_kafka::{ConsumerSettings, ErrorCode, Isolation, KafkaError, StartAt, Subject, TopicPartition};

use crate::restore::{Committed, PartitionFacts, StartFacts};
use crate::stored::{Stored, TopicId};

/// The header by which output names the group it came from.
pub(super) const GROUP_HEADER: &[u8] = b"datum-group";
/// The header by which output of a co-partitioned job names the partition it came from.
pub(super) const PARTITION_HEADER: &[u8] = b"datum-partition";

/// Why the output could not be looked through.
pub(super) enum Unfinished {
    Kafka(KafkaError),
    /// No batch came within the limit.
    Silent,
}

impl From<KafkaError> for Unfinished {
    fn from(error: KafkaError) -> Self {
        Self::Kafka(error)
    }
}

/// Whose facts are wanted.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) cluster: Cluster,
    pub(super) group: Arc<str>,
    pub(super) topic: Arc<str>,
    /// The partition of a co-partitioned job; else all.
    pub(super) only: Option<u32>,
    pub(super) input: ConsumerSettings,
    pub(super) output: datum_kafka::ClientSettings,
    pub(super) output_topics: Vec<Arc<str>>,
    pub(super) reset: bool,
}

/// Asks for all but whether output exists; see [`has_output`].
pub(super) async fn ask(question: &Question) -> Result<StartFacts, KafkaError> {
    let Question { cluster, group, topic, .. } = question;
    let admin = Admin::new(cluster.clone());
    // A job that recovers gives its topic the time that a running consumer gives it, not that of a command.
    cluster.require_topics([topic.clone()]).await?;
    let metadata = cluster.metadata();
    let unknown =
        || KafkaError::broker(ErrorCode::UnknownTopicOrPartition, "Metadata", Subject::topic(topic.clone()));
    let found = metadata.topic(topic).ok_or_else(unknown)?;
    let count = u32::try_from(found.partitions.len()).unwrap_or(u32::MAX);
    let wanted: Vec<u32> = match question.only {
        Some(partition) => vec![partition],
        None => (0..count).collect(),
    };
    let partitions: Vec<TopicPartition> = wanted.iter().map(|p| partition(topic, *p)).collect();
    let all: Vec<TopicPartition> = (0..count).map(|p| partition(topic, p)).collect();
    let mut committed = admin.committed_offsets(group, &all).await?;
    let known_count = committed
        .values()
        .filter_map(|c| Stored::from_text(c.offset, &c.metadata).ok().flatten())
        .map(|stored| stored.partitions)
        .max();
    committed.retain(|tp, _| partitions.contains(tp));
    let starts = ends(&admin, &partitions, OffsetSpec::Earliest).await?;
    let ends = ends(&admin, &partitions, OffsetSpec::Latest).await?;
    let policy = admin.topic_config(topic, &["cleanup.policy"]).await?;
    let compacted = policy.get("cleanup.policy").is_some_and(|p| p.contains("compact"));
    let facts = wanted.iter().zip(&partitions).map(|(number, tp)| PartitionFacts {
        partition: *number,
        committed: committed
            .get(tp)
            .map(|c| Committed { offset: c.offset, metadata: c.metadata.to_string() }),
        log_start: starts.get(tp).copied().unwrap_or(0),
        high_watermark: ends.get(tp).copied().unwrap_or(0),
    });
    Ok(StartFacts {
        topic: TopicId(found.id),
        partition_count: count,
        partitions: facts.collect(),
        known_count,
        compacted,
        output_exists: false,
        reset: question.reset,
    })
}

/// The logs' first offsets of partitions that have appeared, by number: all of them or none, so that no count is ever
/// stored above a partition that was left out.
pub(super) async fn log_starts(
    cluster: &Cluster,
    topic: &Arc<str>,
    numbers: Range<u32>,
) -> Result<Vec<(u32, i64)>, KafkaError> {
    let partitions: Vec<TopicPartition> = numbers.clone().map(|number| partition(topic, number)).collect();
    let found = ends(&Admin::new(cluster.clone()), &partitions, OffsetSpec::Earliest).await?;
    Ok(numbers.zip(&partitions).map(|(number, tp)| (number, found.get(tp).copied().unwrap_or(0))).collect())
}

async fn ends(
    admin: &Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Result<HashMap<TopicPartition, i64>, KafkaError> {
    let wanted: Vec<_> = partitions.iter().map(|tp| (tp.clone(), spec)).collect();
    // The high watermark: the stable offset says nothing while somebody's transaction is open.
    let found = admin.list_offsets(&wanted, Isolation::ReadUncommitted).await?;
    Ok(found.into_iter().filter_map(|(tp, offset)| Some((tp, offset.offset?))).collect())
}

/// Whether some output topic holds a committed record of this group (and partition). Reads them from the start until one
/// is found: only a group without any offset asks, and its output is empty unless something is wrong. A topic shared with others
/// may be long, so `limit` bounds the wait for each batch, not the whole.
pub(super) async fn has_output(question: &Question, limit: Duration) -> Result<bool, Unfinished> {
    let topics: Vec<&Arc<str>> = question.output_topics.iter().collect();
    if topics.is_empty() {
        return Ok(false);
    }
    let cluster = Cluster::connect(question.output.clone()).await?;
    let admin = Admin::new(cluster.clone());
    for topic in topics {
        if topic_has_output(question, &cluster, &admin, topic, limit).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn topic_has_output(
    question: &Question,
    cluster: &Cluster,
    admin: &Admin,
    topic: &Arc<str>,
    limit: Duration,
) -> Result<bool, Unfinished> {
    cluster.require_topics([topic.clone()]).await?;
    let metadata = cluster.metadata();
    let count = u32::try_from(metadata.partition_count(topic).unwrap_or(0)).unwrap_or(0);
    let partitions: Vec<TopicPartition> = (0..count).map(|p| partition(topic, p)).collect();
    let wanted: Vec<_> = partitions.iter().map(|tp| (tp.clone(), OffsetSpec::Latest)).collect();
    // Up to the stable offset only: what lies in open transactions is not output, and would be waited for.
    let stable = admin.list_offsets(&wanted, Isolation::ReadCommitted).await?;
    let mut open: HashMap<TopicPartition, i64> =
        stable.into_iter().filter_map(|(tp, offset)| Some((tp, offset.offset?))).collect();
    let starts = ends(admin, &partitions, OffsetSpec::Earliest).await?;
    open.retain(|tp, end| starts.get(tp).copied().unwrap_or(0) < *end);
    let mut settings = question.input.clone();
    settings.topics.clear();
    settings.isolation = Isolation::ReadCommitted;
    settings.assignment = open.keys().map(|tp| (tp.clone(), StartAt::Beginning)).collect();
    let mut consumer = Consumer::on(cluster.clone(), &settings)?;
    while !open.is_empty() {
        let batch = tokio::time::timeout(limit, consumer.next()).await.map_err(|_| Unfinished::Silent)??;
        if batch.records().any(|record| is_ours(question, &record)) {
            return Ok(true);
        }
        if open.get(batch.partition()).is_some_and(|end| batch.next_offset() >= *end) {
            open.remove(batch.partition());
        }
    }
    Ok(false)
}

fn is_ours(question: &Question, record: &datum_kafka::wire::batch::Record<'_>) -> bool {
    let mut group = false;
    let mut partition = question.only.is_none();
    let wanted = question.only.map(|p| p.to_string());
    for header in record.headers() {
        let value = header.value.unwrap_or_default();
        group |= header.key == GROUP_HEADER && value == question.group.as_bytes();
        partition |= header.key == PARTITION_HEADER
            && wanted.as_deref().is_some_and(|wanted| value == wanted.as_bytes());
    }
    group && partition
}

pub(super) fn partition(topic: &Arc<str>, number: u32) -> TopicPartition {
    TopicPartition::new(topic.clone(), i32::try_from(number).unwrap_or(i32::MAX))
}
