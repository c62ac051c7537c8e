//! The client against a real Kafka: runs when `DATUM_TEST_KAFKA=host:port` names one, and says so when it does not.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "test code: a failed step fails the test")]

use std::time::Duration;

use datum_kafka::admin::{Admin, NewTopic, OffsetSpec};
use datum_kafka::cluster::{Cluster, CoordinatorKind};
use datum_kafka::{ClientSettings, ErrorCode, Isolation, KafkaErrorKind, TopicPartition};

/// The broker to test against.
fn broker() -> Option<String> {
    let broker = std::env::var("DATUM_TEST_KAFKA").ok();
    if broker.is_none() {
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
