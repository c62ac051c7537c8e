//! Records that leave beside the panes: late, unreadable and far ahead of the clock, each once over crashes.

use std::future::pending;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use datum_job::protocol::Ending;
use datum_job::run::WindowJob;

use crate::oracle::{Dice, Fed, Input, Keys};
use crate::support::{Stage, job, within};

async fn each_once_over_crashes(stage: Stage, seed: u64, crashes: usize) {
    println!("seed {seed}");
    let far = [("message.timestamp.after.max.ms", "9223372036854775807")];
    stage.create_with("in", 2, &far).await;
    stage.create_with("out", 1, &far).await;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let mut dice = Dice::new(seed);
    let mut input = Input::new(seed, 2, Keys::Anywhere);
    let settings = || {
        let mut job = job();
        job.idle_timeout = None;
        job.side_bound = 3;
        job
    };
    for _ in 0..crashes {
        stage.feed_all(&input.more(30)).await;
        let ahead: Vec<Fed> = (0..3)
            .map(|n| Fed {
                partition: n % 2,
                timestamp: now + 86_400_000 + i64::from(n),
                value: "k1,5".into(),
            })
            .collect();
        input.add(&ahead);
        stage.feed_all(&ahead).await;
        stage.feed_all(&input.more(30)).await;
        let mut run = stage.run_settings();
        run.ending = Ending::AtEnd;
        run.input = run.input.instance_id("only");
        let limit = Duration::from_millis(60 + dice.below(500));
        // Running out of its time is the crash.
        let ended =
            tokio::time::timeout(limit, WindowJob::new(run, settings(), stage.logic()).run(pending())).await;
        if let Ok(ended) = ended {
            ended.unwrap();
        }
    }
    stage.feed_all(&input.last()).await;
    let mut run = stage.run_settings();
    run.ending = Ending::AtEnd;
    run.input = run.input.instance_id("only");
    within(WindowJob::new(run, settings(), stage.logic()).run(pending())).await.unwrap();
    let want = input.published(now + 3_600_000);
    for kind in ["late", "bad", "ahead"] {
        assert!(want.iter().any(|shown| shown.0 == kind), "the input has {kind} records");
    }
    stage.must_show(&want, &format!("seed {seed}")).await;
}

#[tokio::test]
async fn records_aside_leave_once_embedded() {
    for seed in 0..3 {
        each_once_over_crashes(Stage::embedded("aside").await, seed, 6).await;
    }
}

#[tokio::test]
async fn records_aside_leave_once_real() {
    let Some(stage) = Stage::real("aside") else { return };
    each_once_over_crashes(stage, 51, 6).await;
}
