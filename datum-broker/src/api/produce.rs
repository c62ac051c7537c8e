//! Produce: checks batches and appends them; waits while the memory is full.

use std::sync::Arc;

use bytes::Bytes;
use datum_kafka::wire::batch::{BatchHeader, Codec};
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::produce_response::{
    LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{BrokerId, ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Notify;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::core::Core;
use crate::log::batch;
use crate::log::partition::Appended;
use crate::log::records;
use crate::server::Shared;
use crate::topics::TopicConfig;
use crate::txn::{Member, Producer};

/// v7 allows zstd, v8 explains errors, v10 names the leader, v12 adds partitions to transactions by writing to them,
/// v13 names topics by id.
pub(crate) const VERSIONS: Range = (3, 13);

/// Waits until the memory holds the request's records, at most for its own timeout; then appends each batch.
/// `None` where the client wants no answer.
pub(crate) async fn handle(shared: &Shared, call: &Call, request: ProduceRequest) -> Option<ProduceResponse> {
    let silent = request.acks == 0;
    let bytes: u64 = request
        .topic_data
        .iter()
        .flat_map(|topic| &topic.partition_data)
        .map(|data| data.records.as_ref().map_or(0, |records| records.len() as u64))
        .sum();
    let deadline = shared.clock.now_ms() + i64::from(request.timeout_ms.max(0));
    let space = Arc::new(Notify::new());
    let response = loop {
        let tried = shared.with(|locked, now| {
            let core = &mut locked.core;
            if call.forced().is_err() || core.make_room(bytes, now) {
                return Some(append_all(core, call, &request, now, false));
            }
            if bytes > core.settings.memory || now >= deadline {
                return Some(append_all(core, call, &request, now, true));
            }
            locked.wait_for_space(&space);
            None
        });
        match tried {
            Some(response) => break response,
            None => tokio::select! {
                () = space.notified() => {}
                () = shared.clock.sleep_until(deadline) => {}
            },
        }
    };
    (!silent).then_some(response)
}

/// Why a batch was not appended.
struct Refusal {
    code: Code,
    why: Option<&'static str>,
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self { code, why: None }
    }
}

const fn refusal(code: Code, why: &'static str) -> Refusal {
    Refusal { code, why: Some(why) }
}

fn append_all(
    core: &mut Core,
    call: &Call,
    request: &ProduceRequest,
    now: i64,
    full: bool,
) -> ProduceResponse {
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for topic in &request.topic_data {
        let name = if call.version >= 13 {
            core.topics.name_of(topic.topic_id).map(str::to_owned)
        } else {
            core.auto_create(&topic.name, true);
            Some(topic.name.to_string())
        };
        let partitions = topic.partition_data.iter().map(|data| {
            let outcome = match &name {
                _ if full => Err(refusal(
                    Code::KafkaStorageError,
                    "the embedded broker's memory is full and nothing was freed in time: consume and commit, shorten the \
                     retention, or give it more memory",
                )),
                Some(name) => append(core, call, request, name, data, now),
                None => Err(Refusal::from(Code::UnknownTopicId)),
            };
            answer(core, call, name.as_deref(), data.index, outcome)
        });
        let partitions = partitions.collect();
        let response = TopicProduceResponse::default().with_partition_responses(partitions);
        responses.push(if call.version >= 13 {
            response.with_topic_id(topic.topic_id)
        } else {
            response.with_name(topic.name.clone())
        });
    }
    ProduceResponse::default().with_responses(responses)
}

fn answer(
    core: &Core,
    call: &Call,
    topic: Option<&str>,
    index: i32,
    outcome: Result<Appended, Refusal>,
) -> PartitionProduceResponse {
    let partition = topic.and_then(|topic| core.topics.partition(topic, index).ok());
    let response = PartitionProduceResponse::default().with_index(index);
    match outcome {
        Ok(done) => response
            .with_base_offset(done.base_offset)
            .with_log_append_time_ms(done.append_time)
            .with_log_start_offset(partition.map_or(-1, crate::log::partition::Partition::start)),
        Err(refusal) => {
            let response = response
                .with_error_code(refusal.code.code())
                .with_base_offset(-1)
                .with_log_append_time_ms(-1)
                .with_log_start_offset(-1)
                .with_error_message(refusal.why.map(StrBytes::from_static_str));
            match partition {
                Some(partition) if call.version >= 10 && refusal.code == Code::NotLeaderOrFollower => {
                    response.with_current_leader(
                        LeaderIdAndEpoch::default()
                            .with_leader_id(BrokerId(partition.leader))
                            .with_leader_epoch(partition.leader_epoch),
                    )
                }
                _ => response,
            }
        }
    }
}

fn append(
    core: &mut Core,
    call: &Call,
    request: &ProduceRequest,
    topic: &str,
    data: &PartitionProduceData,
    now: i64,
) -> Result<Appended, Refusal> {
    call.forced()?;
    if !(-1..=1).contains(&request.acks) {
        return Err(Code::InvalidRequiredAcks.into());
    }
    core.led(topic, data.index, call.node)?;
    let records = data.records.clone().unwrap_or_default();
    if records.is_empty() {
        return Err(refusal(
            Code::InvalidRecord,
            "a produce request must carry one record batch per partition",
        ));
    }
    let header = batch::check(&records)?;
    let config = &core.topics.get(topic).ok_or(Code::UnknownTopicOrPartition)?.config;
    check(call, config, &header, &records, now)?;
    if header.attributes.is_transactional() {
        join_transaction(core, call, request, topic, data.index, &header, now)?;
    }
    let append_time = core.topics.get(topic).is_some_and(|topic| topic.config.log_append_time);
    let done = core.led_mut(topic, data.index, call.node)?.append(&header, &records, append_time, now)?;
    core.touch(topic, data.index);
    Ok(done)
}

/// What the topic and the format ask of a batch.
fn check(
    call: &Call,
    config: &TopicConfig,
    header: &BatchHeader,
    bytes: &Bytes,
    now: i64,
) -> Result<(), Refusal> {
    if i64::try_from(bytes.len()).unwrap_or(i64::MAX) > config.max_message_bytes {
        return Err(refusal(Code::MessageTooLarge, "the batch is larger than the topic's max.message.bytes"));
    }
    if header.attributes.is_control() {
        return Err(refusal(Code::InvalidRecord, "clients may not write control records"));
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(refusal(Code::InvalidRecord, "a batch with a producer id needs a sequence"));
    }
    if header.attributes.is_transactional() && !header.has_producer_id() {
        return Err(refusal(Code::InvalidRecord, "a transactional batch needs a producer id"));
    }
    if call.version < 7 && header.attributes.codec() == Ok(Codec::Zstd) {
        return Err(Code::UnsupportedCompressionType.into());
    }
    let facts = records::inspect(header, bytes)
        .map_err(|code| refusal(code, "the records do not fit their batch"))?;
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

/// A transactional batch must belong to a running transaction; the second protocol begins it by writing.
fn join_transaction(
    core: &mut Core,
    call: &Call,
    request: &ProduceRequest,
    topic: &str,
    index: i32,
    header: &BatchHeader,
    now: i64,
) -> Result<(), Code> {
    let producers = core.topics.partition(topic, index)?.producers();
    let known = producers.has_open(header.producer_id);
    if known && producers.epoch(header.producer_id) == Some(header.producer_epoch) {
        return Ok(());
    }
    let id = request.transactional_id.as_deref().ok_or(Code::InvalidTxnState)?;
    let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
    let member = Member::Partition(topic, index);
    let outcome = if call.version >= 12 {
        core.txns.add(id, producer, &[member], now)
    } else {
        core.txns.verify(id, producer, member)
    };
    outcome.map_err(|code| match code {
        Code::ProducerFenced => Code::InvalidProducerEpoch,
        Code::InvalidTxnState if call.version >= 11 => Code::TransactionAbortable,
        // Clients of the first protocol take this for "try again".
        Code::ConcurrentTransactions if call.version < 12 => Code::NotEnoughReplicas,
        other => other,
    })
}
