//! An owner that stands still for longer than its session and its transaction may last.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datum_job::run::{JobObserver, JobPoint, WindowJob};

use crate::oracle::{Input, Keys};
use crate::support::{Instance, Stage, eventually, job, within};

/// Remembers that a point was passed.
struct Mark(JobPoint, AtomicBool);

impl JobObserver for Mark {
    fn at(&self, point: JobPoint) {
        if point == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Polls `run` until `reached`, and leaves it where it is.
async fn until(run: &mut (impl Future + Unpin), reached: &AtomicBool) {
    within(std::future::poll_fn(|cx| {
        let ended = std::pin::Pin::new(&mut *run).poll(cx).is_ready();
        assert!(!ended, "it has ended instead");
        if reached.load(Ordering::Relaxed) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }))
    .await;
}

/// The work stands still at `point` while its heartbeats go on; the transaction times out.
async fn work_stands_still(point: JobPoint, seed: u64) {
    println!("seed {seed}");
    let stage = Stage::embedded("still").await;
    stage.create("in", 2).await;
    stage.create("out", 1).await;
    let mut input = Input::new(seed, 2, Keys::Anywhere);
    stage.feed_all(&input.more(80)).await;
    let mark = Arc::new(Mark(point, AtomicBool::new(false)));
    let mut settings = job();
    settings.idle_timeout = None;
    settings.side_bound = 2;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = WindowJob::new(stage.run_settings(), settings, stage.logic()).observed(mark.clone());
    let mut run = pin!(run.run(async move { drop(stopped.await) }));
    until(&mut run, &mark.1).await;
    // The broker's time passes in steps that heartbeats follow; nobody polls the work.
    let beats = stage.broker().faults().requests(datum_broker::Api::Heartbeat);
    stage.broker().clock().advance(Duration::from_secs(9));
    eventually(async || stage.broker().faults().requests(datum_broker::Api::Heartbeat) > beats).await;
    stage.broker().clock().advance(Duration::from_secs(2));
    stage.feed_all(&input.more(40)).await;
    stage.feed_all(&input.last()).await;
    let want = input.published(i64::MAX);
    let (ended, ()) = tokio::join!(run, async {
        stage.comes_to_show(&want, &format!("{point:?}, seed {seed}")).await;
        let _ = stop.send(());
    });
    ended.unwrap();
    stage.must_show(&want, &format!("{point:?} at the end, seed {seed}")).await;
}

#[tokio::test]
async fn work_that_stands_still_recovers() {
    for point in [JobPoint::BeforeTransaction, JobPoint::OutputWritten, JobPoint::TransactionEnded] {
        work_stands_still(point, 31).await;
    }
}

/// The whole process stands still, another takes over, and then the first wakes up.
#[tokio::test]
async fn a_process_that_stood_still_is_fenced() {
    for (seed, point) in [JobPoint::BeforeTransaction, JobPoint::OutputWritten, JobPoint::TransactionEnded]
        .into_iter()
        .enumerate()
    {
        let seed = 41 + u64::try_from(seed).unwrap();
        println!("seed {seed}");
        let stage = Stage::embedded("stood").await;
        stage.create("in", 2).await;
        stage.create("out", 1).await;
        let mut input = Input::new(seed, 2, Keys::Anywhere);
        stage.feed_all(&input.more(80)).await;
        let mark = Arc::new(Mark(point, AtomicBool::new(false)));
        let mut settings = job();
        settings.idle_timeout = None;
        settings.side_bound = 2;
        // A runtime of its own, which stands still when nobody drives it: heartbeats stop as well.
        let (first, bootstrap) = (mark.clone(), stage.run_settings());
        let (frozen, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (logic, job) = (stage.logic(), settings.clone());
        let (froze, thaw) = (frozen.clone(), go_on.clone());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let process = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let run = WindowJob::new(bootstrap, job, logic).observed(first.clone());
            let mut run = Box::pin(run.run(async move { drop(stopped.await) }));
            runtime.block_on(until(&mut run, &first.1));
            froze.store(true, Ordering::Release);
            while !thaw.load(Ordering::Acquire) {
                std::thread::park();
            }
            runtime.block_on(run)
        });
        eventually(async || frozen.load(Ordering::Acquire)).await;
        stage.broker().clock().advance(Duration::from_secs(11));
        let second = Instance::start(&stage, stage.run_settings(), settings);
        second.owns(1).await;
        stage.feed_all(&input.more(40)).await;
        go_on.store(true, Ordering::Release);
        process.thread().unpark();
        stage.has_members(2).await;
        stage.feed_all(&input.more(40)).await;
        stage.feed_all(&input.last()).await;
        let want = input.published(i64::MAX);
        stage.comes_to_show(&want, &format!("{point:?}, seed {seed}")).await;
        let _ = stop.send(());
        let first = tokio::task::spawn_blocking(move || process.join());
        within(first).await.unwrap().unwrap().unwrap();
        second.stop().await.unwrap();
        stage.must_show(&want, &format!("{point:?} at the end, seed {seed}")).await;
    }
}
