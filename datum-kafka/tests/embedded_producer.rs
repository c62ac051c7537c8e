//! A producer whose connections break in every place, on the embedded broker: everything is written once and in order.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod producing;

use std::time::Duration;

use datum_broker::{Api, Broker};
use datum_kafka::producer::{Producer, ProducerRecord};
use datum_kafka::wire::ErrorCode;
use producing::{PATIENCE, read, settings, topic};
use tokio::time::timeout;

const RECORDS: i32 = 300;

/// With five requests on their way, each of them in turn is lost before or after it is handled or refused, and the next connections too
/// cannot be greeted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_connections_and_refusals_neither_lose_nor_double_nor_reorder() {
    let broker = Broker::builder().start().await.unwrap();
    let bootstrap = broker.bootstrap();
    for place in 1..=6 {
        for fault in 0..3 {
            let topic = topic(&bootstrap, 1).await;
            let settings = settings(&bootstrap).linger(Duration::ZERO).batch_bytes(300);
            let producer = Producer::connect(settings).await.unwrap();
            // The first is acknowledged, so that the leader knows the producer.
            producer.send_and_wait(ProducerRecord::new(topic.as_str(), "000000")).await.unwrap();
            let before = broker.faults().requests(Api::Produce);
            let met = broker.faults().on(Api::Produce).nth(place);
            match fault {
                0 => met.disconnect(),
                1 => met.disconnect_after(),
                _ => met.error(ErrorCode::NotLeaderOrFollower),
            }
            if fault < 2 {
                broker.faults().on(Api::ApiVersions).times(2).disconnect();
            }
            let mut deliveries = Vec::new();
            for i in 1..RECORDS {
                let record = ProducerRecord::new(topic.as_str(), format!("{i:06}"));
                deliveries.push(producer.send(record).await.unwrap());
            }
            for delivery in deliveries {
                timeout(PATIENCE, delivery).await.unwrap().unwrap();
            }
            assert!(broker.faults().requests(Api::Produce) > before + place, "the fault was met");
            broker.faults().clear();
            let expected: Vec<_> = (0..RECORDS).map(|i| format!("{i:06}")).collect();
            assert_eq!(read(&bootstrap, &topic, 1).await[&0], expected, "request {place}, fault {fault}");
        }
    }
}
