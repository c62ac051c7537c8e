//! Partitions that appear while the job runs.

use std::time::Duration;

use datum_job::machine::MachineError;
use datum_job::restore::Refusal;
use datum_job::run::JobError;
use datum_job::{JobSettings, Mode};

use crate::oracle::{Input, Keys};
use crate::support::{Instance, Stage, job};

fn settings(mode: Mode) -> JobSettings {
    let mut job = job();
    job.mode = mode;
    job.idle_timeout = None;
    job.side_bound = 4;
    job.commit_interval = 1_000;
    job
}

fn start(stage: &Stage, mode: Mode) -> Instance {
    let mut run = stage.run_settings();
    run.metadata_interval = Duration::from_millis(200);
    Instance::start(stage, run, settings(mode))
}

async fn new_partitions_count(stage: Stage, seed: u64) {
    println!("seed {seed}");
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    let mut input = Input::new(seed, 2, Keys::Anywhere);
    let first = start(&stage, Mode::Exclusive);
    first.owns(1).await;
    stage.feed_all(&input.more(80)).await;
    first.has_processed(80).await;
    for count in [3, 5] {
        stage.admin().await.create_partitions(&stage.topic("in"), count).await.unwrap();
        input.grow(count);
        stage.feed_all(&input.more(80)).await;
        let fed = if count == 3 { 160 } else { 240 };
        first.has_processed(fed).await;
    }
    // One more appears while nobody runs.
    first.stop().await.unwrap();
    stage.admin().await.create_partitions(&stage.topic("in"), 6).await.unwrap();
    input.grow(6);
    stage.feed_all(&input.more(80)).await;
    let second = start(&stage, Mode::Exclusive);
    stage.feed_all(&input.last()).await;
    // A partition that is discovered late makes late what had been published without it, so only the records are counted.
    second.has_processed(86).await;
    second.stop().await.unwrap();
    let shown = stage.read("out").await;
    let counted: u64 = shown
        .iter()
        .map(|(key, _, value)| match key.as_str() {
            "late" | "bad" => 1,
            _ => value.split_once(',').unwrap().0.parse::<u64>().unwrap(),
        })
        .sum();
    assert_eq!(counted, 326, "seed {seed}: {shown:?}");
    let mut panes: Vec<_> =
        shown.iter().filter(|(k, ..)| k != "late" && k != "bad").map(|s| (&s.0, s.1)).collect();
    let all = panes.len();
    panes.dedup();
    assert_eq!(panes.len(), all, "seed {seed}: a pane twice: {shown:?}");
}

async fn co_partitioned_ends(stage: Stage) {
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    let mut input = Input::new(5, 2, Keys::AtHome);
    let first = start(&stage, Mode::CoPartitioned);
    first.owns(2).await;
    stage.feed_all(&input.more(40)).await;
    first.has_processed(40).await;
    stage.admin().await.create_partitions(&stage.topic("in"), 3).await.unwrap();
    input.grow(3);
    stage.feed_all(&input.more(40)).await;
    let ended = first.ends().await;
    // It ends before anything of the moved keys is published, told of the new count or met by a key that has moved: the reason is the count.
    assert!(matches!(ended, Err(JobError::Machine(MachineError::CountChanged { .. }))), "{ended:?}");
    // Nor does it start again, however the partitions are spread.
    let ended = start(&stage, Mode::CoPartitioned).ends().await;
    assert!(
        matches!(ended, Err(JobError::Refused(Refusal::PartitionCount { stored: 2, found: 3, .. }))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn new_partitions_count_embedded() {
    for seed in 0..2 {
        new_partitions_count(Stage::embedded("growth").await, seed).await;
    }
}

#[tokio::test]
async fn new_partitions_count_real() {
    let Some(stage) = Stage::real("growth") else { return };
    new_partitions_count(stage, 21).await;
}

#[tokio::test]
async fn a_co_partitioned_job_ends_embedded() {
    co_partitioned_ends(Stage::embedded("grown").await).await;
}

#[tokio::test]
async fn a_co_partitioned_job_ends_real() {
    let Some(stage) = Stage::real("grown") else { return };
    co_partitioned_ends(stage).await;
}
