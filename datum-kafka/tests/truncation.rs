//! Logs that were cut by an unclean election: noticed under the new leader before anything is read from it (KIP-320).
#![allow(clippy::unwrap_used, reason = "test code: a failed step fails the test")]

mod support;

use std::time::Duration;

use datum_broker::{Api, BrokerHandle};
use datum_kafka::cluster::Cluster;
use datum_kafka::consumer::{Consumer, Fetcher, PartitionHandle};
use datum_kafka::wire::batch::Codec;
use datum_kafka::{ErrorCode, KafkaErrorKind, OffsetReset, StartAt};
use support::embedded::{TOPIC, broker, cluster, error, manual, offsets, partition};
use support::produce::{values, write_values};

/// A topic of six batches of ten under the first leader, and one that has them all read.
async fn read_all(policy: OffsetReset) -> (BrokerHandle, Cluster, Consumer) {
    let broker = broker(3, 1).await;
    let cluster = cluster(&broker).await;
    for _ in 0..6 {
        write_values(&cluster, &partition(0), &values("old", 10), Codec::None).await;
    }
    let settings = manual(&broker, StartAt::Beginning).offset_reset(policy);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(offsets(&mut consumer, 60).await.len(), 60);
    (broker, cluster, consumer)
}

fn next_leader(broker: &BrokerHandle) -> i32 {
    broker.partition(TOPIC, 0).unwrap().leader % 3 + 1
}

#[tokio::test]
async fn without_a_policy_a_truncated_log_is_an_error_that_names_where_it_parts() {
    let (broker, cluster, mut consumer) = read_all(OffsetReset::None).await;
    assert_eq!(broker.elect_uncleanly(TOPIC, 0, next_leader(&broker), 40).unwrap(), 40);
    cluster.refresh().await.unwrap();
    // Others have written what now stands at the offsets already read.
    write_values(&cluster, &partition(0), &values("new", 30), Codec::None).await;
    let error = error(&mut consumer).await;
    let KafkaErrorKind::LogTruncated { partition: culprit, position: 60, end: Some(40) } = error.kind()
    else {
        panic!("{error}")
    };
    assert_eq!(culprit, &partition(0));
    assert!(broker.faults().requests(Api::OffsetForLeaderEpoch) > 0);
    // The user decides, and it goes on.
    let handle = consumer.handles()[0].clone();
    consumer.fetcher().seek(&handle, StartAt::Offset(40));
    assert_eq!(offsets(&mut consumer, 70).await, (40..70).collect::<Vec<_>>());
    broker.stop().await;
}

#[tokio::test]
async fn with_a_policy_reading_goes_back_to_where_the_logs_part() {
    let (broker, cluster, mut consumer) = read_all(OffsetReset::Latest).await;
    broker.elect_uncleanly(TOPIC, 0, next_leader(&broker), 40).unwrap();
    cluster.refresh().await.unwrap();
    write_values(&cluster, &partition(0), &values("new", 5), Codec::None).await;
    assert_eq!(offsets(&mut consumer, 45).await, (40..45).collect::<Vec<_>>());
    broker.stop().await;
}

#[tokio::test]
async fn a_clean_move_is_checked_and_costs_nothing_else() {
    let (broker, cluster, mut consumer) = read_all(OffsetReset::None).await;
    let next = next_leader(&broker);
    broker.faults().on(Api::OffsetForLeaderEpoch).node(next).error(ErrorCode::UnknownLeaderEpoch);
    broker.faults().on(Api::OffsetForLeaderEpoch).node(next).nth(2).disconnect();
    broker.move_leader(TOPIC, 0, next).unwrap();
    cluster.refresh().await.unwrap();
    write_values(&cluster, &partition(0), &values("new", 10), Codec::None).await;
    assert_eq!(offsets(&mut consumer, 70).await, (60..70).collect::<Vec<_>>());
    assert_eq!(broker.faults().pending(), 0, "errors of the check that pass are tried again");
    broker.stop().await;
}

#[tokio::test]
async fn a_committed_leader_epoch_is_checked_before_the_first_fetch() {
    let (broker, cluster, consumer) = read_all(OffsetReset::None).await;
    drop(consumer);
    broker.elect_uncleanly(TOPIC, 0, next_leader(&broker), 40).unwrap();
    cluster.refresh().await.unwrap();
    write_values(&cluster, &partition(0), &values("new", 40), Codec::None).await;

    let settings = manual(&broker, StartAt::Beginning).offset_reset(OffsetReset::None);
    let (fetcher, mut batches) = Fetcher::start(cluster.clone(), &settings).unwrap();
    let handle = PartitionHandle::new(partition(0));
    fetcher.assign_committed(&handle, 60, Some(0));
    let found = tokio::time::timeout(Duration::from_secs(20), batches.next()).await.unwrap().unwrap_err();
    assert!(
        matches!(found.kind(), KafkaErrorKind::LogTruncated { position: 60, end: Some(40), .. }),
        "{found}"
    );
    // What was committed before the cut is good still.
    let handle = PartitionHandle::new(partition(0));
    fetcher.assign_committed(&handle, 30, Some(0));
    let batch = tokio::time::timeout(Duration::from_secs(20), batches.next()).await.unwrap().unwrap();
    assert_eq!(batch.first_offset(), 30);
    broker.stop().await;
}
