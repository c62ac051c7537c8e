//! One waker per child, one parent to wake.
//!
//! A stage with many inner futures or streams (`map_async`, `flat_map_merge`, a graph's nodes) must not poll all of
//! them when one is woken. A [`WakeSet`] hands out one waker per child; a wake queues the child, once, and wakes the
//! parent, unless the parent is just looking. Children come back in the order in which they were woken, so a child
//! that wakes itself all the time takes turns with the others.
//!
//! A wake costs one lock; a child that is queued already costs one atomic swap.

use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use std::collections::VecDeque;
// `Waker::from` wants the standard library's Arc; what is inside is what the models check.
use std::sync::Arc as StdArc;
use std::task::{Wake, Waker};

/// Wakers for children `0..len`, and the queue of those that were woken.
///
/// The parent brackets its look with [`begin`](WakeSet::begin) and either a [`next`](WakeSet::next) that returns
/// `None` or [`suspend`](WakeSet::suspend): wakes in between only queue.
#[derive(Default)]
pub struct WakeSet {
    state: StdArc<Shared>,
    children: Vec<(StdArc<Child>, Waker)>,
}

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    ready: VecDeque<usize>,
    parent: Option<Waker>,
    looking: bool,
}

struct Child {
    set: StdArc<Shared>,
    index: usize,
    queued: AtomicBool,
}

impl WakeSet {
    /// A set of `len` children, none of them woken.
    #[must_use]
    pub fn with_len(len: usize) -> Self {
        let mut set = WakeSet::default();
        set.grow(len);
        set
    }

    /// How many children the set has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether the set has no child.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Adds children until there are `len`; never takes any away.
    pub fn grow(&mut self, len: usize) {
        while self.children.len() < len {
            let child = StdArc::new(Child {
                set: self.state.clone(),
                index: self.children.len(),
                queued: AtomicBool::new(false),
            });
            let waker = Waker::from(child.clone());
            self.children.push((child, waker));
        }
    }

    /// The waker of one child.
    ///
    /// # Panics
    /// When `child` is not below [`len`](WakeSet::len).
    #[must_use]
    pub fn waker(&self, child: usize) -> &Waker {
        &self.children[child].1
    }

    /// Starts a look: until it ends, wakes only queue and do not wake the parent.
    pub fn begin(&mut self, parent: &Waker) {
        let mut state = lock(&self.state.0);
        state.looking = true;
        if !state.parent.as_ref().is_some_and(|w| w.will_wake(parent)) {
            state.parent = Some(parent.clone());
        }
    }

    /// The next woken child. `None` ends the look: from now on a wake reaches the parent.
    #[allow(
        clippy::should_implement_trait,
        reason = "a look is not an iteration: it must be begun with a waker"
    )]
    pub fn next(&mut self) -> Option<usize> {
        let mut state = lock(&self.state.0);
        let next = state.ready.pop_front();
        match next {
            // Cleared before the child is polled: a wake during its poll queues it again.
            Some(child) => self.children[child].0.queued.store(false, Ordering::Release),
            None => state.looking = false,
        }
        next
    }

    /// Ends a look early. True when woken children still wait: the parent must come back by itself.
    #[must_use]
    pub fn suspend(&mut self) -> bool {
        let mut state = lock(&self.state.0);
        state.looking = false;
        !state.ready.is_empty()
    }
}

impl Wake for Child {
    fn wake(self: StdArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &StdArc<Self>) {
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut state = lock(&self.set.0);
        state.ready.push_back(self.index);
        let parent = if state.looking { None } else { state.parent.clone() };
        drop(state);
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

impl std::fmt::Debug for WakeSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WakeSet").field("children", &self.children.len()).finish_non_exhaustive()
    }
}
