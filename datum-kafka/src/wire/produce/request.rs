//! What a client writes.

use super::{check_version, flexible};
use crate::wire::WireError;
use crate::wire::writer::Writer;
use bytes::Bytes;
use std::sync::Arc;

/// A Produce request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceRequest {
    /// The transactional id, if the batches belong to a transaction.
    pub transactional_id: Option<Arc<str>>,
    /// 0: no answer at all; 1: the leader has written it; -1: all in-sync replicas have.
    pub acks: i16,
    /// How long the broker may wait for the replicas, milliseconds.
    pub timeout_ms: i32,
    /// The batches.
    pub topics: Vec<ProduceTopic>,
}

/// Batches for one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceTopic {
    /// The topic's name.
    pub name: Arc<str>,
    /// Its partitions.
    pub partitions: Vec<ProducePartition>,
}

/// The batch for one partition; a request carries one batch per partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducePartition {
    /// The partition's number.
    pub partition: i32,
    /// The closed batch, see [`crate::wire::batch::BatchBuilder::close`].
    pub batch: Bytes,
}

impl ProduceRequest {
    /// The body in pieces, without header, to be written one after another: what is between the batches, and the batches
    /// themselves, shared.
    ///
    /// # Errors
    /// [`WireError::UnsupportedVersion`] or [`WireError::TooLong`].
    pub fn encode(&self, version: i16) -> Result<Vec<Bytes>, WireError> {
        check_version(version)?;
        let mut pieces = Pieces::new(flexible(version));
        let mut w = pieces.writer();
        w.nullable_string("transactional id", self.transactional_id.as_deref())?;
        w.i16(self.acks);
        w.i32(self.timeout_ms);
        w.array("produce topics", self.topics.len())?;
        for topic in &self.topics {
            let mut w = pieces.writer();
            w.string("topic", &topic.name)?;
            w.array("produce partitions", topic.partitions.len())?;
            for partition in &topic.partitions {
                let mut w = pieces.writer();
                w.i32(partition.partition);
                w.length("records", Some(partition.batch.len()))?;
                pieces.share(&partition.batch);
                pieces.writer().no_tagged_fields();
            }
            pieces.writer().no_tagged_fields();
        }
        pieces.writer().no_tagged_fields();
        Ok(pieces.finish())
    }
}

/// Slices under construction: own bytes are gathered until something shared comes between.
struct Pieces {
    done: Vec<Bytes>,
    own: Vec<u8>,
    flexible: bool,
}

impl Pieces {
    fn new(flexible: bool) -> Self {
        Self { done: Vec::new(), own: Vec::with_capacity(64), flexible }
    }

    fn writer(&mut self) -> Writer<'_> {
        Writer::new(&mut self.own, self.flexible)
    }

    fn share(&mut self, bytes: &Bytes) {
        self.flush();
        self.done.push(bytes.clone());
    }

    fn flush(&mut self) {
        if !self.own.is_empty() {
            self.done.push(std::mem::take(&mut self.own).into());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.flush();
        self.done
    }
}
