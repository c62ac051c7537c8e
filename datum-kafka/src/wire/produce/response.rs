//! What a broker answers; nothing at all with `acks` 0.

use super::{NAME, check_version, flexible};
use crate::wire::leader::{CurrentLeader, NodeEndpoint};
use crate::wire::reader::Reader;
use crate::wire::{ErrorCode, WireError};
use std::sync::Arc;

/// The answer to a Produce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceResponse {
    /// The batches' outcomes.
    pub topics: Vec<ProducedTopic>,
    /// How long the broker delayed the answer because of a quota, milliseconds.
    pub throttle_ms: i32,
    /// Where the leaders named in the partitions are. From version 10.
    pub endpoints: Vec<NodeEndpoint>,
}

/// Outcomes of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedTopic {
    /// The topic's name.
    pub name: Arc<str>,
    /// Its partitions.
    pub partitions: Vec<ProducedPartition>,
}

/// What became of one partition's batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedPartition {
    /// The partition's number.
    pub partition: i32,
    /// The error, or success.
    pub error: ErrorCode,
    /// The offset of the batch's first record, -1 with an error.
    pub base_offset: i64,
    /// When the broker stamped the batch, milliseconds; -1 unless the topic has log append time.
    pub append_time: i64,
    /// The first offset still in the log, -1 if it is not known. From version 5.
    pub log_start_offset: i64,
    /// The records that made the broker refuse the batch. From version 8.
    pub record_errors: Vec<BatchIndexError>,
    /// Why the batch was refused, in words. From version 8.
    pub error_message: Option<Box<str>>,
    /// Who leads now, with an error that says this broker does not. From version 10.
    pub current_leader: Option<CurrentLeader>,
}

/// A record that made the broker refuse its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchIndexError {
    /// The record's position in the batch.
    pub position: i32,
    /// Why, in words.
    pub message: Option<Box<str>>,
}

impl ProduceResponse {
    /// Reads the body, without header.
    ///
    /// # Errors
    /// [`WireError`], naming the field.
    pub fn decode(version: i16, body: &[u8]) -> Result<Self, WireError> {
        check_version(version)?;
        let mut r = Reader::new(body, flexible(version));
        let count = r.array("produced topics", MIN_TOPIC)?;
        let mut topics = Vec::with_capacity(count);
        for _ in 0..count {
            topics.push(read_topic(&mut r, version)?);
        }
        let throttle_ms = r.i32("throttle time")?;
        let mut endpoints = Vec::new();
        r.tagged_fields(NAME, |tag, r| {
            if tag == 0 && version >= 10 {
                endpoints = NodeEndpoint::read_all(r)?;
            }
            Ok(tag == 0 && version >= 10)
        })?;
        r.finish(NAME)?;
        Ok(Self { topics, throttle_ms, endpoints })
    }
}

fn read_topic(r: &mut Reader<'_>, version: i16) -> Result<ProducedTopic, WireError> {
    let name = r.string("topic")?.into();
    let count = r.array("produced partitions", MIN_PARTITION)?;
    let mut partitions = Vec::with_capacity(count);
    for _ in 0..count {
        partitions.push(read_partition(r, version)?);
    }
    r.skip_tagged_fields("produced topic")?;
    Ok(ProducedTopic { name, partitions })
}

fn read_partition(r: &mut Reader<'_>, version: i16) -> Result<ProducedPartition, WireError> {
    let mut partition = ProducedPartition {
        partition: r.i32("partition")?,
        error: r.i16("error code")?.into(),
        base_offset: r.i64("base offset")?,
        append_time: r.i64("log append time")?,
        log_start_offset: if version >= 5 { r.i64("log start offset")? } else { -1 },
        record_errors: if version >= 8 { read_record_errors(r)? } else { Vec::new() },
        error_message: if version >= 8 { r.nullable_string("error message")?.map(Into::into) } else { None },
        current_leader: None,
    };
    r.tagged_fields("produced partition", |tag, r| {
        if tag == 0 && version >= 10 {
            partition.current_leader = Some(CurrentLeader::read(r)?);
        }
        Ok(tag == 0 && version >= 10)
    })?;
    Ok(partition)
}

fn read_record_errors(r: &mut Reader<'_>) -> Result<Vec<BatchIndexError>, WireError> {
    let count = r.array("record errors", MIN_RECORD_ERROR)?;
    let mut errors = Vec::with_capacity(count);
    for _ in 0..count {
        errors.push(BatchIndexError {
            position: r.i32("batch index")?,
            message: r.nullable_string("error message")?.map(Into::into),
        });
        r.skip_tagged_fields("record error")?;
    }
    Ok(errors)
}

/// An empty name and no partitions, in the smallest encoding.
const MIN_TOPIC: usize = 2;
/// Partition, error and two numbers of 64 bits.
const MIN_PARTITION: usize = 22;
/// Position and one byte of message.
const MIN_RECORD_ERROR: usize = 5;
