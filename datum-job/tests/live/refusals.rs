//! Input and offsets from which no start can be right: each has its own refusal.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use datum_broker::Api;
use datum_job::protocol::Ending;
use datum_job::restore::Refusal;
use datum_job::run::{JobError, WindowJob};
use datum_kafka::cluster::Cluster;
use datum_kafka::group::membership::MembershipConfig;
use datum_kafka::group::{CommitOffset, Group, GroupEvent};
use datum_kafka::producer::{Producer, ProducerRecord};
use datum_kafka::{ConsumerSettings, ProducerSettings};

use crate::support::{Stage, eventually, job, within};

/// A stage on which the job has run once over two partitions; the last window of both is open.
async fn ran(stage: &Stage) {
    stage.create_with("in", 2, &[("segment.bytes", "1048576")]).await;
    stage.create("out", 1).await;
    stage.feed(&[(0, 1_000, "a,1"), (1, 2_000, "a,2"), (0, 15_000, "a,3"), (1, 16_000, "a,4")]).await;
    run(stage, false).await.unwrap();
    assert_eq!(stage.read("out").await.len(), 1);
}

async fn run(stage: &Stage, reset: bool) -> Result<(), JobError> {
    let mut settings = stage.run_settings();
    settings.ending = Ending::AtEnd;
    settings.reset = reset;
    within(WindowJob::new(settings, job(), stage.logic()).run(pending())).await.map(drop)
}

async fn refused(stage: &Stage) -> Refusal {
    let before = stage.read("out").await;
    let refusal = match run(stage, false).await {
        Err(JobError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(stage.read("out").await, before, "nothing is published by a refused start");
    refusal
}

/// Commits offsets as an ordinary consumer does: without state.
async fn commit(stage: &Stage, offsets: &[(i32, i64)]) {
    let cluster = Cluster::connect(ConsumerSettings::new(&stage.bootstrap).client).await.unwrap();
    let mut config = MembershipConfig::new(stage.topic("group"), [stage.topic("in")]);
    config.session_timeout = Duration::from_secs(10);
    let (group, mut events) = Group::join(cluster, config);
    while !matches!(within(events.next()).await, Some(GroupEvent::Assigned { .. })) {}
    let topic = stage.topic("in");
    let offsets: BTreeMap<_, _> = offsets
        .iter()
        .map(|(p, o)| (datum_kafka::TopicPartition::new(&*topic, *p), CommitOffset::new(*o)))
        .collect();
    within(group.commit(offsets, Duration::from_secs(10))).await.unwrap();
    let (left, ()) = tokio::join!(group.leave(Duration::from_secs(5)), async {
        while let Some(event) = events.next().await {
            if let GroupEvent::Revoke(revoke) = event {
                group.drained(revoke.drain);
            }
        }
    });
    left.unwrap();
}

async fn offsets_of_an_operator(stage: Stage) {
    ran(&stage).await;
    commit(&stage, &[(1, 0)]).await;
    assert_eq!(refused(&stage).await, Refusal::OffsetsWithoutState { partitions: vec![1] });
    commit(&stage, &[(0, 1), (1, 1)]).await;
    assert_eq!(refused(&stage).await, Refusal::OffsetsWithoutState { partitions: vec![0, 1] });
    run(&stage, true).await.unwrap();
    run(&stage, false).await.unwrap();
}

async fn a_compacted_topic(stage: Stage) {
    stage.create_with("in", 1, &[("cleanup.policy", "compact,delete")]).await;
    stage.create("out", 1).await;
    assert_eq!(refused(&stage).await, Refusal::Compacted);
}

async fn a_recreated_topic(stage: Stage) {
    ran(&stage).await;
    stage.admin().await.delete_topic(&stage.topic("in")).await.unwrap();
    let admin = stage.admin().await;
    eventually(async || {
        let topic = datum_kafka::admin::NewTopic::new(&stage.topic("in")).partitions(2);
        admin.create_topic(&topic).await.unwrap_or(false)
    })
    .await;
    stage.feed(&[(0, 1_000, "a,1"), (1, 2_000, "a,2")]).await;
    let refusal = refused(&stage).await;
    // A cluster may forget the offsets together with the topic; then the output speaks.
    assert!(matches!(refusal, Refusal::OtherTopic { .. } | Refusal::OutputWithoutOffsets), "{refusal:?}");
}

#[tokio::test]
async fn offsets_of_an_operator_embedded() {
    offsets_of_an_operator(Stage::embedded("operator").await).await;
}

#[tokio::test]
async fn offsets_of_an_operator_real() {
    let Some(stage) = Stage::real("operator") else { return };
    offsets_of_an_operator(stage).await;
}

#[tokio::test]
async fn a_compacted_topic_embedded() {
    a_compacted_topic(Stage::embedded("compacted").await).await;
}

#[tokio::test]
async fn a_compacted_topic_real() {
    let Some(stage) = Stage::real("compacted") else { return };
    a_compacted_topic(stage).await;
}

#[tokio::test]
async fn a_recreated_topic_embedded() {
    a_recreated_topic(Stage::embedded("recreated").await).await;
}

#[tokio::test]
async fn a_recreated_topic_real() {
    let Some(stage) = Stage::real("recreated") else { return };
    a_recreated_topic(stage).await;
}

/// Asks the coordinator to forget offsets, and the leader to forget records.
mod forget {
    use std::sync::Arc;

    use datum_kafka::TopicPartition;
    use datum_kafka::cluster::CoordinatorKind;
    use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
    use kafka_protocol::messages::offset_delete_request::{
        OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    };
    use kafka_protocol::messages::{DeleteRecordsRequest, GroupId, OffsetDeleteRequest, TopicName};
    use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

    use crate::support::Stage;

    pub fn name(text: &str) -> StrBytes {
        StrBytes::from_string(text.to_owned())
    }

    pub async fn records(stage: &Stage, partition: i32, before: i64) {
        let topic = stage.topic("in");
        let admin = stage.admin().await;
        admin.describe_topic(&topic).await.unwrap();
        let at = TopicPartition::new(&*topic, partition);
        let (leader, _) = admin.cluster().leader(&at).await.unwrap();
        let part = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(before);
        let topics = vec![
            DeleteRecordsTopic::default().with_name(TopicName(name(&topic))).with_partitions(vec![part]),
        ];
        let asked = DeleteRecordsRequest::default().with_topics(topics).with_timeout_ms(10_000);
        let mut socket = Raw::connect(stage, leader).await;
        let mut answer = socket.ask(21, 1, |out| asked.encode(out, 1).unwrap()).await;
        let answer = kafka_protocol::messages::DeleteRecordsResponse::decode(&mut answer, 1).unwrap();
        assert_eq!(answer.topics[0].partitions[0].error_code, 0);
    }

    pub async fn offset(stage: &Stage, partition: i32) {
        let group: Arc<str> = stage.topic("group").into();
        let admin = stage.admin().await;
        let coordinator = admin.cluster().coordinator(CoordinatorKind::Group, &group).await.unwrap();
        let part = OffsetDeleteRequestPartition::default().with_partition_index(partition);
        let topics = vec![
            OffsetDeleteRequestTopic::default()
                .with_name(TopicName(name(&stage.topic("in"))))
                .with_partitions(vec![part]),
        ];
        let asked = OffsetDeleteRequest::default().with_group_id(GroupId(name(&group))).with_topics(topics);
        let mut socket = Raw::open(coordinator.peer()).await;
        let mut answer = socket.ask(47, 0, |out| asked.encode(out, 0).unwrap()).await;
        let answer = kafka_protocol::messages::OffsetDeleteResponse::decode(&mut answer, 0).unwrap();
        assert_eq!((answer.error_code, answer.topics[0].partitions[0].error_code), (0, 0));
    }

    /// One request at a time, for what the client does not offer.
    struct Raw(tokio::net::TcpStream);

    impl Raw {
        async fn connect(stage: &Stage, node: i32) -> Self {
            let at = stage.broker.as_ref().map(|broker| broker.address(node).unwrap());
            Self::open(&at.unwrap_or_else(|| stage.bootstrap.clone())).await
        }

        async fn open(address: &str) -> Self {
            Self(tokio::net::TcpStream::connect(address).await.unwrap())
        }

        async fn ask(
            &mut self,
            key: i16,
            version: i16,
            body: impl FnOnce(&mut bytes::BytesMut),
        ) -> bytes::Bytes {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut frame = bytes::BytesMut::new();
            frame.extend_from_slice(&key.to_be_bytes());
            frame.extend_from_slice(&version.to_be_bytes());
            frame.extend_from_slice(&7_i32.to_be_bytes());
            frame.extend_from_slice(&(-1_i16).to_be_bytes());
            body(&mut frame);
            self.0.write_i32(i32::try_from(frame.len()).unwrap()).await.unwrap();
            self.0.write_all(&frame).await.unwrap();
            let size = usize::try_from(self.0.read_i32().await.unwrap()).unwrap();
            assert!(size < 65_536);
            let mut answer = vec![0; size];
            self.0.read_exact(&mut answer).await.unwrap();
            bytes::Bytes::from(answer).slice(4..)
        }
    }
}

async fn retention_has_eaten_the_span(stage: Stage) {
    ran(&stage).await;
    forget::records(&stage, 0, 2).await;
    assert_eq!(refused(&stage).await, Refusal::Retention { partition: 0, needed: 1, log_start: 2 });
}

async fn lost_offsets(stage: Stage) {
    ran(&stage).await;
    forget::offset(&stage, 0).await;
    assert_eq!(refused(&stage).await, Refusal::OffsetsMissing { partitions: vec![0], count: 2 });
    forget::offset(&stage, 1).await;
    assert_eq!(refused(&stage).await, Refusal::OutputWithoutOffsets);
}

#[tokio::test]
async fn retention_has_eaten_the_span_embedded() {
    retention_has_eaten_the_span(Stage::embedded("eaten").await).await;
}

#[tokio::test]
async fn retention_has_eaten_the_span_real() {
    let Some(stage) = Stage::real("eaten") else { return };
    retention_has_eaten_the_span(stage).await;
}

#[tokio::test]
async fn lost_offsets_embedded() {
    lost_offsets(Stage::embedded("lost").await).await;
}

#[tokio::test]
async fn lost_offsets_real() {
    let Some(stage) = Stage::real("lost") else { return };
    lost_offsets(stage).await;
}

/// A group without offsets looks for its own output in a topic that others have filled, at a batch an answer: slow answers in number
/// are no silence, and the job starts.
#[tokio::test]
async fn a_long_output_of_others_is_read_through_embedded() {
    let stage = Stage::embedded("shared").await;
    stage.create("in", 1).await;
    stage.create("out", 1).await;
    stage.feed(&[(0, 1_000, "a,1"), (0, 15_000, "a,2")]).await;
    let producer = Producer::connect(ProducerSettings::new(&stage.bootstrap)).await.unwrap();
    for n in 0..12 {
        let record = ProducerRecord::new(&*stage.topic("out"), format!("of others {n}")).timestamp(n);
        within(producer.send(record).await.unwrap()).await.unwrap();
    }
    stage.broker().faults().on(Api::Fetch).always().delay(Duration::from_millis(150));
    let mut settings = stage.run_settings();
    settings.ending = Ending::AtEnd;
    settings.request_limit = Duration::from_secs(1);
    settings.input = settings.input.with_fetch(|fetch| fetch.max_bytes(1).partition_max_bytes(1));
    let report = within(WindowJob::new(settings, job(), stage.logic()).run(pending())).await.unwrap();
    assert_eq!((report.windows, report.recoveries), (1, 0));
    let fetches = stage.broker().faults().requests(Api::Fetch);
    assert!(fetches > 12, "{fetches} answers: the whole took longer than the limit");
}
