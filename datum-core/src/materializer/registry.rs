//! The islands of one materializer, and the flags by which they stop.

use futures_util::task::AtomicWaker;
use slab::Slab;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

// 0 is running.
const DRAINING: u8 = 1;
const STOPPED: u8 = 2;

#[derive(Default)]
pub(super) struct Registry {
    /// Running or one of the constants above; only ever rises.
    state: AtomicU8,
    islands: Mutex<Slab<Arc<AtomicWaker>>>,
    idle: Notify,
}

/// An island's place in the registry; dropping it gives the place back.
pub(super) struct Entry {
    key: usize,
    waker: Arc<AtomicWaker>,
    registry: Arc<Registry>,
}

impl Registry {
    pub(super) fn enter(self: &Arc<Self>) -> Entry {
        let waker = Arc::new(AtomicWaker::new());
        let key = self.lock().insert(waker.clone());
        Entry { key, waker, registry: self.clone() }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.state.load(Ordering::Acquire) >= DRAINING
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state.load(Ordering::Acquire) == STOPPED
    }

    pub(super) fn drain(&self) {
        self.raise(DRAINING);
    }

    pub(super) fn abort(&self) {
        self.raise(STOPPED);
    }

    pub(super) async fn wait_idle(&self) {
        loop {
            let notified = self.idle.notified();
            if self.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }

    fn raise(&self, state: u8) {
        self.state.fetch_max(state, Ordering::AcqRel);
        // Woken outside the lock: a waker is the runtime's code.
        let wakers: Vec<_> = self.lock().iter().map(|(_, waker)| waker.clone()).collect();
        wakers.iter().for_each(|waker| waker.wake());
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Arc<AtomicWaker>>> {
        self.islands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    pub(super) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut islands = self.registry.lock();
        islands.remove(self.key);
        let idle = islands.is_empty();
        drop(islands);
        if idle {
            self.registry.idle.notify_waiters();
        }
    }
}
