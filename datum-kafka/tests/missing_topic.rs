//! A topic that has to be there and is not: reported soon, and found when it comes in time.
#![allow(clippy::unwrap_used, reason = "test code: a failed step fails the test")]

use std::time::{Duration, Instant};

use datum_broker::Broker;
use datum_kafka::admin::{Admin, NewTopic};
use datum_kafka::{ClientSettings, KafkaErrorKind};

#[tokio::test]
async fn a_topic_that_must_exist_is_missed_within_seconds() {
    let broker = Broker::builder().start().await.unwrap();
    let admin = Admin::connect(ClientSettings::new(&broker.bootstrap())).await.unwrap();
    let started = Instant::now();
    let error = admin.describe_topic("nowhere").await.unwrap_err();
    assert!(
        matches!(error.kind(), KafkaErrorKind::UnknownTopic { topic, waited }
            if &**topic == "nowhere" && *waited == Duration::from_secs(3)),
        "{error}"
    );
    assert!(error.to_string().contains("check the name, or create it"), "{error}");
    // A running consumer's grace is 60 s.
    assert!(started.elapsed() < Duration::from_secs(15), "took {:?}", started.elapsed());
    broker.stop().await;
}

#[tokio::test]
async fn a_topic_missed_for_longer_than_the_grace_is_found_once_it_is_created() {
    let broker = Broker::builder().start().await.unwrap();
    let grace = Duration::from_millis(200);
    let settings = ClientSettings::new(&broker.bootstrap()).unknown_topic_grace(grace);
    let admin = Admin::connect(settings).await.unwrap();
    // Long enough that nothing is left of the grace that a consumer would give.
    for _ in 0..2 {
        admin.describe_topic("late").await.unwrap_err();
    }
    broker.create_topic("late", 2, &[]).unwrap();
    assert_eq!(admin.describe_topic("late").await.unwrap().partition_count("late"), Some(2));

    admin.describe_topic("made").await.unwrap_err();
    assert!(admin.create_topic(&NewTopic::new("made").partitions(3)).await.unwrap());
    assert_eq!(admin.cluster().metadata().partition_count("made"), Some(3));
    broker.stop().await;
}

#[tokio::test]
async fn a_topic_that_comes_within_the_grace_is_no_error() {
    let broker = Broker::builder().start().await.unwrap();
    let admin = Admin::connect(ClientSettings::new(&broker.bootstrap())).await.unwrap();
    let asked = broker.faults().requests(datum_broker::Api::Metadata);
    let created = async {
        // It has been answered that there is no such topic.
        while broker.faults().requests(datum_broker::Api::Metadata) < asked + 2 {
            tokio::task::yield_now().await;
        }
        broker.create_topic("soon", 1, &[]).unwrap();
    };
    let (described, ()) = tokio::join!(admin.describe_topic("soon"), created);
    assert_eq!(described.unwrap().partition_count("soon"), Some(1));
    broker.stop().await;
}
