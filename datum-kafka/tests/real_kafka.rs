//! The client against a real Kafka: runs when `DATUM_TEST_KAFKA=host:port` names one, and says so when it does not.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "test code: a failed step fails the test")]

mod support;

use std::time::Duration;

use datum_kafka::admin::{Admin, NewTopic, OffsetSpec};
use datum_kafka::cluster::{Cluster, CoordinatorKind};
use datum_kafka::consumer::Consumer;
use datum_kafka::wire::batch::Codec;
use datum_kafka::{
    ClientSettings, ConsumerSettings, ErrorCode, Isolation, KafkaErrorKind, OffsetReset, StartAt,
    TopicPartition,
};
use support::produce::{Transaction, values, write_values};

/// The broker to test against.
fn broker() -> Option<String> {
    let broker = std::env::var("DATUM_TEST_KAFKA").ok();
    if broker.is_none() {
        assert!(
            std::env::var_os("DATUM_TEST_REQUIRE_KAFKA").is_none(),
            "a broker is required and none is named"
        );
        eprintln!("skipped: DATUM_TEST_KAFKA is not set");
    }
    broker
}

/// A topic name nobody else uses.
fn fresh(what: &str) -> String {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    format!("{what}-{nanos}")
}

async fn admin(broker: &str) -> Admin {
    Admin::connect(ClientSettings::new(broker)).await.unwrap()
}

#[tokio::test]
async fn topics_are_created_grown_described_and_deleted() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let name = fresh("admin");
    let topic = NewTopic::new(&name).partitions(3).config("retention.ms", "-1");
    assert!(admin.create_topic(&topic).await.unwrap());
    assert!(!admin.create_topic(&topic).await.unwrap(), "a second creation is no error and no creation");
    assert_eq!(admin.describe_topic(&name).await.unwrap().partition_count(&name), Some(3));
    let config = admin.topic_config(&name, &["retention.ms", "cleanup.policy", "no.such.key"]).await.unwrap();
    assert_eq!(config.get("retention.ms").unwrap(), "-1");
    assert_eq!(config.get("cleanup.policy").unwrap(), "delete");
    assert_eq!(config.len(), 2);
    admin.create_partitions(&name, 5).await.unwrap();
    let error = admin.create_partitions(&name, 2).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::InvalidPartitions), "{error}");
    let mut changes = admin.cluster().watch_metadata();
    while changes.borrow_and_update().partition_count(&name) != Some(5) {
        admin.cluster().refresh().await.unwrap();
    }
    let ends: Vec<_> = (0..5).map(|p| (TopicPartition::new(name.as_str(), p), OffsetSpec::Latest)).collect();
    let found = admin.list_offsets(&ends, Isolation::ReadCommitted).await.unwrap();
    assert_eq!(found.len(), 5);
    assert!(found.values().all(|found| found.offset == Some(0)));
    assert!(admin.delete_topic(&name).await.unwrap());
    assert!(!admin.delete_topic(&name).await.unwrap());
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_named_after_the_grace() {
    let Some(broker) = broker() else { return };
    let settings = ClientSettings::new(&broker).unknown_topic_grace(Duration::from_millis(300));
    let cluster = Cluster::connect(settings).await.unwrap();
    let name = fresh("missing");
    let error = cluster.require_topics([name.as_str().into()]).await.unwrap_err();
    assert!(
        matches!(error.kind(), KafkaErrorKind::UnknownTopic { topic, .. } if **topic == *name),
        "{error}"
    );
}

#[tokio::test]
async fn coordinators_are_found_for_groups_and_transactions() {
    let Some(broker) = broker() else { return };
    let cluster = Cluster::connect(ClientSettings::new(&broker)).await.unwrap();
    let key = fresh("who").as_str().into();
    for kind in [CoordinatorKind::Group, CoordinatorKind::Transaction] {
        let connection = cluster.coordinator(kind, &key).await.unwrap();
        assert!(!connection.is_closed());
        assert!(connection.versions().feature("transaction.version").unwrap() >= 0);
    }
}

#[tokio::test]
async fn a_group_that_never_committed_has_no_offsets() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let name = fresh("uncommitted");
    admin.create_topic(&NewTopic::new(&name)).await.unwrap();
    let found = admin.committed_offsets(&name, &[TopicPartition::new(name.as_str(), 0)]).await.unwrap();
    assert!(found.is_empty());
}

#[tokio::test]
async fn any_of_several_bootstrap_addresses_will_do() {
    let Some(broker) = broker() else { return };
    let list = format!("127.0.0.1:1,{broker},127.0.0.1:2");
    for _ in 0..4 {
        let cluster = Cluster::connect(ClientSettings::new(&list)).await.unwrap();
        assert!(!cluster.metadata().brokers.is_empty());
    }
}

/// A fresh topic of one partition.
async fn topic(admin: &Admin, what: &str) -> TopicPartition {
    let name = fresh(what);
    admin.create_topic(&NewTopic::new(&name)).await.unwrap();
    TopicPartition::new(name.as_str(), 0)
}

/// Everything from `start` up to `end`, as offset and value.
async fn read(
    broker: &str,
    partition: &TopicPartition,
    start: StartAt,
    end: i64,
    isolation: Isolation,
) -> Vec<(i64, String)> {
    let settings = ConsumerSettings::new(broker).assign(partition.clone(), start).isolation(isolation);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let mut seen = Vec::new();
    let mut position = -1;
    while position < end {
        let next = tokio::time::timeout(Duration::from_secs(20), consumer.next());
        let batch = next.await.expect("the end is never reached").unwrap();
        for record in batch.records() {
            seen.push((record.offset(), String::from_utf8(record.value().unwrap().to_vec()).unwrap()));
        }
        position = batch.next_offset();
    }
    seen
}

#[tokio::test]
async fn every_codec_is_read_back_in_order() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let partition = topic(&admin, "codecs").await;
    let mut expected = Vec::new();
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let values = values(&format!("{codec:?}"), 500);
        let base = write_values(admin.cluster(), &partition, &values, codec).await;
        expected.extend((base..).zip(values.iter().map(|v| String::from_utf8(v.clone()).unwrap())));
    }
    let seen = read(&broker, &partition, StartAt::Beginning, 2500, Isolation::ReadCommitted).await;
    assert_eq!(seen, expected);
    // From the middle of a batch: only what was asked for.
    let seen = read(&broker, &partition, StartAt::Offset(1234), 2500, Isolation::ReadCommitted).await;
    assert_eq!(seen, expected[1234..]);
    // By time: every batch has timestamps from 1,000 on, so the first record at 1,100 or later is the 100th.
    let seen = read(&broker, &partition, StartAt::Timestamp(1_100), 2500, Isolation::ReadCommitted).await;
    assert_eq!(seen[0].0, 100);
}

#[tokio::test]
async fn aborted_records_are_dropped_and_markers_stepped_over() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let cluster = admin.cluster();
    let partition = topic(&admin, "aborted").await;
    let (first, second) = (fresh("tx-a"), fresh("tx-b"));
    let mut aborted = Transaction::begin(cluster, &first, &partition).await;
    aborted.write(&partition, &values("aborted", 3)).await;
    let mut committed = Transaction::begin(cluster, &second, &partition).await;
    committed.write(&partition, &values("committed", 2)).await;
    aborted.write(&partition, &values("aborted too", 1)).await;
    aborted.end(false).await;
    write_values(cluster, &partition, &values("plain", 1), Codec::None).await;
    committed.end(true).await;

    let end = loop {
        // Markers are written after the answer to EndTxn.
        let wanted = [(partition.clone(), OffsetSpec::Latest)];
        let found = admin.list_offsets(&wanted, Isolation::ReadCommitted).await.unwrap();
        let end = found[&partition].offset.unwrap();
        if end == 9 {
            break end;
        }
    };
    let names = |seen: Vec<(i64, String)>| seen.into_iter().map(|(_, value)| value).collect::<Vec<_>>();
    let seen = read(&broker, &partition, StartAt::Beginning, end, Isolation::ReadCommitted).await;
    assert_eq!(names(seen), ["committed-0", "committed-1", "plain-0"]);
    // From inside the aborted transaction: its marker comes without an entry at some positions, and is stepped over.
    for start in 1..end {
        let seen = read(&broker, &partition, StartAt::Offset(start), end, Isolation::ReadCommitted).await;
        assert!(seen.iter().all(|(_, value)| !value.starts_with("aborted")), "from {start}: {seen:?}");
    }
    let seen = read(&broker, &partition, StartAt::Beginning, end, Isolation::ReadUncommitted).await;
    assert_eq!(seen.len(), 7);
}

#[tokio::test]
async fn an_open_transaction_holds_the_end_back_and_an_answer_shows_both_ends() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let partition = topic(&admin, "open").await;
    write_values(admin.cluster(), &partition, &values("before", 2), Codec::Lz4).await;
    let id = fresh("tx");
    let mut open = Transaction::begin(admin.cluster(), &id, &partition).await;
    open.write(&partition, &values("open", 3)).await;
    write_values(admin.cluster(), &partition, &values("behind", 1), Codec::Lz4).await;

    let wanted = [(partition.clone(), OffsetSpec::Latest)];
    let stable = admin.list_offsets(&wanted, Isolation::ReadCommitted).await.unwrap();
    let all = admin.list_offsets(&wanted, Isolation::ReadUncommitted).await.unwrap();
    assert_eq!((stable[&partition].offset, all[&partition].offset), (Some(2), Some(6)));
    let seen = read(&broker, &partition, StartAt::Beginning, 2, Isolation::ReadCommitted).await;
    assert_eq!(seen.len(), 2, "a source bounded by the stable end finishes");

    let settings = ConsumerSettings::new(&broker).assign(partition.clone(), StartAt::Beginning);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(consumer.next().await.unwrap().next_offset(), 2);
    let handle = consumer.handles()[0].clone();
    let answer = handle.answer().unwrap();
    assert_eq!(
        (answer.position, answer.high_watermark, answer.last_stable_offset, answer.log_start),
        (2, 6, 2, 0)
    );
    open.end(true).await;
    let batch = consumer.next().await.unwrap();
    assert_eq!((batch.len(), batch.next_offset()), (3, 5));
    let batch = consumer.next().await.unwrap();
    assert_eq!((batch.len(), batch.next_offset()), (1, 6));
    // The marker behind the last record: nothing to see, but the position moves to the end.
    let batch = consumer.next().await.unwrap();
    assert!(batch.is_empty());
    assert_eq!((batch.next_offset(), handle.emitted_to()), (7, Some(7)));
}

#[tokio::test]
async fn a_position_outside_of_the_log_follows_the_policy() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let partition = topic(&admin, "outside").await;
    write_values(admin.cluster(), &partition, &values("v", 5), Codec::None).await;
    let consumer = async |policy| {
        let settings = ConsumerSettings::new(&broker)
            .assign(partition.clone(), StartAt::Offset(1 << 40))
            .offset_reset(policy);
        Consumer::connect(&settings).await.unwrap()
    };
    let mut early = consumer(OffsetReset::Earliest).await;
    let batch = early.next().await.unwrap();
    assert_eq!(batch.records().next().unwrap().offset(), 0);
    let mut none = consumer(OffsetReset::None).await;
    let error = none.next().await.unwrap_err();
    assert!(
        matches!(
            error.kind(),
            KafkaErrorKind::OffsetOutOfRange { position: 0x100_0000_0000, log_start: 0, end: 5, .. }
        ),
        "{error}"
    );
    // The partition rests until a seek brings it back.
    let handle = none.handles()[0].clone();
    none.fetcher().seek(&handle, StartAt::Offset(4));
    assert_eq!(none.next().await.unwrap().records().next().unwrap().offset(), 4);
    let mut late = consumer(OffsetReset::Latest).await;
    let mut next = std::pin::pin!(late.next());
    let late_value = values("late", 1);
    let batch = loop {
        // Only what is written after the reset is seen; so write until something is.
        let written = write_values(admin.cluster(), &partition, &late_value, Codec::None);
        tokio::select! { biased; batch = &mut next => break batch, _ = written => {} }
    };
    assert!(batch.unwrap().records().next().unwrap().offset() >= 5);
}

#[tokio::test]
async fn a_partition_that_comes_back_starts_over_and_nothing_of_the_old_assignment_appears() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let partition = topic(&admin, "again").await;
    for _ in 0..20 {
        write_values(admin.cluster(), &partition, &values("v", 50), Codec::Lz4).await;
    }
    let settings = ConsumerSettings::new(&broker).assign(partition.clone(), StartAt::Beginning);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let first = consumer.next().await.unwrap();
    let old = first.handle().clone();
    assert_eq!(consumer.unassign(&partition), Some(50));
    let new = consumer.assign(partition.clone(), StartAt::Offset(10));
    assert!(new.epoch() > old.epoch());
    let mut next = 10;
    while next < 1000 {
        let batch = consumer.next().await.unwrap();
        assert_eq!(*batch.handle(), new);
        for record in batch.records() {
            assert_eq!(record.offset(), next);
            next += 1;
        }
    }
    assert!(old.if_committable(|| ()).is_none(), "an acknowledgement of the old assignment is committed");
}

#[tokio::test]
async fn a_paused_partition_waits_and_loses_nothing() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let (slow, busy) = (topic(&admin, "slow").await, topic(&admin, "busy").await);
    for partition in [&slow, &busy] {
        for _ in 0..10 {
            write_values(admin.cluster(), partition, &values("v", 10), Codec::None).await;
        }
    }
    let settings = ConsumerSettings::new(&broker)
        .assign(slow.clone(), StartAt::Beginning)
        .assign(busy.clone(), StartAt::Beginning);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let handle = consumer.handles()[0].clone();
    consumer.fetcher().pause(&handle);
    let mut read = 0;
    while read < 100 {
        let batch = consumer.next().await.unwrap();
        assert_eq!(*batch.partition(), busy);
        read += batch.len();
    }
    consumer.fetcher().resume(&handle);
    let mut next = 0;
    while next < 100 {
        for record in consumer.next().await.unwrap().records() {
            assert_eq!(record.offset(), next);
            next += 1;
        }
    }
}

#[tokio::test]
async fn a_topic_deleted_and_created_again_is_noticed() {
    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let partition = topic(&admin, "recreated").await;
    write_values(admin.cluster(), &partition, &values("old", 3), Codec::None).await;
    let settings = ConsumerSettings::new(&broker).assign(partition.clone(), StartAt::Beginning);
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    assert_eq!(consumer.next().await.unwrap().len(), 3);
    assert!(admin.delete_topic(&partition.topic).await.unwrap());
    admin.create_topic(&NewTopic::new(&partition.topic)).await.unwrap();
    let error = tokio::time::timeout(Duration::from_secs(20), consumer.next()).await.unwrap().unwrap_err();
    assert!(matches!(error.kind(), KafkaErrorKind::TopicRecreated { .. }), "{error}");
}

#[tokio::test]
async fn two_members_share_a_topic_and_what_they_acknowledge_is_committed() {
    use datum_kafka::consumer::GroupConsumer;
    use std::collections::BTreeSet;

    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let name = fresh("group");
    admin.create_topic(&NewTopic::new(&name).partitions(4)).await.unwrap();
    let partitions: Vec<_> = (0..4).map(|index| TopicPartition::new(name.as_str(), index)).collect();
    for partition in &partitions {
        for _ in 0..10 {
            write_values(admin.cluster(), partition, &values("v", 10), Codec::Lz4).await;
        }
    }
    let settings = ConsumerSettings::new(&broker)
        .group(&name)
        .topic(&name)
        .session_timeout(Duration::from_secs(6))
        .commit_interval(Duration::from_millis(50));
    let mut first = GroupConsumer::join(&settings).await.unwrap();
    let mut second = GroupConsumer::join(&settings).await.unwrap();
    let mut seen = BTreeSet::new();
    let mut workers = BTreeSet::new();
    while seen.len() < 400 {
        let (who, next) = tokio::select! {
            next = first.next() => (1, next),
            next = second.next() => (2, next),
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("{} of 400", seen.len()),
        };
        let (batch, ack) = next.unwrap();
        seen.extend(batch.records().map(|record| (batch.partition().partition, record.offset())));
        workers.insert(who);
        ack.ack();
    }
    second.leave(Duration::from_secs(10)).await.unwrap();
    first.leave(Duration::from_secs(10)).await.unwrap();
    let committed = admin.committed_offsets(&name, &partitions).await.unwrap();
    for partition in &partitions {
        let found = &committed[partition];
        assert_eq!((found.offset, found.leader_epoch), (100, Some(0)), "{partition}");
    }
}

#[tokio::test]
async fn a_group_works_through_transactions_to_the_very_end() {
    use datum_kafka::consumer::GroupConsumer;

    let Some(broker) = broker() else { return };
    let admin = admin(&broker).await;
    let partition = topic(&admin, "group-tx").await;
    let id = fresh("tx");
    for round in 0..4 {
        let mut transaction = Transaction::begin(admin.cluster(), &id, &partition).await;
        transaction.write(&partition, &values(&format!("round-{round}"), 3)).await;
        transaction.end(round % 2 == 0).await;
    }
    let settings = ConsumerSettings::new(&broker)
        .group(&partition.topic)
        .topic(&partition.topic)
        .commit_interval(Duration::from_millis(50));
    let mut consumer = GroupConsumer::join(&settings).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), consumer.next());
        let (batch, ack) = next.await.expect("the end is never reached").unwrap();
        seen.extend(batch.records().map(|record| (record.offset(), record.value().unwrap().to_vec())));
        ack.ack();
        if batch.next_offset() == 16 {
            break;
        }
    }
    // Each round is three records and a marker.
    let committed =
        [0, 2].into_iter().flat_map(|round| (round * 4..).zip(values(&format!("round-{round}"), 3)));
    assert_eq!(seen, committed.collect::<Vec<_>>());
    consumer.leave(Duration::from_secs(10)).await.unwrap();
    // The last thing in the log is a marker: the commit is behind it, so the lag is nought.
    let committed =
        admin.committed_offsets(&partition.topic, std::slice::from_ref(&partition)).await.unwrap();
    assert_eq!(committed[&partition].offset, 16);
}
