//! Leaders and coordinators that move because their node was killed, on a real Kafka of three nodes: runs under
//! `dev/with-kafka --nodes 3`, which names the cluster, and says so when there is none.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "test code: a failed step fails the test")]

mod support;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use datum_kafka::admin::{Admin, NewTopic};
use datum_kafka::cluster::CoordinatorKind;
use datum_kafka::consumer::{Consumer, GroupConsumer};
use datum_kafka::wire::batch::Codec;
use datum_kafka::{ClientSettings, ConsumerSettings, OffsetReset, StartAt, TopicPartition};
use support::produce::{values, write_values};

/// The cluster of three nodes.
struct Nodes {
    bootstrap: String,
    script: String,
    dir: String,
}

impl Nodes {
    fn named() -> Option<Self> {
        let var = |name: &str| std::env::var(name).ok();
        let named = (|| {
            Some(Self {
                bootstrap: var("DATUM_TEST_KAFKA3")?,
                script: var("DATUM_DEV_KAFKA")?,
                dir: var("DATUM_TEST_KAFKA3_DIR")?,
            })
        })();
        if named.is_none() {
            eprintln!("skipped: no cluster of three nodes is named; run under dev/with-kafka --nodes 3");
        }
        named
    }

    /// The number of the node that listens on this address.
    fn number(&self, address: &str) -> usize {
        let port = |address: &str| address.rsplit(':').next().unwrap().to_owned();
        1 + self.bootstrap.split(',').position(|node| port(node) == port(address)).unwrap()
    }

    fn run(&self, verb: &str, node: usize) {
        let status = Command::new(&self.script).args([verb, &self.dir, &node.to_string()]).status().unwrap();
        assert!(status.success(), "dev/kafka {verb} {node}");
    }

    fn settings(&self) -> ClientSettings {
        ClientSettings::new(&self.bootstrap).request_timeout(Duration::from_secs(60))
    }
}

fn fresh(what: &str) -> String {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    format!("{what}-{nanos}")
}

/// Kills the leader of a partition while it is consumed, then the coordinator of a group: offsets go on without a gap, the group
/// goes on where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_leaders_and_coordinators_cost_no_record() {
    let Some(nodes) = Nodes::named() else { return };
    let admin = Admin::connect(nodes.settings()).await.unwrap();
    let cluster = admin.cluster().clone();
    let name = fresh("moves");
    admin.create_topic(&NewTopic::new(&name).replication_factor(3)).await.unwrap();
    let partition = TopicPartition::new(name.as_str(), 0);
    write_values(&cluster, &partition, &values("a", 100), Codec::Lz4).await;

    let base = ConsumerSettings::new(&nodes.bootstrap).offset_reset(OffsetReset::None);
    let manual = base.clone().assign(partition.clone(), StartAt::Offset(0));
    let mut consumer = Consumer::connect(&manual).await.unwrap();
    let mut next = 0;
    let member = ConsumerSettings::new(&nodes.bootstrap)
        .group(&name)
        .topic(&name)
        .session_timeout(Duration::from_secs(10))
        .commit_interval(Duration::from_millis(100));
    let mut group = GroupConsumer::join(&member).await.unwrap();
    let mut seen = BTreeSet::new();
    let mut end = 100;
    read(&mut consumer, &mut next, end).await;
    work(&mut group, &mut seen, end).await;

    for round in ["leader", "coordinator"] {
        let victim = if round == "leader" {
            let (leader, _) = cluster.leader(&partition).await.unwrap();
            nodes.number(&cluster.metadata().brokers[&leader].address.to_string())
        } else {
            let key = name.as_str().into();
            nodes.number(cluster.coordinator(CoordinatorKind::Group, &key).await.unwrap().peer())
        };
        nodes.run("kill", victim);
        let written = write_values(&cluster, &partition, &values(round, 50), Codec::Lz4).await;
        end = written + 50;
        read(&mut consumer, &mut next, end).await;
        work(&mut group, &mut seen, end).await;
        nodes.run("node", victim);
    }
    group.leave(Duration::from_secs(30)).await.unwrap();
    assert_eq!(seen, (0..end).collect());
    let committed = admin.committed_offsets(&name, std::slice::from_ref(&partition)).await.unwrap();
    assert_eq!(committed[&partition].offset, end);
}

async fn read(consumer: &mut Consumer, next: &mut i64, end: i64) {
    while *next < end {
        let batch = tokio::time::timeout(Duration::from_secs(90), consumer.next()).await.unwrap().unwrap();
        for record in batch.records() {
            assert_eq!(record.offset(), *next, "a gap or a repetition");
            *next += 1;
        }
    }
}

async fn work(group: &mut GroupConsumer, seen: &mut BTreeSet<i64>, end: i64) {
    while !seen.contains(&(end - 1)) {
        let (batch, ack) =
            tokio::time::timeout(Duration::from_secs(90), group.next()).await.unwrap().unwrap();
        seen.extend(batch.records().map(|record| record.offset()));
        ack.ack();
    }
}
