//! Time as stages see it: the real clock, or one turned by hand.
//!
//! No stage reads the wall clock. It asks [`StageCx::clock`](crate::stage::StageCx::clock) and waits with a
//! [`Timer`], so a test that turns the clock by hand decides when a tick, a throttle or a timeout happens.

use crate::stage::StageCx;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A clock: the machine's, or one that a test turns. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real,
    Manual(Arc<Mutex<Manual>>),
}

#[derive(Debug, Default)]
struct Manual {
    now: Duration,
    unix_at_zero: Duration,
    next_id: u64,
    sleepers: BTreeMap<(Duration, u64), Waker>,
}

impl Clock {
    /// The machine's clock; its timers are tokio's.
    #[must_use]
    pub fn real() -> Self {
        Clock(Kind::Real)
    }

    /// A clock that stands still until it is [advanced](Clock::advance).
    #[must_use]
    pub fn manual() -> Self {
        Clock(Kind::Manual(Arc::default()))
    }

    /// Monotonic time since some fixed point.
    #[must_use]
    pub fn now(&self) -> Duration {
        match &self.0 {
            Kind::Real => START.elapsed(),
            Kind::Manual(manual) => lock(manual).now,
        }
    }

    /// Wall-clock time since the Unix epoch. It may step back; never measure with it.
    #[must_use]
    pub fn unix(&self) -> Duration {
        match &self.0 {
            Kind::Real => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            Kind::Manual(manual) => {
                let manual = lock(manual);
                manual.unix_at_zero + manual.now
            }
        }
    }

    /// Sets what [`unix`](Clock::unix) shows now on a clock turned by hand.
    ///
    /// # Panics
    /// On the real clock.
    pub fn set_unix(&self, unix: Duration) {
        let mut manual = self.turned("set");
        manual.unix_at_zero = unix.saturating_sub(manual.now);
    }

    /// Turns the clock forward and wakes whoever is due, earliest first.
    ///
    /// # Panics
    /// On the real clock.
    pub fn advance(&self, by: Duration) {
        let mut manual = self.turned("turned");
        manual.now += by;
        let now = manual.now;
        let later = manual.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut manual.sleepers, later);
        drop(manual);
        due.into_values().for_each(Waker::wake);
    }

    /// When the next sleeper is due: a test kit jumps there when everything is parked. `None` on the real clock.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        match &self.0 {
            Kind::Real => None,
            Kind::Manual(manual) => lock(manual).sleepers.keys().next().map(|(at, _)| *at),
        }
    }

    fn turned(&self, verb: &str) -> MutexGuard<'_, Manual> {
        match &self.0 {
            Kind::Real => panic!("the real clock cannot be {verb} by hand; use Clock::manual"),
            Kind::Manual(manual) => lock(manual),
        }
    }
}

/// One deadline of one stage.
///
/// Dropping it, or waiting for another time, takes the old registration away.
#[derive(Debug, Default)]
pub struct Timer {
    real: Option<Pin<Box<tokio::time::Sleep>>>,
    manual: Option<(Arc<Mutex<Manual>>, (Duration, u64))>,
}

impl Timer {
    /// Ready when the clock shows `at` or later; registers the waker otherwise.
    pub fn poll_until(&mut self, at: Duration, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        match &cx.clock().0 {
            Kind::Real => self.poll_real(at, cx),
            Kind::Manual(manual) => self.poll_manual(manual, at, cx.waker()),
        }
    }

    fn poll_real(&mut self, at: Duration, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        // Beyond what the machine's clock can show it is never due.
        let Some(at) = START.checked_add(at) else {
            return Poll::Pending;
        };
        let at = tokio::time::Instant::from_std(at);
        let sleep = self.real.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx.task())
    }

    fn poll_manual(&mut self, clock: &Arc<Mutex<Manual>>, at: Duration, waker: &Waker) -> Poll<()> {
        self.forget();
        let mut manual = lock(clock);
        if manual.now >= at {
            return Poll::Ready(());
        }
        let key = (at, manual.next_id);
        manual.next_id += 1;
        manual.sleepers.insert(key, waker.clone());
        self.manual = Some((clock.clone(), key));
        Poll::Pending
    }

    fn forget(&mut self) {
        if let Some((clock, key)) = self.manual.take() {
            lock(&clock).sleepers.remove(&key);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.forget();
    }
}

fn lock(manual: &Mutex<Manual>) -> MutexGuard<'_, Manual> {
    manual.lock().unwrap_or_else(PoisonError::into_inner)
}
