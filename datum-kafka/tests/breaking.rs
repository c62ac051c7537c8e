//! Brokers that break, lie, refuse or say nothing: each is lived through without a record lost or doubled, or is the typed error that the docs name.
//! Nothing hangs; every test has its deadline.
#![allow(clippy::unwrap_used, reason = "test code: a failed step fails the test")]

mod support;

use std::time::Duration;

use datum_broker::{Api, Broker, BrokerHandle};
use datum_kafka::cluster::{Cluster, CoordinatorKind};
use datum_kafka::consumer::{Consumer, GroupConsumer};
use datum_kafka::error::{BatchError, ProtocolFault};
use datum_kafka::group::GroupError;
use datum_kafka::producer::{Producer, ProducerRecord};
use datum_kafka::transaction::TransactionalProducer;
use datum_kafka::wire::batch::{BatchDecoder, BatchSet, Codec, Seal};
use datum_kafka::{
    ClientSettings, ConsumerSettings, ErrorCode, KafkaErrorKind, ProducerSettings, StartAt, TopicPartition,
};
use datum_net::BackoffPolicy;
use support::embedded::{TOPIC, broker, cluster, doctored, error, manual, offsets, partition};
use support::produce::{batch, values, write_values};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
const QUICK: BackoffPolicy =
    BackoffPolicy { initial: Duration::from_millis(1), max: Duration::from_millis(5), jitter: 0.0 };

fn hasty(client: ClientSettings) -> ClientSettings {
    client.reconnect_backoff(QUICK).retry_backoff(QUICK).unknown_topic_grace(Duration::from_millis(200))
}

fn quick(broker: &BrokerHandle) -> ConsumerSettings {
    manual(broker, StartAt::Beginning)
        .with_client(hasty)
        .with_fetch(|fetch| fetch.max_wait(Duration::from_millis(5)))
}

/// One node, one partition, three batches of ten.
async fn filled() -> BrokerHandle {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    for _ in 0..3 {
        write_values(&cluster, &partition(0), &values("v", 10), Codec::Lz4).await;
    }
    broker
}

/// The clients of before have gone, so that the next fault meets the next client.
async fn nobody_left(broker: &BrokerHandle) {
    let gone = async {
        while broker.connections() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("dropped clients close their connections");
}

// -- broken and lying answers --------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_fetch_answer_cut_at_any_byte_loses_and_repeats_nothing() {
    let broker = filled().await;
    for bytes in (0..130).chain((130..600).step_by(7)) {
        nobody_left(&broker).await;
        broker.faults().on(Api::Fetch).cut(bytes);
        let mut consumer = Consumer::connect(&quick(&broker)).await.unwrap();
        assert_eq!(offsets(&mut consumer, 30).await, (0..30).collect::<Vec<_>>(), "cut after {bytes} bytes");
        assert_eq!(broker.faults().pending(), 0, "cut after {bytes} bytes");
    }
    broker.stop().await;
}

#[tokio::test]
async fn metadata_and_greetings_cut_at_any_byte_are_asked_for_again() {
    let broker = filled().await;
    for api in [Api::ApiVersions, Api::Metadata, Api::ListOffsets] {
        for bytes in 0..80 {
            nobody_left(&broker).await;
            broker.faults().on(api).cut(bytes);
            let mut consumer = Consumer::connect(&quick(&broker)).await.unwrap();
            assert_eq!(offsets(&mut consumer, 30).await.len(), 30, "{api} cut after {bytes} bytes");
            broker.faults().clear();
        }
    }
    broker.stop().await;
}

#[tokio::test]
async fn lengths_that_lie_are_named_and_a_seek_goes_on() {
    let broker = filled().await;
    for length in [-1, i32::MIN, i32::MAX, (128 << 20) + 1] {
        nobody_left(&broker).await;
        broker.faults().on(Api::Fetch).length(length);
        let mut consumer = Consumer::connect(&quick(&broker)).await.unwrap();
        let error = error(&mut consumer).await;
        assert!(
            matches!(error.kind(), KafkaErrorKind::Oversize { announced, .. } if *announced == length),
            "{length}: {error}"
        );
        let handle = consumer.handles()[0].clone();
        consumer.fetcher().seek(&handle, StartAt::Beginning);
        assert_eq!(offsets(&mut consumer, 30).await.len(), 30);
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_wrong_correlation_id_is_named_and_a_seek_goes_on() {
    let broker = filled().await;
    for id in [-1, i32::MAX, 0] {
        nobody_left(&broker).await;
        broker.faults().on(Api::Fetch).correlation(id);
        let mut consumer = Consumer::connect(&quick(&broker)).await.unwrap();
        let error = error(&mut consumer).await;
        let KafkaErrorKind::Protocol { fault: ProtocolFault::Correlation { got, .. }, .. } = error.kind()
        else {
            panic!("{error}")
        };
        assert_eq!(*got, id);
        let handle = consumer.handles()[0].clone();
        consumer.fetcher().seek(&handle, StartAt::Beginning);
        assert_eq!(offsets(&mut consumer, 30).await.len(), 30);
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_broker_that_never_answers_is_given_up_at_the_deadline() {
    let broker = filled().await;
    let limit = Duration::from_millis(150);
    let short = |client: ClientSettings| hasty(client).request_timeout(limit).connect_timeout(limit);
    for api in [Api::ApiVersions, Api::Metadata] {
        broker.faults().on(api).always().silence();
        let connecting = Cluster::connect(short(ClientSettings::new(&broker.bootstrap())));
        let error = timeout(PATIENCE, connecting).await.expect("no hang").unwrap_err();
        assert!(matches!(error.kind(), KafkaErrorKind::Timeout { .. }), "{api}: {error}");
        broker.faults().clear();
    }
    broker.faults().on(Api::Fetch).times(2).silence();
    let mut consumer = Consumer::connect(&quick(&broker).with_client(short)).await.unwrap();
    assert_eq!(offsets(&mut consumer, 30).await, (0..30).collect::<Vec<_>>());
    broker.stop().await;
}

#[tokio::test]
async fn a_count_of_records_that_lies_is_an_error_with_its_place() {
    for count in [1_000, i32::MAX, -1, i32::MIN] {
        let broker = filled().await;
        let lying = doctored(batch(&values("v", 3), &Seal::default()), 2, Some(count));
        broker.append_raw(TOPIC, 0, &lying).unwrap();
        let mut consumer = Consumer::connect(&quick(&broker)).await.unwrap();
        let error = error(&mut consumer).await;
        assert!(matches!(error.kind(), KafkaErrorKind::Batch { offset: 30, .. }), "{count}: {error}");
        broker.stop().await;
    }
}

#[test]
fn a_batch_that_grows_a_thousandfold_is_refused_at_the_bound() {
    const LIMIT: usize = 1 << 20;
    let zeros = vec![vec![0; 16 << 20]];
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let bomb = batch(&zeros, &Seal { codec, ..Seal::default() });
        assert!(bomb.len() < 2 << 20, "{codec:?}: {} bytes", bomb.len());
        let mut set = BatchSet::new(bomb.into());
        let raw = set.next().unwrap().unwrap();
        let refused = BatchDecoder::with_max_body(LIMIT).decode(&raw).map(|batch| batch.body_len());
        assert!(matches!(refused, Err(BatchError::BodyTooLarge { limit: LIMIT })), "{codec:?}: {refused:?}");
    }
}

// -- refusals --------------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn topics_and_partitions_that_do_not_exist_are_named_after_the_grace() {
    let broker = filled().await;
    let settings = ConsumerSettings::new(&broker.bootstrap())
        .assign(TopicPartition::new("nope", 0), StartAt::Beginning)
        .with_client(hasty);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let unknown = error(&mut consumer).await;
    assert!(
        matches!(unknown.kind(), KafkaErrorKind::UnknownTopic { topic, .. } if &**topic == "nope"),
        "{unknown}"
    );

    for index in [1, 7, i32::MAX, -1] {
        for start in [StartAt::Beginning, StartAt::Offset(0)] {
            let settings = ConsumerSettings::new(&broker.bootstrap())
                .assign(TopicPartition::new(TOPIC, index), start)
                .with_client(hasty);
            let mut consumer = Consumer::connect(&settings).await.unwrap();
            let error = error(&mut consumer).await;
            assert!(
                matches!(error.kind(), KafkaErrorKind::UnknownPartition { partition, count: 1, .. } if partition.partition == index),
                "{index} {start:?}: {error}"
            );
        }
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_topic_deleted_while_it_is_read_is_an_error_and_the_others_go_on() {
    let broker = filled().await;
    broker.create_topic("other", 1, &[]).unwrap();
    let other = TopicPartition::new("other", 0);
    let settings = quick(&broker).assign(other.clone(), StartAt::Beginning);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(offsets(&mut consumer, 30).await.len(), 30);
    broker.delete_topic(TOPIC).unwrap();
    let error = error(&mut consumer).await;
    assert!(
        matches!(error.kind(), KafkaErrorKind::UnknownTopic { topic, .. } if &**topic == TOPIC),
        "{error}"
    );
    write_values(&cluster(&broker).await, &other, &values("v", 4), Codec::None).await;
    assert_eq!(offsets(&mut consumer, 4).await.len(), 4);
    broker.stop().await;
}

#[tokio::test]
async fn permissions_that_are_missing_are_named_at_once() {
    let broker = filled().await;
    for (api, code, start) in [
        (Api::Metadata, ErrorCode::TopicAuthorizationFailed, StartAt::Offset(0)),
        (Api::ListOffsets, ErrorCode::TopicAuthorizationFailed, StartAt::Beginning),
        (Api::Fetch, ErrorCode::TopicAuthorizationFailed, StartAt::Offset(0)),
    ] {
        let settings =
            ConsumerSettings::new(&broker.bootstrap()).assign(partition(0), start).with_client(hasty);
        broker.faults().on(api).always().error(code);
        let mut consumer = Consumer::connect(&settings).await.unwrap();
        let error = error(&mut consumer).await;
        assert!(
            matches!(error.kind(), KafkaErrorKind::Unauthorized { code: told, .. } if *told == code),
            "{api}: {error}"
        );
        broker.faults().clear();
    }
    // A group each: a member that fails leaves its place to the session timeout.
    let group = |name: String| {
        ConsumerSettings::new(&broker.bootstrap()).group(&name).topic(TOPIC).with_client(hasty)
    };
    for api in [Api::FindCoordinator, Api::JoinGroup, Api::SyncGroup, Api::OffsetFetch] {
        broker.faults().on(api).always().error(ErrorCode::GroupAuthorizationFailed);
        let mut member = GroupConsumer::join(&group(format!("of-{api}"))).await.unwrap();
        let error = timeout(PATIENCE, member.next()).await.expect("no hang").unwrap_err();
        let named = match error.kind() {
            KafkaErrorKind::Group(GroupError::Unauthorized { code, .. })
            | KafkaErrorKind::Unauthorized { code, .. } => *code == ErrorCode::GroupAuthorizationFailed,
            _ => false,
        };
        assert!(named, "{api}: {error}");
        broker.faults().clear();
    }
    let id = "tx".into();
    broker.faults().on(Api::FindCoordinator).always().error(ErrorCode::TransactionalIdAuthorizationFailed);
    let known = Cluster::connect(hasty(ClientSettings::new(&broker.bootstrap()))).await.unwrap();
    let error = known.coordinator(CoordinatorKind::Transaction, &id).await.unwrap_err();
    assert!(matches!(error.kind(), KafkaErrorKind::Unauthorized { .. }), "{error}");
    broker.stop().await;
}

#[tokio::test]
async fn a_full_disk_is_waited_for_and_then_named() {
    let broker = filled().await;
    broker.faults().on(Api::Fetch).times(3).error(ErrorCode::KafkaStorageError);
    broker.faults().on(Api::ListOffsets).times(2).error(ErrorCode::KafkaStorageError);
    let mut consumer = Consumer::connect(&quick(&broker)).await.unwrap();
    assert_eq!(offsets(&mut consumer, 30).await, (0..30).collect::<Vec<_>>());

    let settings = ProducerSettings::new(&broker.bootstrap()).with_client(hasty).linger(Duration::ZERO);
    let producer = Producer::connect(settings.clone()).await.unwrap();
    broker.faults().on(Api::Produce).times(3).error(ErrorCode::KafkaStorageError);
    timeout(PATIENCE, producer.send_and_wait(ProducerRecord::new(TOPIC, "kept")))
        .await
        .expect("no hang")
        .unwrap();
    broker.faults().on(Api::Produce).always().error(ErrorCode::KafkaStorageError);
    let full = Producer::connect(
        settings
            .with_client(|client| client.request_timeout(Duration::from_millis(100)))
            .delivery_timeout(Duration::from_millis(300)),
    )
    .await
    .unwrap();
    let error = timeout(PATIENCE, full.send_and_wait(ProducerRecord::new(TOPIC, "lost")))
        .await
        .expect("no hang")
        .unwrap_err();
    assert!(error.to_string().contains("t-0"), "{error}");
    broker.stop().await;
}

// -- nobody there ----------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_broker_that_cannot_be_reached_does_not_hold_up_the_others() {
    let broker = Broker::builder().nodes(3).start().await.unwrap();
    broker.create_topic(TOPIC, 3, &[]).unwrap();
    let known = cluster(&broker).await;
    for index in 0..3 {
        write_values(&known, &partition(index), &values("v", 10), Codec::None).await;
    }
    for api in [Api::ApiVersions, Api::Fetch, Api::Metadata, Api::ListOffsets] {
        broker.faults().on(api).node(2).always().disconnect();
    }
    broker.close_connections(2).unwrap();
    let mut settings = ConsumerSettings::new(&broker.bootstrap()).with_client(hasty);
    for index in 0..3 {
        settings = settings.assign(partition(index), StartAt::Offset(0));
    }
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let mut seen = 0;
    while seen < 20 {
        seen += timeout(PATIENCE, consumer.next()).await.expect("two of three brokers work").unwrap().len();
    }
    broker.faults().clear();
    while seen < 30 {
        seen += timeout(PATIENCE, consumer.next()).await.expect("the third is back").unwrap().len();
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_partition_without_a_leader_is_waited_for_while_the_others_go_on() {
    let broker = broker(3, 2).await;
    let known = cluster(&broker).await;
    for index in 0..2 {
        write_values(&known, &partition(index), &values("v", 10), Codec::None).await;
    }
    broker.remove_leader(TOPIC, 1).unwrap();
    let settings = quick(&broker).assign(partition(1), StartAt::Beginning);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let first = timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
    assert_eq!((first.partition(), first.len()), (&partition(0), 10));
    // What asking for a leader costs meanwhile is bounded by the backoff, not by how fast a broker answers.
    let before = broker.faults().requests(Api::Metadata);
    assert!(timeout(Duration::from_millis(300), consumer.next()).await.is_err(), "there is no leader");
    let asked = broker.faults().requests(Api::Metadata) - before;
    assert!((1..=310).contains(&asked), "asked {asked} times within 300 ms at a backoff of 1 ms");
    broker.move_leader(TOPIC, 1, 1).unwrap();
    let second = timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
    assert_eq!((second.partition(), second.len()), (&partition(1), 10));
    broker.stop().await;
}

#[tokio::test]
async fn a_coordinator_that_is_never_there_ends_calls_at_their_deadline() {
    let broker = filled().await;
    let short = |client: ClientSettings| hasty(client).request_timeout(Duration::from_millis(200));
    broker.faults().on(Api::FindCoordinator).always().error(ErrorCode::CoordinatorNotAvailable);
    let known = Cluster::connect(short(ClientSettings::new(&broker.bootstrap()))).await.unwrap();
    for kind in [CoordinatorKind::Group, CoordinatorKind::Transaction] {
        let error =
            timeout(PATIENCE, known.coordinator(kind, &"x".into())).await.expect("no hang").unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::CoordinatorNotAvailable), "{error}");
    }
    let settings = ConsumerSettings::new(&broker.bootstrap()).group("g").topic(TOPIC).with_client(short);
    let mut member = GroupConsumer::join(&settings).await.unwrap();
    // A member goes on looking for its coordinator: it may be restarting. Leaving does not wait for that.
    assert!(timeout(Duration::from_millis(500), member.next()).await.is_err());
    timeout(PATIENCE, member.leave(Duration::from_millis(300))).await.expect("no hang").ok();

    let settings = ProducerSettings::new(&broker.bootstrap())
        .transactional_id("tx")
        .transaction_timeout(Duration::from_millis(500))
        .with_client(short);
    let opening = async { TransactionalProducer::connect(settings).await?.init().await };
    let error = timeout(PATIENCE, opening).await.expect("no hang").unwrap_err();
    assert!(error.to_string().contains("`tx`"), "{error}");
    broker.stop().await;
}

#[tokio::test]
async fn endless_concurrent_transactions_end_in_an_error() {
    let broker = filled().await;
    broker.faults().on(Api::InitProducerId).always().error(ErrorCode::ConcurrentTransactions);
    let settings = ProducerSettings::new(&broker.bootstrap())
        .transactional_id("tx")
        .transaction_timeout(Duration::from_millis(500))
        .with_client(|client| hasty(client).request_timeout(Duration::from_millis(200)));
    let opening = async { TransactionalProducer::connect(settings).await?.init().await };
    let error = timeout(PATIENCE, opening).await.expect("no hang").unwrap_err();
    // The last refusal, or that no answer came in what was left of the time.
    assert!(error.to_string().contains("`tx`"), "{error}");
    broker.stop().await;
}
