//! The executor that shows lost wakes.

use crate::rng::Rng;
use datum_core::clock::Clock;
use datum_core::materializer::{BoxTask, Materializer};
use datum_core::sinks::Completion;
use datum_core::stage::DEFAULT_BUDGET;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A single-threaded executor that polls a task only when it was woken.
///
/// A lost wake therefore shows: the run goes idle before its end. The next task is a seeded choice among the woken
/// ones, polls are counted, and time is a clock that the executor turns itself when everything is parked.
pub struct TestRuntime {
    inbox: Arc<Mutex<Vec<BoxTask>>>,
    tasks: Vec<Option<Task>>,
    woken: Arc<Mutex<VecDeque<usize>>>,
    rng: Rng,
    polls: u64,
    clock: Clock,
}

struct Task {
    future: BoxTask,
    waker: Waker,
    flag: Arc<TaskFlag>,
}

struct TaskFlag {
    index: usize,
    queued: AtomicBool,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

/// How many polls a run may take before it counts as a live-lock.
const POLL_LIMIT: u64 = 1_000_000;

impl TestRuntime {
    /// An executor whose choices follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        TestRuntime {
            inbox: Arc::default(),
            tasks: Vec::new(),
            woken: Arc::default(),
            rng: Rng::new(seed),
            polls: 0,
            clock: Clock::manual(),
        }
    }

    /// A materializer whose islands run here, by the hand-turned clock.
    #[must_use]
    pub fn materializer(&self) -> Materializer {
        self.materializer_with_budget(DEFAULT_BUDGET)
    }

    /// The same with another budget: 1 makes every element a yield point.
    #[must_use]
    pub fn materializer_with_budget(&self, budget: u32) -> Materializer {
        let inbox = self.inbox.clone();
        let spawn = Arc::new(move |task| lock(&inbox).push(task));
        Materializer::with_budget(spawn, self.clock.clone(), budget)
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How many polls there were.
    #[must_use]
    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// How many tasks have not ended.
    #[must_use]
    pub fn live_tasks(&self) -> usize {
        lock(&self.inbox).len() + self.tasks.iter().flatten().count()
    }

    /// Runs a future as a task here.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.inbox).push(Box::pin(task));
    }

    /// One poll of one woken task; false when none is woken.
    pub fn step(&mut self) -> bool {
        self.take_in();
        let Some(index) = self.choose() else {
            return false;
        };
        let Some(task) = &mut self.tasks[index] else {
            return true;
        };
        // Cleared before the poll: a wake during it counts.
        task.flag.queued.store(false, Ordering::Release);
        self.polls += 1;
        let waker = task.waker.clone();
        if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.tasks[index] = None;
        }
        true
    }

    /// Runs until no task is woken, without turning the clock.
    ///
    /// # Panics
    /// After a million polls: a live-lock.
    pub fn run_ready(&mut self) {
        let limit = self.polls + POLL_LIMIT;
        while self.step() {
            assert!(self.polls < limit, "live-lock: {POLL_LIMIT} polls without going idle");
        }
    }

    /// Runs until no task is woken and no timer is due, turning the clock from deadline to deadline.
    ///
    /// # Panics
    /// As for [`run_ready`](TestRuntime::run_ready).
    pub fn run(&mut self) {
        self.run_ready();
        while let Some(at) = self.clock.next_due() {
            self.clock.advance(at.saturating_sub(self.clock.now()));
            self.run_ready();
        }
    }

    /// Turns the clock by `by`, stopping at each deadline on the way.
    ///
    /// # Panics
    /// As for [`run_ready`](TestRuntime::run_ready).
    pub fn advance(&mut self, by: Duration) {
        let until = self.clock.now() + by;
        self.run_ready();
        while let Some(at) = self.clock.next_due().filter(|at| *at <= until) {
            self.clock.advance(at.saturating_sub(self.clock.now()));
            self.run_ready();
        }
        self.clock.advance(until - self.clock.now());
        self.run_ready();
    }

    /// Runs to the end and gives the outcome of `completion`.
    ///
    /// # Panics
    /// When the run goes idle and the completion is still pending: a lost wake, a deadlock, or a stream that waits for
    /// something outside.
    pub fn outcome<A>(&mut self, mut completion: Completion<A>) -> Result<A, datum_core::StreamError> {
        self.run();
        completion.try_get().unwrap_or_else(|| {
            panic!(
                "idle with the stream still running: {} live tasks, {} polls",
                self.live_tasks(),
                self.polls
            )
        })
    }

    /// Polls a future by hand, with a waker that does nothing.
    pub fn poll_once<F: Future>(&self, future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn take_in(&mut self) {
        for future in std::mem::take(&mut *lock(&self.inbox)) {
            let index = self.tasks.len();
            let flag = Arc::new(TaskFlag { index, queued: AtomicBool::new(true), woken: self.woken.clone() });
            let waker = Waker::from(flag.clone());
            self.tasks.push(Some(Task { future, waker, flag }));
            lock(&self.woken).push_back(index);
        }
    }

    fn choose(&mut self) -> Option<usize> {
        let mut woken = lock(&self.woken);
        if woken.is_empty() {
            return None;
        }
        let at = usize::try_from(self.rng.below(woken.len() as u64)).unwrap_or(0);
        woken.remove(at)
    }
}

impl Wake for TaskFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            lock(&self.woken).push_back(self.index);
        }
    }
}

impl std::fmt::Debug for TestRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestRuntime")
            .field("polls", &self.polls)
            .field("live_tasks", &self.live_tasks())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
