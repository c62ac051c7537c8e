//! One owner from start to end, restarts included.

use std::future::pending;

use datum_job::protocol::{Delivery, Ending};
use datum_job::restore::Refusal;
use datum_job::run::{JobError, JobReport, WindowJob};

use crate::support::{Stage, job, within};

async fn run(stage: &Stage, ending: Ending, delivery: Delivery) -> Result<JobReport, JobError> {
    let mut settings = stage.run_settings();
    settings.ending = ending;
    settings.delivery = delivery;
    within(WindowJob::new(settings, job(), stage.logic()).run(pending())).await
}

fn pane(key: &str, end: i64, value: &str) -> (String, i64, String) {
    (key.into(), end * 1_000 - 1, value.into())
}

async fn publishes_each_pane_once_over_restarts(stage: Stage, delivery: Delivery) {
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    stage
        .feed(&[
            (0, 1_000, "a,1"),
            (0, 2_000, "b,2"),
            (1, 3_000, "a,3"),
            (0, 4_000, "bad"),
            (0, 12_000, "a,4"),
        ])
        .await;
    let first = run(&stage, Ending::AtEnd, delivery).await.unwrap();
    // Partition 1 holds the first window open; the unreadable record has left.
    assert_eq!(first.counters.accepted, 4);
    assert_eq!((first.counters.undecodable, first.windows, first.open_windows), (1, 0, 2));
    assert_eq!(stage.read("out").await, [("bad".into(), 4_000, "bad".into())]);

    stage.feed(&[(1, 13_000, "b,5"), (1, 5_000, "a,6")]).await;
    let second = run(&stage, Ending::AtEnd, delivery).await.unwrap();
    // The open windows were read again from the input; the last record is late by its own partition.
    assert_eq!((second.counters.replayed, second.counters.accepted, second.counters.late), (5, 1, 1));
    assert_eq!((second.windows, second.open_windows), (1, 1));

    let third = run(&stage, Ending::AtEndFlushed, delivery).await.unwrap();
    assert_eq!((third.windows, third.open_windows), (1, 0));
    let want = [
        pane("a", 10, "2,4"),
        pane("a", 20, "1,4"),
        pane("b", 10, "1,2"),
        pane("b", 20, "1,5"),
        ("bad".into(), 4_000, "bad".into()),
        ("late".into(), 5_000, "a,6".into()),
    ];
    assert_eq!(stage.read("out").await, want);
    let fourth = run(&stage, Ending::AtEndFlushed, delivery).await.unwrap();
    assert_eq!((fourth.windows, fourth.counters.accepted), (0, 0));
    assert_eq!(stage.read("out").await, want);
}

#[tokio::test]
async fn each_pane_once_over_restarts_embedded() {
    publishes_each_pane_once_over_restarts(Stage::embedded("once").await, Delivery::ExactlyOnce).await;
}

#[tokio::test]
async fn each_pane_once_over_restarts_real() {
    let Some(stage) = Stage::real("once") else { return };
    publishes_each_pane_once_over_restarts(stage, Delivery::ExactlyOnce).await;
}

#[tokio::test]
async fn at_least_once_without_a_crash_is_once() {
    publishes_each_pane_once_over_restarts(Stage::embedded("least").await, Delivery::AtLeastOnce).await;
}

#[tokio::test]
async fn offsets_without_state_and_output_without_offsets_are_refused() {
    let stage = Stage::embedded("refused").await;
    stage.create("in", 1).await;
    stage.create("out", 1).await;
    stage.feed(&[(0, 1_000, "a,1"), (0, 22_000, "a,2")]).await;
    run(&stage, Ending::AtEnd, Delivery::ExactlyOnce).await.unwrap();
    assert_eq!(stage.read("out").await.len(), 1);
    // Another group writes to the same output: nothing of it is there yet.
    let mut other = stage.run_settings();
    other.input = other.input.group("another");
    other.ending = Ending::AtEnd;
    within(WindowJob::new(other, job(), stage.logic()).run(pending())).await.unwrap();
    assert_eq!(stage.read("out").await.len(), 2);
    // The same group under another job.
    let mut changed = job();
    changed.hash = datum_job::stored::JobHash(8);
    let mut settings = stage.run_settings();
    settings.ending = Ending::AtEnd;
    let refused = within(WindowJob::new(settings, changed, stage.logic()).run(pending())).await;
    assert!(matches!(refused, Err(JobError::Refused(Refusal::OtherJob { .. }))), "{refused:?}");
}
