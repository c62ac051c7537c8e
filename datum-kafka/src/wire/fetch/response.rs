//! What a broker answers.

use super::{FIRST_VERSION_BY_ID, NAME, check_version, flexible};
use crate::wire::batch::AbortedTransaction;
use crate::wire::leader::{CurrentLeader, NodeEndpoint};
use crate::wire::reader::Reader;
use crate::wire::topic::TopicKey;
use crate::wire::{ErrorCode, WireError};
use bytes::Bytes;

/// The answer to a Fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResponse {
    /// How long the broker delayed the answer because of a quota, milliseconds.
    pub throttle_ms: i32,
    /// An error of the whole request, for instance of the session.
    pub error: ErrorCode,
    /// The session, 0 if there is none.
    pub session_id: i32,
    /// The partitions; in a session only those with news.
    pub topics: Vec<FetchedTopic>,
    /// Where the leaders named in the partitions are. From version 16.
    pub endpoints: Vec<NodeEndpoint>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    /// The topic, named as this version does.
    pub topic: TopicKey,
    /// Its partitions.
    pub partitions: Vec<FetchedPartition>,
}

/// What came of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition {
    /// The partition's number.
    pub partition: i32,
    /// The partition's error.
    pub error: ErrorCode,
    /// The end of what consumers may read, -1 with an error.
    pub high_watermark: i64,
    /// The end of what `read_committed` may read, -1 if it is not known.
    pub last_stable_offset: i64,
    /// The first offset still in the log, -1 before version 5.
    pub log_start_offset: i64,
    /// The aborted transactions that overlap the records; empty unless `read_committed` was asked.
    pub aborted: Vec<AbortedTransaction>,
    /// A replica to fetch from instead, -1 if there is none. From version 11.
    pub preferred_read_replica: i32,
    /// Record batches, a slice of the frame; see [`crate::wire::batch::BatchSet`].
    pub records: Bytes,
    /// Set if the log was truncated below what the client has fetched. From version 12.
    pub diverging: Option<DivergingEpoch>,
    /// Who leads now, with an error that says this broker does not. From version 12.
    pub current_leader: Option<CurrentLeader>,
}

/// Up to where the client's log and the leader's agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivergingEpoch {
    /// The largest epoch both have.
    pub epoch: i32,
    /// Where that epoch ends at the leader.
    pub end_offset: i64,
}

impl FetchResponse {
    /// Reads the body, without header. Records are slices of `body`.
    ///
    /// # Errors
    /// [`WireError`], naming the field.
    pub fn decode(version: i16, body: &Bytes) -> Result<Self, WireError> {
        check_version(version)?;
        let mut r = Reader::new(body, flexible(version));
        let throttle_ms = r.i32("throttle time")?;
        let (error, session_id) = if version >= 7 {
            (r.i16("error code")?.into(), r.i32("session id")?)
        } else {
            (ErrorCode::None, 0)
        };
        let count = r.array("fetched topics", MIN_TOPIC)?;
        let mut topics = Vec::with_capacity(count);
        for _ in 0..count {
            topics.push(read_topic(&mut r, version, body)?);
        }
        let mut endpoints = Vec::new();
        r.tagged_fields(NAME, |tag, r| {
            if tag == 0 && version >= 16 {
                endpoints = NodeEndpoint::read_all(r)?;
            }
            Ok(tag == 0 && version >= 16)
        })?;
        r.finish(NAME)?;
        Ok(Self { throttle_ms, error, session_id, topics, endpoints })
    }
}

fn read_topic(r: &mut Reader<'_>, version: i16, body: &Bytes) -> Result<FetchedTopic, WireError> {
    let topic = if version < FIRST_VERSION_BY_ID {
        TopicKey::Name(r.string("topic")?.into())
    } else {
        TopicKey::Id(r.uuid("topic id")?)
    };
    let count = r.array("fetched partitions", MIN_PARTITION)?;
    let mut partitions = Vec::with_capacity(count);
    for _ in 0..count {
        partitions.push(read_partition(r, version, body)?);
    }
    r.skip_tagged_fields("fetched topic")?;
    Ok(FetchedTopic { topic, partitions })
}

fn read_partition(r: &mut Reader<'_>, version: i16, body: &Bytes) -> Result<FetchedPartition, WireError> {
    let mut partition = FetchedPartition {
        partition: r.i32("partition")?,
        error: r.i16("error code")?.into(),
        high_watermark: r.i64("high watermark")?,
        last_stable_offset: r.i64("last stable offset")?,
        log_start_offset: if version >= 5 { r.i64("log start offset")? } else { -1 },
        aborted: read_aborted(r)?,
        preferred_read_replica: if version >= 11 { r.i32("preferred read replica")? } else { -1 },
        records: read_records(r, body)?,
        diverging: None,
        current_leader: None,
    };
    r.tagged_fields("fetched partition", |tag, r| {
        match tag {
            0 => partition.diverging = read_diverging(r)?,
            1 => partition.current_leader = Some(CurrentLeader::read(r)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(partition)
}

fn read_aborted(r: &mut Reader<'_>) -> Result<Vec<AbortedTransaction>, WireError> {
    let count = r.nullable_array("aborted transactions", MIN_ABORTED)?.unwrap_or_default();
    let mut aborted = Vec::with_capacity(count);
    for _ in 0..count {
        aborted.push(AbortedTransaction {
            producer_id: r.i64("producer id")?,
            first_offset: r.i64("first offset")?,
        });
        r.skip_tagged_fields("aborted transaction")?;
    }
    Ok(aborted)
}

fn read_records(r: &mut Reader<'_>, body: &Bytes) -> Result<Bytes, WireError> {
    let len = r.nullable_bytes("records")?.unwrap_or_default().len();
    let end = r.position();
    Ok(body.slice(end - len..end))
}

fn read_diverging(r: &mut Reader<'_>) -> Result<Option<DivergingEpoch>, WireError> {
    let diverging = DivergingEpoch { epoch: r.i32("diverging epoch")?, end_offset: r.i64("end offset")? };
    r.skip_tagged_fields("diverging epoch")?;
    // The field's default, -1 and -1, means none.
    Ok((diverging.end_offset >= 0).then_some(diverging))
}

/// An empty name and no partitions, in the smallest encoding.
const MIN_TOPIC: usize = 2;
/// Partition, error, two offsets, and one byte each for aborted transactions and records.
const MIN_PARTITION: usize = 24;
/// Two numbers of 64 bits.
const MIN_ABORTED: usize = 16;
