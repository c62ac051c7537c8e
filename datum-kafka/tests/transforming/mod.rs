//! Scenarios of consume-transform-produce in transactions that hold on any broker.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use datum_core::prelude::*;
use datum_kafka::{
    ConsumerSettings, TopicPartition,
    producer::{Producer, ProducerRecord},
    stages::{KafkaSources, KafkaTransactionalSinks},
    transaction::TransactionError,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, interval, timeout},
};

use crate::producing::{PATIENCE, admin, fresh, read, settings, topic};

const PARTITIONS: i32 = 4;

/// A member that copies in transactions until it is told to stop, anew after each void transaction.
struct Member {
    materializer: Materializer,
    /// How many records it has taken, repeated ones included.
    taken: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Member {
    fn start(bootstrap: &str, group: &str, input: &str, output: &str) -> Self {
        let materializer = Materializer::current().unwrap();
        let taken = Arc::new(AtomicU64::new(0));
        let consumer = ConsumerSettings::new(bootstrap)
            .group(group)
            .topic(input)
            .session_timeout(Duration::from_secs(6))
            // Often enough to be seen, should anything be committed beside the transactions.
            .commit_interval(Duration::from_millis(10));
        let producer = settings(bootstrap)
            .transactional_id(&fresh(group))
            .transaction_timeout(Duration::from_secs(5))
            .transaction_interval(Duration::from_millis(30));
        let (output, counted, on) = (output.to_owned(), taken.clone(), materializer.clone());
        let task = tokio::spawn(async move {
            loop {
                let (output, counted) = (output.clone(), counted.clone());
                let done = Source::kafka(consumer.clone())
                    .map(move |record| {
                        counted.fetch_add(1, Ordering::Relaxed);
                        record.map(|value| ProducerRecord::new(output.as_str(), value))
                    })
                    .run_with_on(Sink::kafka_transactional(producer.clone()), &on)
                    .unwrap();
                match done.await {
                    Ok(()) => return,
                    Err(error) => {
                        let void = error.downcast_ref::<TransactionError>();
                        assert!(matches!(void, Some(TransactionError::Generation { .. })), "{error}");
                    }
                }
            }
        });
        Self { materializer, taken, task }
    }

    /// Waits until it has taken so many records more.
    async fn takes(&self, more: u64) {
        let wanted = self.taken.load(Ordering::Relaxed) + more;
        eventually("a member takes records", async || self.taken.load(Ordering::Relaxed) >= wanted).await;
    }

    async fn stop(self) {
        timeout(PATIENCE, self.materializer.shutdown()).await.expect("it stops");
        self.task.await.unwrap();
    }

    /// As if its process had been killed, but for the goodbye to the group.
    fn kill(self) {
        self.task.abort();
        self.materializer.abort();
    }
}

/// Looks again and again until it is so.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        tokio::task::yield_now().await;
    }
}

/// Two members, each with a transactional id of its own, come and go while records arrive: partitions move with transactions open, and the
/// output is the input, each record once.
pub(crate) async fn partitions_that_move_within_transactions_are_copied_once(bootstrap: &str) {
    let (input, output) = (topic(bootstrap, PARTITIONS).await, topic(bootstrap, 1).await);
    let group = fresh("moving");
    let enough = Arc::new(AtomicBool::new(false));
    let feeding = tokio::spawn(feed(bootstrap.to_owned(), input.clone(), enough.clone()));
    let start = || Member::start(bootstrap, &group, &input, &output);

    let first = start();
    first.takes(100).await;
    let second = start();
    second.takes(100).await;
    first.takes(50).await;
    first.stop().await;
    second.takes(100).await;
    let third = start();
    third.takes(100).await;
    second.kill();
    third.takes(100).await;
    let fourth = start();
    fourth.takes(50).await;
    enough.store(true, Ordering::Relaxed);
    let fed = feeding.await.unwrap();

    let partitions: Vec<_> = (0..PARTITIONS).map(|p| TopicPartition::new(input.as_str(), p)).collect();
    let admin = admin(bootstrap).await;
    eventually("everything is committed", async || {
        let committed = admin.committed_offsets(&group, &partitions).await.unwrap();
        partitions.iter().all(|p| committed.get(p).map(|c| c.offset) == Some(fed[&p.partition]))
    })
    .await;
    third.stop().await;
    fourth.stop().await;

    let mut written = read(bootstrap, &output, 1).await.remove(&0).unwrap();
    written.sort_unstable();
    let wanted: Vec<_> = (0..fed.values().sum()).map(|i| format!("{i:06}")).collect();
    let twice = written.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!((written.len(), twice), (wanted.len(), 0));
    assert_eq!(written, wanted);
}

/// Writes the input little by little until it is enough, and says how many records each partition got.
async fn feed(bootstrap: String, input: String, enough: Arc<AtomicBool>) -> BTreeMap<i32, i64> {
    let producer = Producer::connect(settings(&bootstrap)).await.unwrap();
    let mut pace = interval(Duration::from_millis(2));
    let mut counts = BTreeMap::new();
    let mut i = 0_i64;
    while !enough.load(Ordering::Relaxed) {
        pace.tick().await;
        let partition = i32::try_from(i % i64::from(PARTITIONS)).unwrap();
        let record = ProducerRecord::new(input.as_str(), format!("{i:06}")).partition(partition);
        drop(producer.send(record).await.unwrap());
        *counts.entry(partition).or_default() += 1;
        i += 1;
    }
    producer.flush().await;
    counts
}
