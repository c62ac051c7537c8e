//! Produce: checks batches and appends them; waits while the memory is full.

use std::sync::Arc;

use datum_kafka::wire::batch::{BatchDecoder, BatchHeader};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{BrokerId, ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Notify;

use crate::api::{Call, Range};
use crate::code::Code;
use crate::core::Core;
use crate::log::partition::Appended;
use crate::log::validation::{self, Inspected, Refusal, refusal};
use crate::server::Shared;
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
    // Unpacking takes longest and needs no lock.
    let mut decoder = BatchDecoder::new();
    let batches: Batches = request
        .topic_data
        .iter()
        .map(|topic| {
            let inspect = |data: &PartitionProduceData| {
                validation::inspect(call.version, &data.records.clone().unwrap_or_default(), &mut decoder)
            };
            topic.partition_data.iter().map(inspect).collect()
        })
        .collect();
    let deadline = shared.clock.now_ms() + i64::from(request.timeout_ms.max(0));
    let space = Arc::new(Notify::new());
    let response = loop {
        let tried = shared.with(|locked, now| {
            let core = &mut locked.core;
            if call.forced().is_err() || core.make_room(bytes, now) {
                return Some(append_all(core, call, &request, &batches, now));
            }
            if bytes > core.settings.memory || now >= deadline {
                return Some(refuse_all(core, call, &request));
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

/// The request's batches, by topic and partition, as far as they could be judged by themselves.
type Batches = Vec<Vec<Result<Inspected, Refusal>>>;

fn append_all(
    core: &mut Core,
    call: &Call,
    request: &ProduceRequest,
    batches: &Batches,
    now: i64,
) -> ProduceResponse {
    let mut batches = batches.iter();
    answer_all(core, call, request, |core, topic| {
        let name = name_of(core, call, topic);
        let of_topic = batches.next().into_iter().flatten();
        let append = |(data, batch)| match &name {
            Some(name) => append(core, call, request, (name, data), batch, now),
            None => Err(Refusal::from(Code::UnknownTopicId)),
        };
        topic.partition_data.iter().zip(of_topic).map(append).collect()
    })
}

/// The memory is full and stayed so.
fn refuse_all(core: &mut Core, call: &Call, request: &ProduceRequest) -> ProduceResponse {
    const FULL: Refusal = refusal(
        Code::KafkaStorageError,
        "the embedded broker's memory is full and nothing was freed in time: consume and commit, shorten the \
         retention, or give it more memory",
    );
    answer_all(core, call, request, |_, topic| vec![Err(FULL); topic.partition_data.len()])
}

fn name_of(core: &mut Core, call: &Call, topic: &TopicProduceData) -> Option<String> {
    if call.version >= 13 {
        return core.topics.name_of(topic.topic_id).map(str::to_owned);
    }
    core.auto_create(&topic.name, true);
    Some(topic.name.to_string())
}

fn answer_all(
    core: &mut Core,
    call: &Call,
    request: &ProduceRequest,
    mut outcomes: impl FnMut(&mut Core, &TopicProduceData) -> Vec<Result<Appended, Refusal>>,
) -> ProduceResponse {
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for topic in &request.topic_data {
        let outcomes = outcomes(core, topic);
        let name = name_of(core, call, topic);
        let partitions = topic
            .partition_data
            .iter()
            .zip(outcomes)
            .map(|(data, outcome)| answer(core, call, name.as_deref(), data.index, outcome));
        let response = TopicProduceResponse::default().with_partition_responses(partitions.collect());
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
    (topic, data): (&str, &PartitionProduceData),
    batch: &Result<Inspected, Refusal>,
    now: i64,
) -> Result<Appended, Refusal> {
    call.forced()?;
    if !(-1..=1).contains(&request.acks) {
        return Err(Code::InvalidRequiredAcks.into());
    }
    core.led(topic, data.index, call.node)?;
    let batch = batch.as_ref().map_err(|refusal| *refusal)?;
    let config = &core.topics.get(topic).ok_or(Code::UnknownTopicOrPartition)?.config;
    validation::admit(batch, config, now)?;
    let append_time = config.log_append_time;
    if batch.header.attributes.is_transactional() {
        join_transaction(core, call, request, topic, data.index, &batch.header, now)?;
    }
    let records = data.records.as_deref().unwrap_or_default();
    let done =
        core.led_mut(topic, data.index, call.node)?.append(&batch.header, records, append_time, now)?;
    core.touch(topic, data.index);
    Ok(done)
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
