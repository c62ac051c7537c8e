//! Consumers of another kind in the job's group.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use datum_job::protocol::{AssignmentError, Ending};
use datum_job::run::JobError;
use datum_kafka::ConsumerSettings;
use datum_kafka::cluster::Cluster;
use datum_kafka::group::membership::MembershipConfig;
use datum_kafka::group::{Group, GroupError, GroupEvent, GroupEvents};

use crate::oracle::{Input, Keys};
use crate::support::{Instance, Stage, eventually, job, within};

/// A consumer with the common assignors.
async fn classic(stage: &Stage) -> (Group, GroupEvents) {
    let cluster = Cluster::connect(ConsumerSettings::new(&stage.bootstrap).client).await.unwrap();
    let mut config = MembershipConfig::new(stage.topic("group"), [stage.topic("in")]);
    config.session_timeout = Duration::from_secs(10);
    Group::join(cluster, config)
}

async fn comes_after(stage: Stage) {
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    let mut input = Input::new(1, 2, Keys::Anywhere);
    let mut settings = job();
    settings.idle_timeout = None;
    let ours = Instance::start(&stage, stage.run_settings(), settings);
    ours.owns(1).await;
    stage.feed_all(&input.more(40)).await;
    let (_foreign, mut events) = classic(&stage).await;
    // The job offers only its own assignor, so the coordinator turns the other away.
    let turned_away = within(events.next()).await;
    assert!(
        matches!(turned_away, Some(GroupEvent::Failed(GroupError::NoCommonAssignor { .. }))),
        "{turned_away:?}"
    );
    stage.feed_all(&input.more(40)).await;
    stage.feed_all(&input.last()).await;
    stage.comes_to_show(&input.published(i64::MAX), "beside a foreigner").await;
    ours.stop().await.unwrap();
}

async fn came_before(stage: Stage) {
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    let mut input = Input::new(2, 2, Keys::Anywhere);
    stage.feed_all(&input.more(40)).await;
    stage.feed_all(&input.last()).await;
    let (foreign, mut events) = classic(&stage).await;
    while !matches!(within(events.next()).await, Some(GroupEvent::Assigned { .. })) {}
    let member = foreign.identity().unwrap().member_id;
    let ended = Instance::start(&stage, stage.run_settings(), job()).ends().await;
    let Err(JobError::Ownership(AssignmentError::OwnershipBroken { members, .. })) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(members, [member.to_string()]);
    assert_eq!(stage.read("out").await, []);
    let _ = foreign.leave(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_classic_consumer_comes_after_embedded() {
    comes_after(Stage::embedded("foreign").await).await;
}

#[tokio::test]
async fn a_classic_consumer_comes_after_real() {
    let Some(stage) = Stage::real("foreign") else { return };
    comes_after(stage).await;
}

#[tokio::test]
async fn a_classic_consumer_came_before_embedded() {
    came_before(Stage::embedded("settled").await).await;
}

#[tokio::test]
async fn a_classic_consumer_came_before_real() {
    let Some(stage) = Stage::real("settled") else { return };
    came_before(stage).await;
}

/// The Java console consumer with the new group protocol; ended with the test.
struct Console(Child);

impl Console {
    fn start(stage: &Stage) -> Option<Self> {
        let (tool, dir) =
            (std::env::var("DATUM_DEV_KAFKA").ok()?, std::env::var("DATUM_TEST_KAFKA_DIR").ok()?);
        let (topic, group) = (stage.topic("in"), stage.topic("group"));
        // `exec`, so that the process ended is the consumer itself.
        let line = r#"libs=${DATUM_KAFKA_LIBS:-$(dirname "$0")/../target/dev/kafka-libs}
            exec java -Xmx256m -Dlog4j2.configurationFile="$1/log4j2.properties" -cp "$libs/*" \
            org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$2" --topic "$3" --group "$4" \
            --from-beginning --command-property group.protocol=consumer"#;
        let child = Command::new("bash")
            .args(["-c", line, &tool, &dir, &stage.bootstrap, &topic, &group])
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self(child))
    }

    /// Whether it has ended, as it does when the coordinator turns it away.
    fn has_gone(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Waits until it shows a record: then it is in the group.
    async fn reads(&mut self) {
        let mut lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let first = within(tokio::task::spawn_blocking(move || {
            lines.find(|line| !line.as_ref().unwrap().contains("WARN"))
        }))
        .await
        .unwrap();
        println!("the console shows {first:?}");
        assert!(first.is_some());
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_consumer_of_the_new_protocol_comes_after_real() {
    let Some(stage) = Stage::real("next") else { return };
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    let mut input = Input::new(3, 2, Keys::Anywhere);
    let mut settings = job();
    settings.idle_timeout = None;
    let ours = Instance::start(&stage, stage.run_settings(), settings.clone());
    ours.owns(1).await;
    stage.feed_all(&input.more(40)).await;
    ours.has_processed(40).await;
    let Some(console) = Console::start(&stage) else { return };
    let console = Mutex::new(console);
    eventually(async || console.lock().unwrap().has_gone() || ours.has_ended()).await;
    if ours.has_ended() {
        // The coordinator has converted the group and given the partitions away.
        let ended = ours.ends().await;
        let Err(JobError::Ownership(AssignmentError::OwnershipBroken { members, .. })) = ended else {
            panic!("{ended:?}");
        };
        assert!(!members.is_empty());
        drop(console);
        stage.feed_all(&input.last()).await;
        let mut again = stage.run_settings();
        again.ending = Ending::AtEnd;
        eventually_ends(&stage, again, settings).await;
    } else {
        // Newer coordinators convert no group whose assignments carry data of an assignor's own: the other is turned away.
        stage.feed_all(&input.more(40)).await;
        stage.feed_all(&input.last()).await;
        stage.comes_to_show(&input.published(i64::MAX), "beside a foreigner").await;
        ours.stop().await.unwrap();
    }
    stage.must_show(&input.published(i64::MAX), "after a foreigner").await;
}

#[tokio::test]
async fn a_consumer_of_the_new_protocol_came_before_real() {
    let Some(stage) = Stage::real("new") else { return };
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    let mut input = Input::new(4, 2, Keys::Anywhere);
    stage.feed_all(&input.more(40)).await;
    let Some(mut console) = Console::start(&stage) else { return };
    console.reads().await;
    let ended = Instance::start(&stage, stage.run_settings(), job()).ends().await;
    assert!(matches!(ended, Err(JobError::Ownership(AssignmentError::OwnershipBroken { .. }))), "{ended:?}");
    assert_eq!(stage.read("out").await, []);
}

/// The coordinator keeps the foreigner until its session ends; until then the job refuses to run.
async fn eventually_ends(stage: &Stage, run: datum_job::RunSettings, job: datum_job::JobSettings) {
    within(async {
        loop {
            match Instance::start(stage, run.clone(), job.clone()).ends().await {
                Ok(_) => return,
                Err(JobError::Ownership(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await;
}
