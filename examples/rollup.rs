//! Service objectives by region and half minute, exactly once: JSON records from one Kafka topic, panes into another.
//!
//! `cargo run -p datum --example rollup` runs it on an embedded broker with a few records of its own. On your own cluster, give its
//! address instead, and leave `flush` out to follow the topic for ever.

#![allow(clippy::print_stdout, reason = "a program for people")]

use datum::broker::{Broker, BrokerHandle};
use datum::kafka::producer::Producer;
use datum::prelude::*;

#[derive(Projected)]
struct Metric {
    region: CompactString,
    latency_ms: f64,
    error_count: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (broker, server) = filled_broker().await?;

    let slo = Aggregates::<Metric>::new()
        .count("count")
        .mean("latency_avg", |m| m.latency_ms)
        .count_if("sla_breaches", |m| m.latency_ms > 80.0)
        .sum("error_sum", |m| m.error_count);
    let report = Source::kafka_job(ConsumerSettings::new(&server).group("slo").topic("requests"))
        .decode(Json::<Metric>::projected())
        .key_by(|m| m.region.as_str())
        .named("region")
        .window(Tumbling::of(secs(30)).grace(secs(1)))
        .aggregate(slo)
        .on_published(|panes| {
            for pane in panes {
                println!("{} {:?}", pane.key, pane.value.values());
            }
        })
        .flush()
        .run_with(Sink::kafka_panes(ProducerSettings::new(&server), "slo"))
        .await?;

    assert_eq!((report.counters.accepted, report.windows, report.output), (90, 3, 6));
    println!("{} records, {} panes", report.counters.accepted, report.output);
    broker.stop().await;
    Ok(())
}

/// An embedded broker with a record per second for a minute and a half, from two regions.
async fn filled_broker() -> Result<(BrokerHandle, String), Box<dyn std::error::Error>> {
    const START: i64 = 1_762_732_800_000;
    let broker = Broker::builder().start().await?;
    for topic in ["requests", "slo"] {
        broker.create_topic(topic, 2, &[("retention.ms", "-1")])?;
    }
    let producer = Producer::connect(ProducerSettings::new(&broker.bootstrap())).await?;
    for n in 0..90 {
        let region = ["eu-west-1", "us-east-1"][usize::from(n % 3 == 0)];
        let record =
            format!(r#"{{"region":"{region}","latency_ms":{n}.5,"host":"h","error_count":{}}}"#, n / 80);
        producer
            .send(ProducerRecord::new("requests", record).timestamp(START + i64::from(n) * 1_000))
            .await?;
    }
    producer.close(secs(10)).await.map_err(|lost| format!("{lost} records were not written"))?;
    let server = broker.bootstrap();
    Ok((broker, server))
}
