//! A producer whose only broker is killed and started again while it writes, on a real Kafka of the test's own: runs where
//! `DATUM_DEV_KAFKA` names `dev/kafka`, as under `dev/with-kafka`, and says so elsewhere.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "test code: a failed step fails the test")]

mod producing;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datum_kafka::ProducerSettings;
use datum_kafka::producer::{Producer, ProducerRecord};
use producing::{PATIENCE, fresh, read, topic};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

const PARTITIONS: i32 = 6;
const KILLS: usize = 3;
/// Records that are written between two kills.
const BETWEEN: usize = 20_000;

/// A cluster of one node that ends with the test.
struct Own {
    script: String,
    dir: PathBuf,
    bootstrap: String,
}

impl Own {
    fn start() -> Option<Self> {
        let Ok(script) = std::env::var("DATUM_DEV_KAFKA") else {
            eprintln!("skipped: DATUM_DEV_KAFKA does not name dev/kafka; run under dev/with-kafka");
            return None;
        };
        let dir = std::env::temp_dir().join(fresh("datum-kafka-own"));
        let mut own = Self { script, dir, bootstrap: String::new() };
        // The node outlives the script and would hold a pipe open: the address is asked for by itself.
        own.node("start");
        let said = Command::new(&own.script).arg("bootstrap").arg(&own.dir).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().clone_into(&mut own.bootstrap);
        Some(own)
    }

    /// `dev/kafka VERB` on the only node.
    fn node(&self, verb: &str) {
        let status = self.script(verb).arg("1").status().unwrap();
        assert!(status.success(), "dev/kafka {verb}");
    }

    fn script(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.script);
        let owner = std::process::id().to_string();
        command.arg(verb).arg(&self.dir).env("DATUM_KAFKA_OWNER", owner).stdout(Stdio::null());
        command
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.script("remove").status();
    }
}

/// Every record is acknowledged, and is in the log once and in order, although the broker dies with requests on their way.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_killed_broker_costs_no_record_and_doubles_none() {
    let Some(own) = Own::start() else { return };
    let topic = topic(&own.bootstrap, PARTITIONS).await;
    // Small batches and a small buffer: there are always five requests on their way.
    let settings = ProducerSettings::new(&own.bootstrap)
        .linger(Duration::from_millis(1))
        .batch_bytes(2_000)
        .buffer_bytes(100_000);
    let producer = Producer::connect(settings).await.unwrap();

    let (sent, mut deliveries) = mpsc::unbounded_channel();
    let over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (over, topic) = (over.clone(), topic.clone());
        async move {
            let mut written = 0;
            while !over.load(Ordering::Relaxed) {
                let value = format!("{:08}", written / PARTITIONS);
                let record = ProducerRecord::new(topic.as_str(), value).partition(written % PARTITIONS);
                sent.send(producer.send(record).await.unwrap()).unwrap();
                written += 1;
            }
            producer.flush().await;
            written
        }
    });
    let (acked, mut progress) = watch::channel(0);
    let reader = tokio::spawn(async move {
        while let Some(delivery) = deliveries.recv().await {
            delivery.await.unwrap();
            acked.send_modify(|count| *count += 1);
        }
    });
    for kill in 1..=KILLS {
        timeout(PATIENCE, progress.wait_for(|count| *count >= kill * BETWEEN)).await.unwrap().unwrap();
        own.node("kill");
        own.node("node");
        // What was on its way is decided before the next one.
        let before = *progress.borrow_and_update();
        timeout(PATIENCE, progress.wait_for(|count| *count >= before + BETWEEN)).await.unwrap().unwrap();
    }
    over.store(true, Ordering::Relaxed);
    let written = timeout(PATIENCE, writer).await.unwrap().unwrap();
    timeout(PATIENCE, reader).await.unwrap().unwrap();

    let found = read(&own.bootstrap, &topic, PARTITIONS).await;
    for (partition, values) in found {
        let expected = (0..).map(|i| format!("{i:08}"));
        let count = (written - partition + PARTITIONS - 1) / PARTITIONS;
        assert_eq!(values.len(), usize::try_from(count).unwrap(), "partition {partition}");
        assert!(
            values.into_iter().eq(expected.take(usize::try_from(count).unwrap())),
            "{partition}: the order"
        );
    }
}
