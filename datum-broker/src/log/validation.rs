//! What the format, and then the topic, ask of a client's batch.

use bytes::Bytes;
use datum_kafka::wire::batch::{BatchDecoder, BatchHeader, Codec};

use crate::code::Code;
use crate::log::batch;
use crate::log::records::{self, Facts};
use crate::topics::TopicConfig;

/// Why a batch is not appended, in words where the code's own do not say enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub code: Code,
    pub why: Option<&'static str>,
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self { code, why: None }
    }
}

/// A refusal in words.
pub(crate) const fn refusal(code: Code, why: &'static str) -> Refusal {
    Refusal { code, why: Some(why) }
}

/// A batch that is right by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inspected {
    pub header: BatchHeader,
    facts: Facts,
}

/// Checks all that can be checked without the topic: checksum, counts, producer, and every record.
///
/// # Errors
/// `InvalidRecord`, `CorruptMessage`, `UnsupportedCompressionType`.
pub(crate) fn inspect(version: i16, bytes: &Bytes, decoder: &mut BatchDecoder) -> Result<Inspected, Refusal> {
    if bytes.is_empty() {
        return Err(refusal(
            Code::InvalidRecord,
            "a produce request must carry one record batch per partition",
        ));
    }
    let header = batch::check(bytes)?;
    if header.attributes.is_control() {
        return Err(refusal(Code::InvalidRecord, "clients may not write control records"));
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(refusal(Code::InvalidRecord, "a batch with a producer id needs a sequence"));
    }
    if header.attributes.is_transactional() && !header.has_producer_id() {
        return Err(refusal(Code::InvalidRecord, "a transactional batch needs a producer id"));
    }
    if version < 7 && header.attributes.codec() == Ok(Codec::Zstd) {
        return Err(Code::UnsupportedCompressionType.into());
    }
    let facts = records::inspect(&header, bytes, decoder)
        .map_err(|code| refusal(code, "the records do not fit their batch"))?;
    Ok(Inspected { header, facts })
}

/// Checks what the topic's settings ask.
///
/// # Errors
/// `MessageTooLarge`, `InvalidRecord`, `InvalidTimestamp`.
pub(crate) fn admit(batch: &Inspected, config: &TopicConfig, now: i64) -> Result<(), Refusal> {
    let Inspected { header, facts } = batch;
    if i64::try_from(header.size()).unwrap_or(i64::MAX) > config.max_message_bytes {
        return Err(refusal(Code::MessageTooLarge, "the batch is larger than the topic's max.message.bytes"));
    }
    if config.compact && facts.without_key {
        return Err(refusal(Code::InvalidRecord, "a compacted topic takes no record without a key"));
    }
    let ahead = facts.newest.saturating_sub(now) > config.after_max_ms;
    let behind = now.saturating_sub(facts.oldest) > config.before_max_ms;
    if !config.log_append_time && (ahead || behind) {
        return Err(refusal(
            Code::InvalidTimestamp,
            "a record's time stamp is outside message.timestamp.before.max.ms and message.timestamp.after.max.ms",
        ));
    }
    Ok(())
}
