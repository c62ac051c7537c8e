//! A topic looked at from outside of the command.

use std::time::{Duration, Instant};

use datum::kafka::admin::{Admin, NewTopic, OffsetSpec};
use datum::kafka::consumer::Consumer;
use datum::kafka::producer::{Producer, ProducerRecord};
use datum::kafka::{ClientSettings, ConsumerSettings, Isolation, ProducerSettings, StartAt, TopicPartition};
use tokio::runtime::Runtime;

/// How long anything may take before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster's topics, as a plain client sees them.
pub struct Cluster {
    runtime: Runtime,
    brokers: String,
    admin: Admin,
}

/// A record as it stands in a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    pub key: Option<String>,
    pub value: Option<String>,
    pub timestamp: i64,
}

/// What is visible in a topic's first partition, read on at each call.
pub struct Visible {
    consumer: Consumer,
    partition: TopicPartition,
    pub records: Vec<Written>,
}

impl Cluster {
    pub fn connect(brokers: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let admin = runtime.block_on(Admin::connect(ClientSettings::new(brokers))).unwrap();
        Self { runtime, brokers: brokers.to_owned(), admin }
    }

    /// Creates a topic with some configuration.
    pub fn create(&self, topic: &str, partitions: i32, config: &[(&str, &str)]) {
        let new = NewTopic::new(topic).partitions(partitions);
        let new = config.iter().fold(new, |new, (key, value)| new.config(key, value));
        assert!(self.runtime.block_on(self.admin.create_topic(&new)).unwrap(), "{topic} is new");
    }

    /// Writes values with one key into one partition.
    pub fn write(&self, topic: &str, partition: i32, key: &str, values: &[&str]) {
        self.runtime.block_on(async {
            let producer = Producer::connect(ProducerSettings::new(&self.brokers)).await.unwrap();
            for value in values {
                let record = ProducerRecord::new(topic, (*value).to_owned()).key(key.to_owned());
                let sent = producer.send(record.partition(partition).timestamp(7)).await.unwrap();
                tokio::time::timeout(PATIENCE, sent).await.unwrap().unwrap();
            }
        });
    }

    /// Gives a topic more partitions.
    pub fn grow(&self, topic: &str, partitions: i32) {
        self.runtime.block_on(self.admin.create_partitions(topic, partitions)).unwrap();
    }

    /// How many members a group has, the dead included until their session expires.
    pub fn members(&self, group: &str) -> usize {
        self.runtime.block_on(self.admin.group_members(group)).unwrap().len()
    }

    /// Whether a group has committed an offset for this partition.
    pub fn has_committed(&self, group: &str, topic: &str, partition: i32) -> bool {
        let partition = TopicPartition::new(topic, partition);
        let wanted = std::slice::from_ref(&partition);
        self.runtime.block_on(self.admin.committed_offsets(group, wanted)).unwrap().contains_key(&partition)
    }

    /// How many records have been written to a topic from which none is deleted.
    pub fn written(&self, topic: &str) -> u64 {
        let ends = async {
            let metadata = self.admin.describe_topic(topic).await.unwrap();
            let partitions = (0..)
                .take(metadata.partition_count(topic).unwrap())
                .map(|partition| (TopicPartition::new(topic, partition), OffsetSpec::Latest));
            let wanted: Vec<_> = partitions.collect();
            self.admin.list_offsets(&wanted, Isolation::ReadUncommitted).await.unwrap()
        };
        let ends = self.runtime.block_on(ends);
        ends.values().map(|end| u64::try_from(end.offset.unwrap()).unwrap()).sum()
    }

    /// Whether a transaction is open on the topic's first partition.
    pub fn has_open_transaction(&self, topic: &str) -> bool {
        let wanted = [(TopicPartition::new(topic, 0), OffsetSpec::Latest)];
        let end = |isolation| {
            let found = self.runtime.block_on(self.admin.list_offsets(&wanted, isolation)).unwrap();
            found[&wanted[0].0].offset.unwrap()
        };
        end(Isolation::ReadCommitted) < end(Isolation::ReadUncommitted)
    }

    /// Looks at a topic of one partition.
    pub fn visible(&self, topic: &str) -> Visible {
        let partition = TopicPartition::new(topic, 0);
        let settings = ConsumerSettings::new(&self.brokers).assign(partition.clone(), StartAt::Beginning);
        let consumer =
            self.runtime.block_on(async { Consumer::on(self.admin.cluster().clone(), &settings) }).unwrap();
        Visible { consumer, partition, records: Vec::new() }
    }

    /// All that a topic of one partition holds, once every transaction in it has ended: the coordinator answers before it has written
    /// the markers that make a transaction visible.
    pub fn read(&self, topic: &str) -> Vec<Written> {
        let mut visible = self.visible(topic);
        let begun = Instant::now();
        while self.end(&visible, Isolation::ReadCommitted) < self.end(&visible, Isolation::ReadUncommitted) {
            assert!(begun.elapsed() < PATIENCE, "a transaction in {topic} stays open");
            std::thread::yield_now();
        }
        self.read_on(&mut visible);
        visible.records
    }

    fn end(&self, visible: &Visible, isolation: Isolation) -> i64 {
        let wanted = [(visible.partition.clone(), OffsetSpec::Latest)];
        let found = self.runtime.block_on(self.admin.list_offsets(&wanted, isolation)).unwrap();
        found[&visible.partition].offset.unwrap()
    }

    /// Reads on to what is visible now, and says how many records that is.
    pub fn read_on(&self, visible: &mut Visible) -> usize {
        let end = self.end(visible, Isolation::ReadCommitted);
        let reading = async {
            let handle = visible.consumer.handles()[0].clone();
            while handle.emitted_to().unwrap_or(0) < end {
                let batch = visible.consumer.next().await.unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                visible.records.extend(batch.records().map(|record| Written {
                    key: record.key().map(text),
                    value: record.value().map(text),
                    timestamp: record.timestamp(),
                }));
            }
        };
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, reading).await }).expect("in time");
        visible.records.len()
    }
}
