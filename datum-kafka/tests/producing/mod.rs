//! Scenarios of producing and of transactions that hold on any broker, and how to read what they wrote.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests too")]
#![allow(dead_code, reason = "each suite uses some of it")]

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use datum_kafka::{
    ClientSettings, ConsumerSettings, Isolation, ProducerSettings, StartAt, TopicPartition,
    admin::{Admin, NewTopic, OffsetSpec},
    cluster::Cluster,
    consumer::Consumer,
    group::{CommitOffset, CooperativeSticky, Group, GroupEvent, Offsets, membership::MembershipConfig},
    producer::{Producer, ProducerRecord},
    transaction::{TransactionError, TransactionalProducer},
    wire::batch::Codec,
};
use tokio::time::timeout;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A name that no earlier run has used.
pub(crate) fn fresh(name: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{name}-{nanos}")
}

pub(crate) async fn admin(bootstrap: &str) -> Admin {
    Admin::new(Cluster::connect(ClientSettings::new(bootstrap)).await.unwrap())
}

pub(crate) async fn topic(bootstrap: &str, partitions: i32) -> String {
    let name = fresh("produced");
    admin(bootstrap).await.create_topic(&NewTopic::new(&name).partitions(partitions)).await.unwrap();
    name
}

/// Everything visible in a topic, by partition, in order, up to what is stable now.
pub(crate) async fn read(bootstrap: &str, topic: &str, partitions: i32) -> BTreeMap<i32, Vec<String>> {
    let tps: Vec<_> = (0..partitions).map(|partition| TopicPartition::new(topic, partition)).collect();
    let ends = ends(bootstrap, &tps).await;
    let mut settings = ConsumerSettings::new(bootstrap).isolation(Isolation::ReadCommitted);
    for tp in &tps {
        settings = settings.assign(tp.clone(), StartAt::Beginning);
    }
    let mut consumer = Consumer::connect(&settings).await.unwrap();
    let mut found: BTreeMap<i32, Vec<String>> =
        (0..partitions).map(|partition| (partition, Vec::new())).collect();
    let reading = timeout(PATIENCE, async {
        let mut at: BTreeMap<i32, i64> = BTreeMap::new();
        while ends.iter().any(|(tp, end)| *end > 0 && at.get(&tp.partition).is_none_or(|at| at < end)) {
            let batch = consumer.next().await.unwrap();
            let partition = batch.partition().partition;
            at.insert(partition, batch.next_offset());
            for record in batch.records() {
                let value = String::from_utf8(record.value().unwrap_or_default().to_vec()).unwrap();
                found.get_mut(&partition).unwrap().push(value);
            }
        }
    });
    reading.await.expect("the topic is read to its end");
    found
}

/// Where each partition ends once no transaction is open in it.
async fn ends(bootstrap: &str, tps: &[TopicPartition]) -> BTreeMap<TopicPartition, i64> {
    let admin = admin(bootstrap).await;
    let wanted: Vec<_> = tps.iter().map(|tp| (tp.clone(), OffsetSpec::Latest)).collect();
    let settled = timeout(PATIENCE, async {
        loop {
            let stable = admin.list_offsets(&wanted, Isolation::ReadCommitted).await.unwrap();
            let written = admin.list_offsets(&wanted, Isolation::ReadUncommitted).await.unwrap();
            if tps.iter().all(|tp| stable[tp].offset == written[tp].offset) {
                return stable;
            }
        }
    });
    settled
        .await
        .expect("all transactions end")
        .into_iter()
        .map(|(tp, found)| (tp, found.offset.unwrap_or(0)))
        .collect()
}

pub(crate) fn settings(bootstrap: &str) -> ProducerSettings {
    ProducerSettings::new(bootstrap)
}

pub(crate) async fn transactional(bootstrap: &str, id: &str) -> TransactionalProducer {
    let settings = settings(bootstrap).transactional_id(id).transaction_timeout(Duration::from_secs(8));
    TransactionalProducer::connect(settings).await.unwrap()
}

/// One member of a group that owns everything of a topic, its events served.
pub(crate) async fn owner(bootstrap: &str, group: &str, topic: &str) -> Group {
    let cluster = Cluster::connect(ClientSettings::new(bootstrap)).await.unwrap();
    let mut config = MembershipConfig::new(group, [topic]);
    config.assignors = vec![Arc::new(CooperativeSticky)];
    config.session_timeout = Duration::from_secs(10);
    config.heartbeat_interval = Duration::from_millis(100);
    let (group, mut events) = Group::join(cluster, config);
    tokio::spawn({
        let group = group.clone();
        async move {
            while let Some(event) = events.next().await {
                if let GroupEvent::Revoke(revoke) = event {
                    group.drained(revoke.drain);
                }
            }
        }
    });
    group.identity_after(-1, PATIENCE).await.unwrap();
    group
}

// scenarios

/// Every codec; order within a partition; keys to their partitions; records without key everywhere.
pub(crate) async fn every_codec_arrives_in_order(bootstrap: &str) {
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let topic = topic(bootstrap, 3).await;
        let producer =
            Producer::connect(settings(bootstrap).compression(codec).batch_bytes(4_000)).await.unwrap();
        let mut deliveries = Vec::new();
        for i in 0..2_000 {
            let record = ProducerRecord::new(topic.as_str(), format!("{i:06}")).timestamp(i);
            let record = if i % 2 == 0 { record.key(format!("key-{}", i % 10)) } else { record };
            deliveries.push(producer.send(record).await.unwrap());
        }
        producer.flush().await;
        let mut offsets: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for delivery in deliveries {
            let delivered = delivery.await.unwrap();
            offsets.entry(delivered.partition.partition).or_default().push(delivered.offset.unwrap());
        }
        let found = read(bootstrap, &topic, 3).await;
        assert_eq!(found.values().map(Vec::len).sum::<usize>(), 2_000, "{codec:?}");
        for (partition, values) in found {
            assert!(values.is_sorted(), "{codec:?}: partition {partition} is out of order");
            let expected: Vec<i64> = (0..).take(values.len()).collect();
            assert_eq!(offsets.remove(&partition).unwrap_or_default(), expected, "{codec:?}");
        }
        producer.close(PATIENCE).await.unwrap();
    }
}

/// Batches that the topic does not take are cut until it does.
pub(crate) async fn a_batch_too_large_is_cut(bootstrap: &str) {
    let name = fresh("small");
    let new = NewTopic::new(&name).partitions(1).config("max.message.bytes", "3000");
    admin(bootstrap).await.create_topic(&new).await.unwrap();
    let producer =
        Producer::connect(settings(bootstrap).compression(Codec::None).linger(Duration::from_millis(50)))
            .await
            .unwrap();
    let mut deliveries = Vec::new();
    for i in 0..100 {
        deliveries
            .push(producer.send(ProducerRecord::new(name.as_str(), format!("{i:0200}"))).await.unwrap());
    }
    let large = producer.send(ProducerRecord::new(name.as_str(), "x".repeat(5_000))).await.unwrap();
    let after = producer.send(ProducerRecord::new(name.as_str(), format!("{:0200}", 100))).await.unwrap();
    deliveries.push(after);
    for delivery in deliveries {
        timeout(PATIENCE, delivery).await.unwrap().unwrap();
    }
    let error = timeout(PATIENCE, large).await.unwrap().unwrap_err();
    assert!(!error.possibly_written, "{error}");
    let expected: Vec<_> = (0..=100).map(|i| format!("{i:0200}")).collect();
    assert_eq!(read(bootstrap, &name, 1).await[&0], expected);
}

/// A buffer much smaller than what is sent makes the sender wait, not fail.
pub(crate) async fn a_small_buffer_makes_senders_wait(bootstrap: &str) {
    let topic = topic(bootstrap, 2).await;
    let small = settings(bootstrap).batch_bytes(2_000).buffer_bytes(5_000);
    let producer = Producer::connect(small).await.unwrap();
    for i in 0..500 {
        let record = ProducerRecord::new(topic.as_str(), format!("{i:0100}"));
        drop(timeout(PATIENCE, producer.send(record)).await.unwrap().unwrap());
    }
    producer.close(PATIENCE).await.unwrap();
    assert_eq!(read(bootstrap, &topic, 2).await.values().map(Vec::len).sum::<usize>(), 500);
}

/// Committed transactions are visible once, aborted ones not at all, their offsets neither.
pub(crate) async fn transactions_are_visible_or_not(bootstrap: &str) {
    let (output, input) = (topic(bootstrap, 2).await, topic(bootstrap, 1).await);
    let group_id = fresh("group");
    let group = owner(bootstrap, &group_id, &input).await;
    let mut producer = transactional(bootstrap, &fresh("tx")).await;
    producer.init().await.unwrap();
    let tp = TopicPartition::new(input.as_str(), 0);
    let mut expected = Vec::new();
    for round in 0..6 {
        producer.begin().await.unwrap();
        for partition in 0..2 {
            let value = format!("{round}-{partition}");
            if round % 2 == 0 {
                expected.push(value.clone());
            }
            producer.send(ProducerRecord::new(output.as_str(), value).partition(partition)).await.unwrap();
        }
        let offsets =
            Offsets::from([(tp.clone(), CommitOffset::new(10 + round).metadata(format!("r{round}")))]);
        producer.send_offsets(&offsets, &group.identity().unwrap()).await.unwrap();
        if round % 2 == 0 { producer.commit().await.unwrap() } else { producer.abort().await.unwrap() }
    }
    let found = read(bootstrap, &output, 2).await;
    let mut found: Vec<_> = found.into_values().flatten().collect();
    found.sort();
    assert_eq!(found, expected);
    let committed =
        admin(bootstrap).await.committed_offsets(&group_id, std::slice::from_ref(&tp)).await.unwrap();
    assert_eq!((committed[&tp].offset, &*committed[&tp].metadata), (14, "r4"));
    // An empty transaction ends too, and so does one of offsets alone.
    producer.begin().await.unwrap();
    producer.commit().await.unwrap();
    producer.begin().await.unwrap();
    producer
        .send_offsets(&Offsets::from([(tp, CommitOffset::new(20))]), &group.identity().unwrap())
        .await
        .unwrap();
    producer.commit().await.unwrap();
    group.leave(PATIENCE).await.unwrap();
}

/// A second producer of the same id takes over: the first can neither commit nor begin again, and nothing of it is visible.
pub(crate) async fn a_successor_fences(bootstrap: &str) {
    let output = topic(bootstrap, 1).await;
    let id = fresh("fenced");
    let mut first = transactional(bootstrap, &id).await;
    first.init().await.unwrap();
    first.begin().await.unwrap();
    first.send(ProducerRecord::new(output.as_str(), "of the first")).await.unwrap();
    first.flush().await.unwrap();
    let mut second = transactional(bootstrap, &id).await;
    second.init().await.unwrap();
    second.begin().await.unwrap();
    second.send(ProducerRecord::new(output.as_str(), "of the second")).await.unwrap();
    second.commit().await.unwrap();
    let fenced = first.commit().await;
    assert!(matches!(fenced, Err(TransactionError::Fenced { .. })), "{fenced:?}");
    assert!(matches!(first.begin().await, Err(TransactionError::Misuse { .. })));
    assert_eq!(read(bootstrap, &output, 1).await[&0], ["of the second"]);
}

/// Offsets in a wrong generation are refused without harm to the transaction; with the right one they are part of it.
pub(crate) async fn a_stale_generation_leaves_the_transaction_open(bootstrap: &str) {
    let (output, input) = (topic(bootstrap, 1).await, topic(bootstrap, 1).await);
    let group_id = fresh("stale");
    let group = owner(bootstrap, &group_id, &input).await;
    let mut producer = transactional(bootstrap, &fresh("tx")).await;
    producer.init().await.unwrap();
    producer.begin().await.unwrap();
    producer.send(ProducerRecord::new(output.as_str(), "once")).await.unwrap();
    let tp = TopicPartition::new(input.as_str(), 0);
    let offsets = Offsets::from([(tp.clone(), CommitOffset::new(5))]);
    let before = group.identity().unwrap();
    group.rejoin("a test");
    let after = group.identity_after(before.generation, PATIENCE).await.unwrap();
    let refused = producer.send_offsets(&offsets, &before).await;
    assert!(matches!(refused, Err(TransactionError::Generation { .. })), "{refused:?}");
    producer.send_offsets(&offsets, &after).await.unwrap();
    producer.commit().await.unwrap();
    assert_eq!(read(bootstrap, &output, 1).await[&0], ["once"]);
    let committed =
        admin(bootstrap).await.committed_offsets(&group_id, std::slice::from_ref(&tp)).await.unwrap();
    assert_eq!(committed[&tp].offset, 5);
    group.leave(PATIENCE).await.unwrap();
}
