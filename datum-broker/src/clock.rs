//! The broker's clock: it runs with the machine's, can be moved ahead, and can be stopped and turned by hand.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::Instant;

/// The clock that sessions, transactions, retention, long polls and delays of a broker follow. Cheap to clone; all
/// clones are the same clock.
#[derive(Clone, Debug)]
pub struct BrokerClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    reading: Mutex<Reading>,
    /// Counts the times it was turned, so that sleepers look again.
    turned: watch::Sender<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Milliseconds since 1970 at `since`, or now if it stands.
    base: i64,
    since: Option<Instant>,
}

impl Reading {
    fn now(&self) -> i64 {
        self.since.map_or(self.base, |since| self.base + millis(since.elapsed()))
    }
}

impl BrokerClock {
    /// A clock that shows the machine's time and runs.
    pub(crate) fn running() -> Self {
        let base = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis);
        Self::new(Reading { base, since: Some(Instant::now()) })
    }

    /// A clock that stands at `now` until it is turned.
    pub(crate) fn standing(now: i64) -> Self {
        Self::new(Reading { base: now, since: None })
    }

    fn new(reading: Reading) -> Self {
        Self { shared: Arc::new(Shared { reading: Mutex::new(reading), turned: watch::Sender::new(0) }) }
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.reading().now()
    }

    /// Moves the clock ahead. Everything whose time has come happens at once, in the order of its deadlines or not.
    pub fn advance(&self, by: Duration) {
        self.turn(|reading| reading.base += millis(by));
    }

    /// Stops the clock; from now on only [`Self::advance`] moves it.
    pub fn pause(&self) {
        self.turn(|reading| *reading = Reading { base: reading.now(), since: None });
    }

    /// Lets a stopped clock run again.
    pub fn resume(&self) {
        self.turn(|reading| *reading = Reading { base: reading.now(), since: Some(Instant::now()) });
    }

    fn turn(&self, how: impl FnOnce(&mut Reading)) {
        how(&mut self.shared.reading.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.turned.send_modify(|count| *count += 1);
    }

    fn reading(&self) -> Reading {
        *self.shared.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the clock shows `deadline`. Cancel safe.
    pub(crate) async fn sleep_until(&self, deadline: i64) {
        let mut turned = self.shared.turned.subscribe();
        loop {
            turned.borrow_and_update();
            let reading = self.reading();
            let left = deadline.saturating_sub(reading.now());
            if left <= 0 {
                return;
            }
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0).min(FAR));
            let running = reading.since.is_some();
            tokio::select! {
                () = tokio::time::sleep(left), if running => {}
                _ = turned.changed() => {}
            }
        }
    }
}

/// A day: longer sleeps are cut into pieces, so that no deadline overflows a timer.
const FAR: u64 = 86_400_000;

/// A duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_standing_clock_wakes_when_it_is_turned() {
        let clock = BrokerClock::standing(1_000);
        let sleeper = clock.clone();
        let slept = tokio::spawn(async move { sleeper.sleep_until(1_500).await });
        clock.advance(Duration::from_millis(499));
        tokio::task::yield_now().await;
        assert!(!slept.is_finished());
        clock.advance(Duration::from_millis(1));
        slept.await.expect("woken");
        assert_eq!(clock.now_ms(), 1_500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_clock_follows_the_machine() {
        let clock = BrokerClock::running();
        let start = clock.now_ms();
        clock.sleep_until(start + 50).await;
        assert!(clock.now_ms() >= start + 50);
        clock.pause();
        let stopped = clock.now_ms();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.now_ms(), stopped);
    }
}
