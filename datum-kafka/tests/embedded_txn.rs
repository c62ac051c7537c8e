//! Producing and transactions on the embedded broker: the scenarios that hold on any broker, in both transaction protocols, and those
//! that need its script of faults.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod producing;

use std::time::Duration;

use datum_broker::{Api, Broker, BrokerHandle};
use datum_kafka::{
    TopicPartition,
    group::{CommitOffset, Offsets},
    producer::{Producer, ProducerRecord, SendFault},
    transaction::{TransactionError, TransactionVersion, TransactionalProducer},
    wire::ErrorCode,
};
use producing::{PATIENCE, fresh, owner, read, settings, topic, transactional};
use tokio::time::timeout;

async fn broker(transactions: i16) -> BrokerHandle {
    let builder = Broker::builder().transaction_version(transactions).marker_delay(Duration::from_millis(20));
    builder.start().await.unwrap()
}

macro_rules! scenarios {
    ($($name:ident)*) => {$(
        #[tokio::test]
        async fn $name() {
            for version in [0, 1, 2] {
                let broker = broker(version).await;
                producing::$name(&broker.bootstrap()).await;
                broker.stop().await;
            }
        }
    )*};
}

scenarios! {
    every_codec_arrives_in_order
    a_batch_too_large_is_cut
    a_small_buffer_makes_senders_wait
    transactions_are_visible_or_not
    a_successor_fences
    a_stale_generation_leaves_the_transaction_open
}

/// Sends `count` records one batch each, and expects each once and in order.
async fn sent_once(broker: &BrokerHandle, count: usize) {
    let bootstrap = broker.bootstrap();
    let topic = topic(&bootstrap, 1).await;
    let producer = Producer::connect(settings(&bootstrap).batch_bytes(60)).await.unwrap();
    let mut deliveries = Vec::new();
    for i in 0..count {
        deliveries.push(producer.send(ProducerRecord::new(topic.as_str(), format!("{i:04}"))).await.unwrap());
    }
    for delivery in deliveries {
        timeout(PATIENCE, delivery).await.unwrap().unwrap();
    }
    let expected: Vec<_> = (0..count).map(|i| format!("{i:04}")).collect();
    assert_eq!(read(&bootstrap, &topic, 1).await[&0], expected);
}

#[tokio::test]
async fn a_connection_that_breaks_before_or_after_a_write_costs_no_record_and_doubles_none() {
    let broker = broker(2).await;
    broker.faults().on(Api::Produce).nth(2).disconnect_after();
    broker.faults().on(Api::Produce).nth(5).disconnect();
    broker.faults().on(Api::Produce).nth(9).times(2).disconnect_after();
    sent_once(&broker, 50).await;
    assert_eq!(broker.faults().pending(), 0);
}

#[tokio::test]
async fn errors_that_pass_are_retried_in_order() {
    let broker = broker(2).await;
    for (nth, code) in [
        (1, ErrorCode::NotLeaderOrFollower),
        (3, ErrorCode::NotEnoughReplicasAfterAppend),
        (4, ErrorCode::RequestTimedOut),
        (6, ErrorCode::UnknownProducerId),
        (9, ErrorCode::LeaderNotAvailable),
    ] {
        broker.faults().on(Api::Produce).nth(nth).error(code);
    }
    sent_once(&broker, 50).await;
    assert_eq!(broker.faults().pending(), 0);
}

#[tokio::test]
async fn a_moving_leader_is_followed() {
    let broker = Broker::builder().nodes(3).start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let topic = topic(&bootstrap, 1).await;
    let producer = Producer::connect(settings(&bootstrap).batch_bytes(60)).await.unwrap();
    let mut expected = Vec::new();
    let mut deliveries = Vec::new();
    for i in 0..60 {
        if i % 20 == 10 {
            broker.move_leader(&topic, 0, i / 20 % 3 + 1).unwrap();
        }
        expected.push(format!("{i:04}"));
        deliveries.push(producer.send(ProducerRecord::new(topic.as_str(), format!("{i:04}"))).await.unwrap());
        if i % 5 == 0 {
            producer.flush().await;
        }
    }
    for delivery in deliveries {
        timeout(PATIENCE, delivery).await.unwrap().unwrap();
    }
    assert_eq!(read(&bootstrap, &topic, 1).await[&0], expected);
}

#[tokio::test]
async fn both_protocols_are_chosen_by_what_the_cluster_has_agreed_on() {
    for (feature, expected) in [(1, TransactionVersion::V1), (2, TransactionVersion::V2)] {
        let broker = broker(feature).await;
        let mut producer = transactional(&broker.bootstrap(), "tx").await;
        producer.init().await.unwrap();
        producer.begin().await.unwrap();
        assert_eq!(producer.version(), expected);
        let adds = broker.faults().requests(Api::AddPartitionsToTxn);
        let topic = topic(&broker.bootstrap(), 1).await;
        producer.send(ProducerRecord::new(topic.as_str(), "x")).await.unwrap();
        let before = producer.identity().unwrap();
        producer.commit().await.unwrap();
        let after = producer.identity().unwrap();
        let added = broker.faults().requests(Api::AddPartitionsToTxn) - adds;
        assert_eq!(added, u64::from(expected == TransactionVersion::V1));
        let bumped = after.epoch == before.epoch + 1;
        assert_eq!(bumped, expected == TransactionVersion::V2, "{before:?} {after:?}");
    }
}

/// The group of a transaction: five times the transaction before is still being completed.
#[tokio::test]
async fn a_transaction_still_being_completed_is_waited_for_and_never_surfaces() {
    for version in [0, 1, 2] {
        let broker = broker(version).await;
        let bootstrap = broker.bootstrap();
        let (output, input) = (topic(&bootstrap, 1).await, topic(&bootstrap, 1).await);
        let group = owner(&bootstrap, "g", &input).await;
        let mut producer = transactional(&bootstrap, "tx").await;
        producer.init().await.unwrap();
        producer.begin().await.unwrap();
        producer.send(ProducerRecord::new(output.as_str(), "x")).await.unwrap();
        broker.faults().on(Api::TxnOffsetCommit).times(5).error(ErrorCode::ConcurrentTransactions);
        if version == 1 {
            broker.faults().on(Api::AddOffsetsToTxn).times(5).error(ErrorCode::ConcurrentTransactions);
        }
        let offsets = Offsets::from([(TopicPartition::new(input.as_str(), 0), CommitOffset::new(3))]);
        producer.send_offsets(&offsets, &group.identity().unwrap()).await.unwrap();
        producer.commit().await.unwrap();
        assert_eq!(broker.faults().pending(), 0);
        assert_eq!(read(&bootstrap, &output, 1).await[&0], ["x"]);
        assert_eq!(broker.committed("g", &input, 0).map(|(offset, _)| offset), Some(3));
    }
}

#[tokio::test]
async fn an_end_whose_answer_is_lost_is_asked_for_again() {
    for version in [0, 1, 2] {
        let broker = broker(version).await;
        let bootstrap = broker.bootstrap();
        let output = topic(&bootstrap, 1).await;
        let mut producer = transactional(&bootstrap, "tx").await;
        producer.init().await.unwrap();
        for round in 0..4 {
            producer.begin().await.unwrap();
            producer.send(ProducerRecord::new(output.as_str(), round.to_string())).await.unwrap();
            broker.faults().on(Api::EndTxn).times(2).disconnect_after();
            producer.commit().await.unwrap();
        }
        assert_eq!(read(&bootstrap, &output, 1).await[&0], ["0", "1", "2", "3"]);
    }
}

#[tokio::test]
async fn an_end_that_is_never_answered_is_of_unknown_outcome_and_init_recovers() {
    let broker = broker(2).await;
    let bootstrap = broker.bootstrap();
    let output = topic(&bootstrap, 1).await;
    let quick = settings(&bootstrap)
        .transactional_id(&fresh("tx"))
        .transaction_timeout(Duration::from_millis(400))
        .with_client(|client| client.request_timeout(Duration::from_millis(300)));
    let mut producer = TransactionalProducer::connect(quick).await.unwrap();
    producer.init().await.unwrap();
    producer.begin().await.unwrap();
    producer.send(ProducerRecord::new(output.as_str(), "perhaps")).await.unwrap();
    producer.flush().await.unwrap();
    broker.faults().on(Api::EndTxn).always().disconnect();
    let outcome = producer.commit().await;
    assert!(matches!(outcome, Err(TransactionError::OutcomeUnknown { commit: true, .. })), "{outcome:?}");
    assert!(matches!(producer.begin().await, Err(TransactionError::Misuse { .. })));
    broker.faults().clear();
    producer.init().await.unwrap();
    producer.begin().await.unwrap();
    producer.send(ProducerRecord::new(output.as_str(), "after")).await.unwrap();
    producer.commit().await.unwrap();
    assert_eq!(
        read(&bootstrap, &output, 1).await[&0],
        ["after"],
        "the first one never reached the coordinator"
    );
}

#[tokio::test]
async fn a_record_that_is_refused_makes_the_transaction_abort_and_the_next_one_goes_on() {
    for version in [0, 1, 2] {
        let broker = broker(version).await;
        let bootstrap = broker.bootstrap();
        let output = topic(&bootstrap, 1).await;
        let mut producer = transactional(&bootstrap, "tx").await;
        producer.init().await.unwrap();
        producer.begin().await.unwrap();
        broker.faults().on(Api::Produce).error(ErrorCode::InvalidTimestamp);
        producer.send(ProducerRecord::new(output.as_str(), "bad")).await.unwrap();
        let refused = producer.commit().await;
        assert!(matches!(refused, Err(TransactionError::Abortable { .. })), "{refused:?}");
        producer.abort().await.unwrap();
        producer.begin().await.unwrap();
        producer.send(ProducerRecord::new(output.as_str(), "good")).await.unwrap();
        producer.commit().await.unwrap();
        assert_eq!(read(&bootstrap, &output, 1).await[&0], ["good"]);
    }
}

#[tokio::test]
async fn a_coordinator_that_moves_is_found_again() {
    let broker = Broker::builder().nodes(3).start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let output = topic(&bootstrap, 1).await;
    let mut producer = transactional(&bootstrap, "tx").await;
    producer.init().await.unwrap();
    for round in 0..6 {
        producer.begin().await.unwrap();
        producer.send(ProducerRecord::new(output.as_str(), round.to_string())).await.unwrap();
        broker.move_coordinator("tx", round % 3 + 1).unwrap();
        producer.commit().await.unwrap();
    }
    assert_eq!(read(&bootstrap, &output, 1).await[&0], ["0", "1", "2", "3", "4", "5"]);
}

/// Kafka 19: the broker has forgotten an idle producer.
#[tokio::test]
async fn a_producer_that_was_forgotten_while_idle_goes_on_in_order() {
    let day = Duration::from_secs(86_400);
    let broker =
        Broker::builder().standing_clock(1_700_000_000_000).producer_expiry(day).start().await.unwrap();
    let bootstrap = broker.bootstrap();
    let topic = topic(&bootstrap, 1).await;
    let producer = Producer::connect(settings(&bootstrap).batch_bytes(60)).await.unwrap();
    let mut expected = Vec::new();
    for round in 0..3 {
        let mut deliveries = Vec::new();
        for i in 0..10 {
            let value = format!("{round}-{i}");
            expected.push(value.clone());
            let record = ProducerRecord::new(topic.as_str(), value).timestamp(1_700_000_000_000);
            deliveries.push(producer.send(record).await.unwrap());
        }
        for delivery in deliveries {
            timeout(PATIENCE, delivery).await.unwrap().unwrap();
        }
        broker.clock().advance(2 * day);
        if round == 1 {
            // Some brokers take any sequence then, and others refuse all that is in flight.
            broker.faults().on(Api::Produce).times(5).error(ErrorCode::UnknownProducerId);
        }
    }
    assert_eq!(read(&bootstrap, &topic, 1).await[&0], expected);
    broker.stop().await;
}

/// Kafka 33: the epochs of a producer id are used up.
#[tokio::test]
async fn the_last_epoch_is_followed_by_a_new_producer_id() {
    let broker = broker(2).await;
    let bootstrap = broker.bootstrap();
    let topic = topic(&bootstrap, 1).await;
    let mut producer = transactional(&bootstrap, "worn").await;
    producer.init().await.unwrap();
    let before = producer.identity().unwrap().id;
    broker.set_producer_epoch("worn", i16::MAX - 4).unwrap();
    // The script has fenced it: the id is taken over again.
    let mut producer = transactional(&bootstrap, "worn").await;
    producer.init().await.unwrap();
    let mut identities = Vec::new();
    let mut expected = Vec::new();
    for round in 0..6 {
        producer.begin().await.unwrap();
        let mut deliveries = Vec::new();
        for i in 0..3 {
            let record = ProducerRecord::new(topic.as_str(), format!("{round}-{i}"));
            expected.push(format!("{round}-{i}"));
            deliveries.push(producer.send(record).await.unwrap());
        }
        producer.commit().await.unwrap();
        for delivery in deliveries {
            timeout(PATIENCE, delivery).await.unwrap().unwrap();
        }
        let now = producer.identity().unwrap();
        identities.push((now.id, now.epoch));
    }
    let fresh = identities.iter().position(|&(id, _)| id != before).expect("a new id");
    assert_eq!(identities[fresh].1, 0, "{identities:?}");
    assert!(identities[..fresh].iter().all(|&(_, epoch)| epoch < i16::MAX), "{identities:?}");
    assert_eq!(read(&bootstrap, &topic, 1).await[&0], expected);
    broker.stop().await;
}

/// What no retry mends is told at once, not after the delivery timeout; and once it is mended the producer goes on.
#[tokio::test]
async fn a_producer_that_gets_no_id_fails_at_once() {
    for code in [
        ErrorCode::ClusterAuthorizationFailed,
        ErrorCode::TransactionalIdAuthorizationFailed,
        ErrorCode::UnsupportedVersion,
    ] {
        let broker = broker(2).await;
        let bootstrap = broker.bootstrap();
        let topic = topic(&bootstrap, 1).await;
        broker.faults().on(Api::InitProducerId).times(2).error(code);
        let producer = Producer::connect(settings(&bootstrap)).await.unwrap();
        let sent = producer.send_and_wait(ProducerRecord::new(topic.as_str(), "x"));
        let error = timeout(Duration::from_secs(5), sent).await.expect("at once").unwrap_err();
        assert!(!error.possibly_written, "{error}");
        let SendFault::Identity(why) = &error.why else { panic!("{error:?}") };
        assert_eq!(why.code(), Some(code), "{why}");
        broker.faults().clear();
        let sent = producer.send_and_wait(ProducerRecord::new(topic.as_str(), "y"));
        timeout(Duration::from_secs(5), sent).await.expect("at once").unwrap();
        assert_eq!(read(&bootstrap, &topic, 1).await[&0], ["y"]);
    }
}
