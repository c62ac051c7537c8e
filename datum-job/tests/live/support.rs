//! A small job (sums of numbers by key), its input and its output, on whatever broker there is.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use datum_broker::{Broker, BrokerHandle};
use datum_job::machine::Payload;
use datum_job::run::{
    JobError, JobLogic, JobObserver, JobReport, LogicCut, Progress, RunSettings, WindowJob,
};
use datum_job::stored::JobHash;
use datum_job::{Content, JobSettings, SideKind};
use datum_kafka::admin::{Admin, FoundOffset, NewTopic, OffsetSpec};
use datum_kafka::cluster::CoordinatorKind;
use datum_kafka::consumer::Consumer;
use datum_kafka::producer::{Producer, ProducerRecord};
use datum_kafka::wire::batch::Record;
use datum_kafka::{ConsumerSettings, Isolation, ProducerSettings, StartAt, TopicPartition};
use datum_window::{RecordPosition, Tumbling, Window};
use kafka_protocol::messages::{DescribeGroupsRequest, GroupId};
use kafka_protocol::protocol::StrBytes;

/// Where a test runs.
pub struct Stage {
    pub bootstrap: String,
    pub name: String,
    /// The embedded broker, kept alive as long as the test.
    pub broker: Option<BrokerHandle>,
}

impl Stage {
    pub async fn embedded(name: &str) -> Self {
        Self::embedded_nodes(name, 1).await
    }

    /// An embedded cluster of several nodes.
    pub async fn embedded_nodes(name: &str, nodes: usize) -> Self {
        let broker = Broker::builder().nodes(nodes).start().await.unwrap();
        Stage { bootstrap: broker.bootstrap(), name: unique(name), broker: Some(broker) }
    }

    /// The embedded broker of this stage.
    pub fn broker(&self) -> &BrokerHandle {
        self.broker.as_ref().unwrap()
    }

    /// A real broker, if the environment names one; it must when the environment says so.
    pub fn real(name: &str) -> Option<Self> {
        let bootstrap = std::env::var("DATUM_TEST_KAFKA").ok();
        let required = std::env::var("DATUM_TEST_REQUIRE_KAFKA").is_ok_and(|v| v == "1");
        assert!(bootstrap.is_some() || !required, "DATUM_TEST_KAFKA is not set and a real Kafka is required");
        Some(Stage { bootstrap: bootstrap?, name: unique(name), broker: None })
    }

    pub fn topic(&self, what: &str) -> String {
        format!("{}-{what}", self.name)
    }

    pub async fn create(&self, what: &str, partitions: i32) {
        self.create_with(what, partitions, &[]).await;
    }

    /// A topic with further settings.
    pub async fn create_with(&self, what: &str, partitions: i32, settings: &[(&str, &str)]) {
        let mut topic = NewTopic::new(&self.topic(what)).partitions(partitions).config("retention.ms", "-1");
        for (key, value) in settings {
            topic = topic.config(key, value);
        }
        self.admin().await.create_topic(&topic).await.unwrap();
    }

    pub async fn admin(&self) -> Admin {
        Admin::connect(ConsumerSettings::new(&self.bootstrap).client).await.unwrap()
    }

    /// Writes `(partition, timestamp, value)` to the input.
    pub async fn feed(&self, records: &[(i32, i64, &str)]) {
        let producer = Producer::connect(ProducerSettings::new(&self.bootstrap)).await.unwrap();
        let mut sent = Vec::new();
        for (partition, timestamp, value) in records {
            let record = ProducerRecord::new(&*self.topic("in"), value.to_string())
                .partition(*partition)
                .timestamp(*timestamp);
            sent.push(producer.send(record).await.unwrap());
        }
        for delivery in sent {
            delivery.await.unwrap();
        }
    }

    /// Everything visible in a topic: `(key, timestamp, value)`, sorted.
    pub async fn read(&self, what: &str) -> Vec<(String, i64, String)> {
        let topic = self.topic(what);
        let admin = self.admin().await;
        let count = admin.describe_topic(&topic).await.unwrap().partition_count(&topic).unwrap();
        let mut settings = ConsumerSettings::new(&self.bootstrap).isolation(Isolation::ReadCommitted);
        let mut wanted = Vec::new();
        for partition in 0..i32::try_from(count).unwrap() {
            let tp = TopicPartition::new(&*topic, partition);
            settings = settings.assign(tp.clone(), StartAt::Beginning);
            wanted.push((tp, OffsetSpec::Latest));
        }
        let ends = settled_ends(&admin, &wanted).await;
        let mut open: BTreeMap<TopicPartition, i64> = ends
            .into_iter()
            .filter_map(|(tp, end)| Some((tp, end.offset?)))
            .filter(|(_, end)| *end > 0)
            .collect();
        let mut consumer = Consumer::connect(&settings).await.unwrap();
        let mut all = Vec::new();
        while !open.is_empty() {
            let batch = within(consumer.next()).await.unwrap();
            for record in batch.records() {
                let text = |b: Option<&[u8]>| String::from_utf8(b.unwrap_or_default().to_vec()).unwrap();
                all.push((text(record.key()), record.timestamp(), text(record.value())));
            }
            if open.get(batch.partition()).is_some_and(|end| batch.next_offset() >= *end) {
                open.remove(batch.partition());
            }
        }
        all.sort();
        all
    }

    /// How many members the job's group has, once it is stable; none before.
    pub async fn members(&self) -> Option<usize> {
        let group: Arc<str> = self.topic("group").into();
        let admin = self.admin().await;
        let coordinator = admin.cluster().coordinator(CoordinatorKind::Group, &group).await.ok()?;
        let groups = vec![GroupId(StrBytes::from_string(group.to_string()))];
        let asked = DescribeGroupsRequest::default().with_groups(groups);
        let answer = coordinator.send(&asked).await.ok()?;
        let found = answer.groups.first().filter(|found| &*found.group_state == "Stable")?;
        Some(found.members.len())
    }

    /// Waits until the group is stable with `count` members.
    pub async fn has_members(&self, count: usize) {
        eventually(async || self.members().await == Some(count)).await;
    }

    pub fn run_settings(&self) -> RunSettings {
        let input =
            ConsumerSettings::new(&self.bootstrap).group(&self.topic("group")).topic(&self.topic("in"));
        let mut settings = RunSettings::new(input, ProducerSettings::new(&self.bootstrap));
        settings.output_topics = vec![self.topic("out").into()];
        settings
    }

    pub fn logic(&self) -> Sums {
        Sums { out: self.topic("out").into() }
    }
}

/// The stable ends. A transaction has ended before its markers are written, so they are waited for, though no longer than two seconds: a transaction
/// may have been left open.
async fn settled_ends(
    admin: &Admin,
    wanted: &[(TopicPartition, OffsetSpec)],
) -> HashMap<TopicPartition, FoundOffset> {
    let mut look = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..40 {
        look.tick().await;
        let stable = admin.list_offsets(wanted, Isolation::ReadCommitted).await.unwrap();
        let high = admin.list_offsets(wanted, Isolation::ReadUncommitted).await.unwrap();
        if stable.iter().all(|(tp, end)| end.offset == high[tp].offset) {
            return stable;
        }
    }
    admin.list_offsets(wanted, Isolation::ReadCommitted).await.unwrap()
}

/// Ten-second windows without grace.
pub fn job() -> JobSettings {
    let windows = Tumbling::of(Duration::from_secs(10)).checked().unwrap();
    JobSettings::new(windows, JobHash(7))
}

/// No wait of these tests is longer; one that is fails instead of hanging.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("within a minute")
}

/// Waits until `condition` holds.
pub async fn eventually(condition: impl AsyncFn() -> bool) {
    let mut look = tokio::time::interval(Duration::from_millis(50));
    within(async {
        while !condition().await {
            look.tick().await;
        }
    })
    .await;
}

/// A job that runs beside the test until it is stopped.
pub struct Instance {
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<JobReport, JobError>>,
    /// How often it has begun to own.
    pub starts: Arc<AtomicU64>,
    pub processed: Arc<AtomicU64>,
}

struct Watch(Arc<AtomicU64>, Arc<AtomicU64>);

impl JobObserver for Watch {
    fn started(&self, _: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn progress(&self, progress: &Progress) {
        let counters = progress.counters;
        let all = counters.accepted + counters.late + counters.undecodable + counters.ahead;
        self.1.store(all, Ordering::Relaxed);
    }
}

impl Instance {
    pub fn start(stage: &Stage, settings: RunSettings, job: JobSettings) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (starts, processed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let watch = Arc::new(Watch(starts.clone(), processed.clone()));
        let work = WindowJob::new(settings, job, stage.logic()).observed(watch);
        let task = tokio::spawn(work.run(async move {
            // A test that drops its end does not mean to stop.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        Self { stop, task, starts, processed }
    }

    /// Waits until it has begun to own for the `times`-th time.
    pub async fn owns(&self, times: u64) {
        eventually(async || self.starts.load(Ordering::Relaxed) >= times || self.task.is_finished()).await;
        assert!(!self.task.is_finished(), "it has ended instead");
    }

    /// Waits until it has processed that many records, replays apart.
    pub async fn has_processed(&self, count: u64) {
        eventually(async || self.processed.load(Ordering::Relaxed) >= count || self.task.is_finished()).await;
        assert!(!self.task.is_finished(), "it has ended instead");
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it in order.
    pub async fn stop(self) -> Result<JobReport, JobError> {
        let _ = self.stop.send(());
        within(self.task).await.unwrap()
    }

    /// Waits for it to end by itself.
    pub async fn ends(self) -> Result<JobReport, JobError> {
        within(self.task).await.unwrap()
    }
}

/// Shows what `RUST_LOG` asks for.
fn log() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // Another test of this process may have been first.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).try_init();
}

fn unique(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    log();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{next}", std::process::id())
}

/// The job: values are `key,number`; `bad` cannot be read; panes are sums. Late and bad records go to the output too,
/// under the key `late` and `bad`.
#[derive(Debug)]
pub struct Sums {
    out: Arc<str>,
}

#[derive(Default)]
pub struct SumsPayload(BTreeMap<(Window, String), (u64, i64)>);

impl Payload for SumsPayload {
    type Input<'a> = (&'a str, i64);
    type Side = Bytes;
    type Closed = Vec<(String, (u64, i64))>;

    fn add(&mut self, _: RecordPosition, window: Window, (key, number): (&str, i64)) {
        let pane = self.0.entry((window, key.to_owned())).or_default();
        pane.0 += 1;
        pane.1 += number;
    }

    fn close(&mut self, window: Window) -> Self::Closed {
        let keys: Vec<_> = self.0.keys().filter(|(w, _)| *w == window).cloned().collect();
        keys.into_iter().map(|k| (k.1.clone(), self.0.remove(&k).unwrap())).collect()
    }
}

impl JobLogic for Sums {
    type Payload = SumsPayload;
    type Error = std::convert::Infallible;

    fn payloads(&self) -> impl FnMut() -> SumsPayload + Send + 'static {
        SumsPayload::default
    }

    fn read<U>(
        &mut self,
        _: RecordPosition,
        record: &Record<'_>,
        mut then: impl for<'a> FnMut(Content<(&'a str, i64)>) -> U,
    ) -> Result<U, Self::Error> {
        let parsed = record
            .value()
            .and_then(|v| std::str::from_utf8(v).ok())
            .and_then(|v| v.split_once(','))
            .and_then(|(key, n)| Some((key, n.parse().ok()?)));
        Ok(then(parsed.map_or(Content::Undecodable, Content::Record)))
    }

    fn key_bytes<'a>(input: &'a (&str, i64)) -> Option<&'a [u8]> {
        Some(input.0.as_bytes())
    }

    fn side(record: &Record<'_>) -> Bytes {
        record.value_bytes().unwrap_or_default()
    }

    fn write(&mut self, cut: &LogicCut<Self>, out: &mut Vec<ProducerRecord>) {
        for closed in &cut.closed {
            for (key, (count, sum)) in &closed.panes {
                let record = ProducerRecord::new(self.out.clone(), format!("{count},{sum}"))
                    .key(key.clone())
                    .timestamp(closed.window.last());
                out.push(record);
            }
        }
        for side in &cut.sides {
            let key = match side.kind {
                SideKind::Late(_) => "late",
                SideKind::Undecodable => "bad",
                SideKind::Ahead => "ahead",
            };
            let record = ProducerRecord::new(self.out.clone(), side.record.clone())
                .key(key)
                .timestamp(side.at.timestamp);
            out.push(record);
        }
    }
}
