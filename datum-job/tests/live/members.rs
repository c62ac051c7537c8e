//! A second instance that joins and leaves while records keep coming.

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

async fn joins_and_leaves_twice(stage: Stage, mode: Mode, seed: u64) {
    println!("seed {seed}");
    stage.create("in", 4).await;
    stage.create("out", 2).await;
    let keys = if mode == Mode::Exclusive { Keys::Anywhere } else { Keys::AtHome };
    let mut input = Input::new(seed, 4, keys);
    let start = || Instance::start(&stage, stage.run_settings(), settings(mode));
    let mut first = start();
    first.owns(1).await;
    for round in 0..2 {
        stage.feed_all(&input.more(60)).await;
        let second = start();
        stage.has_members(2).await;
        if mode == Mode::CoPartitioned {
            second.owns(1).await;
        }
        stage.feed_all(&input.more(60)).await;
        if round == 0 {
            second.stop().await.unwrap();
        } else {
            // The other way round: the second takes over everything.
            first.stop().await.unwrap();
            second.owns(if mode == Mode::Exclusive { 1 } else { 3 }).await;
            first = second;
        }
        stage.feed_all(&input.more(60)).await;
    }
    stage.feed_all(&input.last()).await;
    stage.comes_to_show(&input.published(i64::MAX), &format!("{mode}, seed {seed}")).await;
    first.stop().await.unwrap();
    stage.must_show(&input.published(i64::MAX), &format!("{mode} at the end, seed {seed}")).await;
}

#[tokio::test]
async fn a_standby_joins_and_leaves_embedded() {
    for seed in 0..2 {
        joins_and_leaves_twice(Stage::embedded("standby").await, Mode::Exclusive, seed).await;
    }
}

#[tokio::test]
async fn a_standby_joins_and_leaves_real() {
    let Some(stage) = Stage::real("standby") else { return };
    joins_and_leaves_twice(stage, Mode::Exclusive, 11).await;
}

#[tokio::test]
async fn partitions_move_and_return_embedded() {
    for seed in 0..2 {
        joins_and_leaves_twice(Stage::embedded("share").await, Mode::CoPartitioned, seed).await;
    }
}

#[tokio::test]
async fn partitions_move_and_return_real() {
    let Some(stage) = Stage::real("share") else { return };
    joins_and_leaves_twice(stage, Mode::CoPartitioned, 12).await;
}
