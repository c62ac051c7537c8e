//! A crash exactly at each point of a cut, again and again.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datum_job::protocol::Ending;
use datum_job::run::{JobObserver, JobPoint, WindowJob};

use crate::oracle::{Input, Keys};
use crate::support::{Stage, job, within};

/// Panics the `left`-th time that the point is passed.
struct CrashAt {
    point: JobPoint,
    left: AtomicU64,
}

impl JobObserver for CrashAt {
    fn at(&self, point: JobPoint) {
        if point == self.point && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            panic!("a crash that was asked for, at {point:?}");
        }
    }
}

async fn crashes_at_each_point(stage: Stage, rounds: u64, seed: u64) {
    println!("seed {seed}");
    stage.create("in", 3).await;
    stage.create("out", 2).await;
    let mut input = Input::new(seed, 3, Keys::Anywhere);
    let points = [JobPoint::BeforeTransaction, JobPoint::OutputWritten, JobPoint::TransactionEnded];
    for round in 0..rounds {
        stage.feed_all(&input.more(60)).await;
        for point in points {
            let mut settings = stage.run_settings();
            settings.ending = Ending::AtEnd;
            // A static member comes back without a goodbye, as after a crash.
            settings.input = settings.input.instance_id("only");
            let mut job = job();
            job.idle_timeout = None;
            job.side_bound = 3;
            let crash = Arc::new(CrashAt { point, left: AtomicU64::new(1 + round % 2) });
            let run = WindowJob::new(settings, job, stage.logic()).observed(crash).run(pending());
            let ended = within(tokio::spawn(run)).await;
            match ended {
                Err(crashed) => assert!(crashed.is_panic()),
                // A round may have fewer cuts than the crash wanted.
                Ok(ended) => drop(ended.unwrap()),
            }
        }
    }
    stage.feed_all(&input.last()).await;
    let mut settings = stage.run_settings();
    settings.ending = Ending::AtEnd;
    settings.input = settings.input.instance_id("only");
    let mut job = job();
    job.idle_timeout = None;
    within(WindowJob::new(settings, job, stage.logic()).run(pending())).await.unwrap();
    stage.must_show(&input.published(i64::MAX), &format!("seed {seed}")).await;
}

#[tokio::test]
async fn a_crash_at_each_point_embedded() {
    for seed in 0..3 {
        crashes_at_each_point(Stage::embedded("points").await, 4, seed).await;
    }
}

#[tokio::test]
async fn a_crash_at_each_point_real() {
    let Some(stage) = Stage::real("points") else { return };
    crashes_at_each_point(stage, 4, 77).await;
}
