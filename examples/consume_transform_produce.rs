//! One record of one record, exactly once: what is written and what is consumed become visible together.
//!
//! `cargo run -p datum --example consume_transform_produce`

#![allow(clippy::print_stdout, reason = "a program for people")]

use datum::broker::{Broker, BrokerHandle};
use datum::kafka::producer::Producer;
use datum::prelude::*;

#[derive(Projected)]
struct Order {
    id: u64,
    cents: u64,
}

const ORDERS: u64 = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = filled_broker().await?;
    let server = broker.bootstrap();

    // Each run goes on where the transactions of the one before have ended.
    for _ in 0..2 {
        let output = ProducerSettings::new(&server).transactional_id("invoices");
        Source::kafka(ConsumerSettings::new(&server).group("invoices").topic("orders"))
            .decode(Json::<Order>::projected())
            .map(|order| order.map(invoice))
            .take(ORDERS / 2)
            .run_with(Sink::kafka_transactional(output))?
            .await?;
    }

    let ids = Source::kafka(ConsumerSettings::new(&server).group("readers").topic("invoices"))
        .take(ORDERS)
        .map(|record| {
            record.ack();
            String::from_utf8_lossy(record.record().key().unwrap_or_default()).into_owned()
        })
        .run_with(Sink::collect())?
        .await?;
    let all: Vec<String> = (0..ORDERS).map(|id| id.to_string()).collect();
    assert_eq!(ids, all);
    println!("{} invoices, each once", ids.len());
    broker.stop().await;
    Ok(())
}

fn invoice(order: Order) -> ProducerRecord {
    let with_tax = order.cents + order.cents * 19 / 100;
    ProducerRecord::new("invoices", format!(r#"{{"id":{},"cents":{with_tax}}}"#, order.id))
        .key(order.id.to_string())
}

async fn filled_broker() -> Result<BrokerHandle, Box<dyn std::error::Error>> {
    let broker = Broker::builder().start().await?;
    for topic in ["orders", "invoices"] {
        broker.create_topic(topic, 1, &[])?;
    }
    let producer = Producer::connect(ProducerSettings::new(&broker.bootstrap())).await?;
    for id in 0..ORDERS {
        let order = format!(r#"{{"id":{id},"customer":"c","cents":{}}}"#, id * 100);
        producer.send(ProducerRecord::new("orders", order)).await?;
    }
    producer.close(secs(10)).await.map_err(|lost| format!("{lost} records were not written"))?;
    Ok(broker)
}
