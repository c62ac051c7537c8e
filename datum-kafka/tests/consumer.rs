//! Consuming from the embedded broker while things go wrong: what public reports say once went wrong for somebody.
#![allow(clippy::unwrap_used, reason = "test code: a failed step fails the test")]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use datum_broker::{Api, BrokerHandle};
use datum_kafka::consumer::{Consumer, GroupConsumer};
use datum_kafka::error::BatchError;
use datum_kafka::wire::batch::control::{ControlBatch, Marker};
use datum_kafka::wire::batch::{BatchHeader, Codec, Seal};
use datum_kafka::{ConsumerSettings, ErrorCode, Isolation, KafkaErrorKind, OffsetReset, StartAt};
use support::embedded::{TOPIC, broker, cluster, doctored, manual, offsets, partition};
use support::produce::{Transaction, batch, values, write_values};

#[tokio::test]
async fn compacted_tails_and_empty_batches_are_stepped_over() {
    let broker = broker(1, 1).await;
    // One record survives of a thousand offsets; then a batch of a million offsets with none; then a plain one.
    let tail = doctored(batch(&values("v", 1), &Seal::default()), 999, None);
    broker.append_raw(TOPIC, 0, &tail).unwrap();
    let mut empty = batch(&values("v", 1), &Seal::default());
    empty.truncate(61);
    empty[8..12].copy_from_slice(&49i32.to_be_bytes());
    broker.append_raw(TOPIC, 0, &doctored(empty, 999_999, Some(0))).unwrap();
    write_values(&cluster(&broker).await, &partition(0), &values("after", 1), Codec::Lz4).await;

    let mut consumer = Consumer::connect(&manual(&broker, StartAt::Beginning)).await.unwrap();
    let fetches = broker.faults().requests(Api::Fetch);
    assert_eq!(offsets(&mut consumer, 1_001_001).await, [0, 1_001_000]);
    assert!(
        broker.faults().requests(Api::Fetch) - fetches <= 4,
        "the same offset is fetched again and again"
    );
    assert_eq!(consumer.handles()[0].emitted_to(), Some(1_001_001));
    broker.stop().await;
}

#[tokio::test]
async fn a_marker_without_an_entry_is_skipped() {
    let broker = broker(1, 1).await;
    let marker = ControlBatch {
        base_offset: 0,
        leader_epoch: 0,
        timestamp: 0,
        producer_id: 77,
        producer_epoch: 0,
        marker: Marker::Abort { coordinator_epoch: 0 },
    };
    broker.append_raw(TOPIC, 0, &marker.encode()).unwrap();
    write_values(&cluster(&broker).await, &partition(0), &values("after", 2), Codec::None).await;
    let mut consumer = Consumer::connect(&manual(&broker, StartAt::Beginning)).await.unwrap();
    assert_eq!(offsets(&mut consumer, 3).await, [1, 2]);
    broker.stop().await;
}

#[tokio::test]
async fn much_aborted_data_is_got_past() {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    let mut aborted = Transaction::begin(&cluster, "tx", &partition(0)).await;
    let bulk = vec![vec![7u8; 100_000]; 5];
    for _ in 0..40 {
        aborted.write(&partition(0), &bulk).await;
    }
    aborted.end(false).await;
    write_values(&cluster, &partition(0), &values("good", 1), Codec::None).await;
    let settings = manual(&broker, StartAt::Beginning).with_fetch(|fetch| fetch.partition_max_bytes(1 << 20));
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(offsets(&mut consumer, 202).await, [201]);
    broker.stop().await;
}

#[tokio::test]
async fn a_new_leader_that_is_still_behind_costs_no_reset() {
    let broker = broker(3, 1).await;
    let cluster = cluster(&broker).await;
    write_values(&cluster, &partition(0), &values("a", 50), Codec::Lz4).await;
    let settings = manual(&broker, StartAt::Beginning).offset_reset(OffsetReset::None);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(offsets(&mut consumer, 50).await.len(), 50);
    let leader = broker.partition(TOPIC, 0).unwrap().leader;
    let next = leader % 3 + 1;
    broker.faults().on(Api::Fetch).node(next).error(ErrorCode::OffsetOutOfRange);
    broker.faults().on(Api::ListOffsets).disconnect();
    broker.move_leader(TOPIC, 0, next).unwrap();
    cluster.refresh().await.unwrap();
    write_values(&cluster, &partition(0), &values("b", 10), Codec::Lz4).await;
    assert_eq!(offsets(&mut consumer, 60).await, (50..60).collect::<Vec<_>>());
    broker.stop().await;
}

#[tokio::test]
async fn broken_connections_and_errors_that_pass_lose_and_repeat_nothing() {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    for _ in 0..20 {
        write_values(&cluster, &partition(0), &values("v", 100), Codec::Lz4).await;
    }
    let faults = broker.faults();
    faults.on(Api::Fetch).nth(2).disconnect();
    faults.on(Api::Fetch).nth(3).truncate();
    faults.on(Api::Fetch).nth(4).error(ErrorCode::NotLeaderOrFollower);
    faults.on(Api::Fetch).nth(5).error(ErrorCode::UnknownLeaderEpoch);
    faults.on(Api::Fetch).nth(6).error(ErrorCode::KafkaStorageError);
    faults.on(Api::Fetch).nth(7).disconnect_after();
    let settings = manual(&broker, StartAt::Beginning).with_fetch(|fetch| fetch.partition_max_bytes(2_000));
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(offsets(&mut consumer, 2000).await, (0..2000).collect::<Vec<_>>());
    broker.stop().await;
}

#[tokio::test]
async fn a_damaged_batch_is_an_error_with_its_place_and_can_be_passed() {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    write_values(&cluster, &partition(0), &values("good", 3), Codec::None).await;
    let mut damaged = batch(&values("bad", 2), &Seal::default());
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    broker.append_raw(TOPIC, 0, &damaged).unwrap();
    write_values(&cluster, &partition(0), &values("after", 1), Codec::None).await;

    let mut consumer = Consumer::connect(&manual(&broker, StartAt::Beginning)).await.unwrap();
    assert_eq!(consumer.next().await.unwrap().len(), 3);
    let error = tokio::time::timeout(Duration::from_secs(20), consumer.next()).await.unwrap().unwrap_err();
    let KafkaErrorKind::Batch { partition: culprit, offset, error: BatchError::Crc { .. } } = error.kind()
    else {
        panic!("{error}")
    };
    assert_eq!((culprit, *offset), (&partition(0), 3));
    let handle = consumer.handles()[0].clone();
    consumer.fetcher().seek(&handle, StartAt::Offset(5));
    assert_eq!(offsets(&mut consumer, 6).await, [5]);
    broker.stop().await;
}

#[tokio::test]
async fn an_unknown_codec_is_named_at_once() {
    let broker = broker(1, 1).await;
    let mut unknown = batch(&values("v", 1), &Seal::default());
    unknown[22] |= 5;
    BatchHeader::write_crc(&mut unknown).unwrap();
    broker.append_raw(TOPIC, 0, &unknown).unwrap();
    let mut consumer = Consumer::connect(&manual(&broker, StartAt::Beginning)).await.unwrap();
    let error = tokio::time::timeout(Duration::from_secs(20), consumer.next()).await.unwrap().unwrap_err();
    assert!(
        matches!(
            error.kind(),
            KafkaErrorKind::Batch { offset: 0, error: BatchError::UnknownCodec { id: 5 }, .. }
        ),
        "{error}"
    );
    broker.stop().await;
}

#[tokio::test]
async fn a_missing_permission_fails_the_partition_at_once() {
    let broker = broker(1, 1).await;
    broker.faults().on(Api::Fetch).always().error(ErrorCode::TopicAuthorizationFailed);
    let mut consumer = Consumer::connect(&manual(&broker, StartAt::Beginning)).await.unwrap();
    let error = tokio::time::timeout(Duration::from_secs(20), consumer.next()).await.unwrap().unwrap_err();
    assert!(matches!(error.kind(), KafkaErrorKind::Unauthorized { .. }), "{error}");
    broker.stop().await;
}

#[tokio::test]
async fn an_open_transaction_does_not_hide_behind_the_high_watermark() {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    let mut open = Transaction::begin(&cluster, "tx", &partition(0)).await;
    open.write(&partition(0), &values("open", 3)).await;
    let settings = manual(&broker, StartAt::Beginning).isolation(Isolation::ReadUncommitted);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(offsets(&mut consumer, 3).await, [0, 1, 2]);
    let answer = consumer.handles()[0].answer().unwrap();
    assert_eq!((answer.high_watermark, answer.last_stable_offset), (3, 0));
    broker.stop().await;
}

#[tokio::test]
async fn a_consumer_that_does_not_poll_is_not_flooded() {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    for _ in 0..100 {
        write_values(&cluster, &partition(0), &values("value", 10), Codec::None).await;
    }
    let settings = manual(&broker, StartAt::Beginning).with_fetch(|fetch| fetch.partition_max_bytes(1_000));
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let handle = consumer.handles()[0].clone();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while handle.answer().is_none_or(|answer| answer.position < 20) {
        assert!(tokio::time::Instant::now() < deadline, "nothing is fetched ahead");
        tokio::task::yield_now().await;
    }
    // Time enough for many more fetches, if they were made.
    for _ in 0..30 {
        write_values(&cluster, &partition(0), &values("later", 10), Codec::None).await;
    }
    let fetched = handle.answer().unwrap().position;
    assert!(fetched <= 100, "fetched up to {fetched} while nobody polled");
    assert_eq!(offsets(&mut consumer, 1_300).await.len(), 1_300);
    broker.stop().await;
}

#[tokio::test]
async fn a_broker_may_send_us_back_to_the_bootstrap_addresses() {
    let broker = broker(1, 1).await;
    let cluster = cluster(&broker).await;
    broker.faults().on(Api::Metadata).error(ErrorCode::RebootstrapRequired);
    let metadata = cluster.refresh().await.unwrap();
    assert_eq!(metadata.brokers.len(), 1);
    broker.stop().await;
}

#[tokio::test]
async fn a_stream_meets_new_partitions_within_the_metadata_age() {
    let broker = broker(1, 1).await;
    let settings = manual(&broker, StartAt::Beginning).metadata_max_age(Duration::from_millis(50));
    let consumer = Consumer::connect(&settings).await.unwrap();
    let mut changes = consumer.cluster().watch_metadata();
    let admin = datum_kafka::admin::Admin::new(cluster(&broker).await);
    admin.create_partitions(TOPIC, 3).await.unwrap();
    let grown = changes.wait_for(|metadata| metadata.partition_count(TOPIC) == Some(3));
    tokio::time::timeout(Duration::from_secs(20), grown).await.unwrap().unwrap();
    broker.stop().await;
}

// -- groups --------------------------------------------------------------------------------------------------------------

fn member(broker: &BrokerHandle) -> ConsumerSettings {
    ConsumerSettings::new(&broker.bootstrap())
        .group("g")
        .topic(TOPIC)
        .session_timeout(Duration::from_secs(6))
        .commit_interval(Duration::from_millis(20))
}

async fn filled(broker: &BrokerHandle, partitions: i32, batches: usize) {
    let cluster = cluster(broker).await;
    for index in 0..partitions {
        for _ in 0..batches {
            write_values(&cluster, &partition(index), &values("v", 10), Codec::Lz4).await;
        }
    }
}

/// Reads, acknowledging everything, until `done` says so.
async fn work(
    consumer: &mut GroupConsumer,
    seen: &mut BTreeSet<(i32, i64)>,
    done: impl Fn(&BTreeSet<(i32, i64)>) -> bool,
) {
    while !done(seen) {
        let (batch, ack) =
            tokio::time::timeout(Duration::from_secs(30), consumer.next()).await.unwrap().unwrap();
        seen.extend(batch.records().map(|record| (batch.partition().partition, record.offset())));
        ack.ack();
    }
}

#[tokio::test]
async fn a_member_that_comes_back_goes_on_where_it_committed() {
    let broker = broker(1, 2).await;
    filled(&broker, 2, 5).await;
    let mut first = GroupConsumer::join(&member(&broker)).await.unwrap();
    let mut seen = BTreeSet::new();
    work(&mut first, &mut seen, |seen| seen.len() == 100).await;
    first.leave(Duration::from_secs(10)).await.unwrap();
    assert_eq!(broker.committed("g", TOPIC, 0).unwrap().0, 50);
    assert_eq!(broker.committed("g", TOPIC, 1).unwrap().0, 50);

    write_values(&cluster(&broker).await, &partition(0), &values("new", 3), Codec::None).await;
    let mut second = GroupConsumer::join(&member(&broker)).await.unwrap();
    let mut again = BTreeSet::new();
    work(&mut second, &mut again, |seen| seen.len() == 3).await;
    assert_eq!(again, BTreeSet::from([(0, 50), (0, 51), (0, 52)]));
    second.leave(Duration::from_secs(10)).await.unwrap();
    broker.stop().await;
}

#[tokio::test]
async fn what_was_not_acknowledged_is_delivered_to_the_next_owner() {
    let broker = broker(1, 1).await;
    filled(&broker, 1, 3).await;
    let mut first = GroupConsumer::join(&member(&broker)).await.unwrap();
    let (_, one) = first.next().await.unwrap();
    let (_, two) = first.next().await.unwrap();
    let (_, three) = first.next().await.unwrap();
    // Out of order, and the second never: the prefix ends before it.
    three.ack();
    one.ack();
    first.leave(Duration::from_millis(200)).await.unwrap();
    assert_eq!(broker.committed("g", TOPIC, 0).unwrap().0, 10);
    assert!(!two.ack(), "an acknowledgement after the partition was given up counts");
    let mut second = GroupConsumer::join(&member(&broker)).await.unwrap();
    let mut seen = BTreeSet::new();
    work(&mut second, &mut seen, |seen| seen.len() == 20).await;
    assert_eq!(seen, (10..30).map(|offset| (0, offset)).collect());
    broker.stop().await;
}

#[tokio::test]
async fn members_that_come_and_go_leave_no_gap() {
    let broker = broker(1, 4).await;
    filled(&broker, 4, 10).await;
    let total = 400;
    let mut first = GroupConsumer::join(&member(&broker)).await.unwrap();
    let mut seen = BTreeSet::new();
    work(&mut first, &mut seen, |seen| seen.len() >= 30).await;
    // The second joins while the first is at work; both go on until together they have seen everything.
    let mut second = GroupConsumer::join(&member(&broker)).await.unwrap();
    let mut other = BTreeSet::new();
    while seen.union(&other).count() < total {
        tokio::select! {
            next = first.next() => {
                let (batch, ack) = next.unwrap();
                seen.extend(batch.records().map(|record| (batch.partition().partition, record.offset())));
                ack.ack();
            }
            next = second.next() => {
                let (batch, ack) = next.unwrap();
                other.extend(batch.records().map(|record| (batch.partition().partition, record.offset())));
                ack.ack();
            }
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("{} of {total}", seen.union(&other).count()),
        }
    }
    second.leave(Duration::from_secs(10)).await.unwrap();
    first.leave(Duration::from_secs(10)).await.unwrap();
    for index in 0..4 {
        assert_eq!(broker.committed("g", TOPIC, index).unwrap().0, 100, "partition {index}");
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_moved_coordinator_and_refused_commits_are_lived_through() {
    let broker = broker(3, 1).await;
    filled(&broker, 1, 2).await;
    let mut consumer = GroupConsumer::join(&member(&broker)).await.unwrap();
    let mut seen = BTreeSet::new();
    work(&mut consumer, &mut seen, |seen| seen.len() == 20).await;
    broker.faults().on(Api::OffsetCommit).times(2).error(ErrorCode::CoordinatorLoadInProgress);
    for node in 1..=3 {
        broker.move_coordinator("g", node).unwrap();
        write_values(&cluster(&broker).await, &partition(0), &values("more", 5), Codec::None).await;
        let goal = seen.len() + 5;
        work(&mut consumer, &mut seen, |seen| seen.len() == goal).await;
    }
    consumer.leave(Duration::from_secs(10)).await.unwrap();
    assert_eq!(broker.committed("g", TOPIC, 0).unwrap().0, 35);
    broker.stop().await;
}

#[tokio::test]
async fn without_a_committed_offset_the_policy_none_is_an_error() {
    let broker = broker(1, 1).await;
    let settings = member(&broker).offset_reset(OffsetReset::None);
    let mut consumer = GroupConsumer::join(&settings).await.unwrap();
    let error = tokio::time::timeout(Duration::from_secs(20), consumer.next()).await.unwrap().unwrap_err();
    assert!(matches!(error.kind(), KafkaErrorKind::NoCommittedOffset { .. }), "{error}");
    broker.stop().await;
}

#[tokio::test]
async fn a_stream_acknowledges_and_leaves_in_order() {
    use datum_core::prelude::{Materializer, Sink, Source};
    use datum_kafka::stages::KafkaSources;

    let broker = broker(1, 2).await;
    filled(&broker, 2, 3).await;
    let materializer = Materializer::current().unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let done = Source::kafka(member(&broker))
        .run_with_on(
            Sink::foreach(move |record: datum_kafka::stages::CommittableRecord| {
                tell.send((record.handle().partition().partition, record.offset())).unwrap();
                record.ack();
            }),
            &materializer,
        )
        .unwrap();
    let mut seen = BTreeSet::new();
    while seen.len() < 60 {
        seen.insert(tokio::time::timeout(Duration::from_secs(30), told.recv()).await.unwrap().unwrap());
    }
    materializer.shutdown().await;
    done.await.unwrap();
    for index in 0..2 {
        assert_eq!(broker.committed("g", TOPIC, index).unwrap().0, 30, "partition {index}");
    }
    broker.stop().await;
}
