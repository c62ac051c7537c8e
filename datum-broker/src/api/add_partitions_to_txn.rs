//! AddPartitionsToTxn: what a transaction of the first protocol will write to.

use kafka_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};

use crate::api::init_producer_id::fenced;
use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;
use crate::txn::{Member, Producer};

/// v2 knows `PRODUCER_FENCED`; from v4 on brokers ask, for several transactions at once.
pub(crate) const VERSIONS: Range = (0, 5);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    now: i64,
    request: AddPartitionsToTxnRequest,
) -> AddPartitionsToTxnResponse {
    if call.version >= 4 {
        let results = request.transactions.into_iter().map(|transaction| {
            let id = transaction.transactional_id.clone();
            let topics = add(core, call, now, &transaction);
            AddPartitionsToTxnResult::default().with_transactional_id(id).with_topic_results(topics)
        });
        return AddPartitionsToTxnResponse::default().with_results_by_transaction(results.collect());
    }
    let transaction = AddPartitionsToTxnTransaction::default()
        .with_transactional_id(request.v3_and_below_transactional_id)
        .with_producer_id(request.v3_and_below_producer_id)
        .with_producer_epoch(request.v3_and_below_producer_epoch)
        .with_topics(request.v3_and_below_topics);
    let topics = add(core, call, now, &transaction);
    AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(topics)
}

fn add(
    core: &mut Core,
    call: &Call,
    now: i64,
    transaction: &AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let known = |topic: &str, index| core.topics.partition(topic, index).is_ok();
    let all =
        |topic: &AddPartitionsToTxnTopic| topic.partitions.iter().all(|index| known(&topic.name, *index));
    let complete = transaction.topics.iter().all(all);
    let unknown: Vec<(usize, i32)> = (0..)
        .zip(&transaction.topics)
        .flat_map(|(at, topic)| topic.partitions.iter().map(move |index| (at, topic, *index)))
        .filter(|(_, topic, index)| !known(&topic.name, *index))
        .map(|(at, _, index)| (at, index))
        .collect();
    let outcome = call
        .forced()
        .and_then(|()| core.coordinates(&transaction.transactional_id, call.node))
        .and_then(
            |()| if complete { add_all(core, now, transaction) } else { Err(Code::OperationNotAttempted) },
        )
        .map_err(|code| fenced(code, call.version >= 2));
    let topic_result = |(at, topic): (usize, &AddPartitionsToTxnTopic)| {
        let partition = |index: &i32| {
            let missing = !complete && unknown.contains(&(at, *index));
            let code = if missing { Code::UnknownTopicOrPartition.code() } else { number(&outcome) };
            AddPartitionsToTxnPartitionResult::default()
                .with_partition_index(*index)
                .with_partition_error_code(code)
        };
        AddPartitionsToTxnTopicResult::default()
            .with_name(topic.name.clone())
            .with_results_by_partition(topic.partitions.iter().map(partition).collect())
    };
    (0..).zip(&transaction.topics).map(topic_result).collect()
}

fn add_all(core: &mut Core, now: i64, transaction: &AddPartitionsToTxnTransaction) -> Result<(), Code> {
    let producer = Producer { id: transaction.producer_id.0, epoch: transaction.producer_epoch };
    let members: Vec<_> = transaction
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|index| Member::Partition(&topic.name, *index)))
        .collect();
    if transaction.verify_only {
        return members
            .into_iter()
            .try_for_each(|member| core.txns.verify(&transaction.transactional_id, producer, member));
    }
    core.txns.add(&transaction.transactional_id, producer, &members, now)
}
