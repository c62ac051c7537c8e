//! What all tasks of a broker share, and how they wake each other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, oneshot, watch};
use uuid::Uuid;

use crate::clock::BrokerClock;
use crate::core::{Core, Effects};
use crate::faults::Faults;
use crate::group::{Answer, Ticket};

/// Shared by the tasks of one broker.
#[derive(Debug)]
pub(crate) struct Shared {
    pub clock: BrokerClock,
    pub faults: Faults,
    /// Turns true when the broker is being stopped.
    pub stopping: watch::Sender<bool>,
    /// Counts, by node, how often its connections were closed by a script.
    pub closed: watch::Sender<Vec<(i32, u64)>>,
    /// Open connections, over all nodes.
    pub connections: AtomicUsize,
    locked: Mutex<Locked>,
    /// When the ticker wakes, so that it is told only of earlier deadlines.
    armed: AtomicI64,
    pub rearm: Notify,
}

/// What lies under the lock: the machines, and who waits for them.
#[derive(Debug)]
pub(crate) struct Locked {
    pub core: Core,
    tickets: HashMap<Ticket, oneshot::Sender<Answer>>,
    next_ticket: Ticket,
    data: HashMap<(Uuid, i32), Vec<Arc<Notify>>>,
    space: Vec<Arc<Notify>>,
}

impl Locked {
    /// A ticket for a request that may have to wait, and where its answer comes.
    pub(crate) fn ticket(&mut self) -> (Ticket, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, sender);
        (self.next_ticket, receiver)
    }

    /// Has `waiter` notified when this partition changes, once.
    pub(crate) fn wait_for_data(&mut self, topic: Uuid, index: i32, waiter: &Arc<Notify>) {
        let waiters = self.data.entry((topic, index)).or_default();
        // A fetch whose connection is gone leaves its waiter behind; nobody else holds it then.
        waiters.retain(|other| Arc::strong_count(other) > 1 && !Arc::ptr_eq(other, waiter));
        waiters.push(Arc::clone(waiter));
    }

    /// Has `waiter` notified when memory is freed, once.
    pub(crate) fn wait_for_space(&mut self, waiter: &Arc<Notify>) {
        self.space.retain(|other| Arc::strong_count(other) > 1 && !Arc::ptr_eq(other, waiter));
        self.space.push(Arc::clone(waiter));
    }

    /// Passes on what the machines have set off.
    fn settle(&mut self) {
        let Effects { answers, changed, freed } = self.core.effects();
        for (ticket, answer) in answers {
            if let Some(sender) = self.tickets.remove(&ticket) {
                // Nobody listens when the connection is gone.
                let _ = sender.send(answer);
            }
        }
        for position in changed {
            for waiter in self.data.remove(&position).unwrap_or_default() {
                waiter.notify_one();
            }
        }
        if freed {
            self.space.drain(..).for_each(|waiter| waiter.notify_one());
        }
    }
}

impl Shared {
    pub(crate) fn new(core: Core, clock: BrokerClock) -> Self {
        let closed = core.nodes.iter().map(|node| (node.id, 0)).collect();
        Self {
            clock,
            faults: Faults::default(),
            stopping: watch::Sender::new(false),
            closed: watch::Sender::new(closed),
            connections: AtomicUsize::new(0),
            locked: Mutex::new(Locked {
                core,
                tickets: HashMap::new(),
                next_ticket: 0,
                data: HashMap::new(),
                space: Vec::new(),
            }),
            armed: AtomicI64::new(i64::MIN),
            rearm: Notify::new(),
        }
    }

    /// Calls the machines at the present time: what is due by the clock happens first, and everything set off is passed
    /// on before this returns.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Locked, i64) -> T) -> T {
        let mut locked = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now_ms();
        if locked.core.deadline() <= now {
            locked.core.tick(now);
        }
        let result = call(&mut locked, now);
        locked.settle();
        let deadline = locked.core.deadline();
        drop(locked);
        if deadline < self.armed.load(Ordering::Acquire) {
            self.rearm.notify_one();
        }
        result
    }

    /// The next deadline, noted as the one that the ticker waits for.
    pub(crate) fn arm(&self) -> i64 {
        self.with(|locked, _| {
            let deadline = locked.core.deadline();
            self.armed.store(deadline, Ordering::Release);
            deadline
        })
    }
}
