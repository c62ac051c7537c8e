//! What a stage is polled with: waker, clock, budget, and whether the run is draining.

use crate::clock::Clock;
use std::task::{Context, Waker};

/// How many elements the leaves of an island may make in one poll before it yields.
///
/// Large enough that yielding costs nothing per element (a poll is some 100 ns), small enough that a neighbour on the
/// same worker waits for well below a millisecond.
pub const DEFAULT_BUDGET: u32 = 4096;

/// The context of one poll.
#[derive(Debug)]
pub struct StageCx<'a, 'w> {
    task: &'a mut Context<'w>,
    clock: &'a Clock,
    budget: u32,
    draining: bool,
}

impl<'a, 'w> StageCx<'a, 'w> {
    /// A context over a task's own.
    pub fn new(task: &'a mut Context<'w>, clock: &'a Clock, budget: u32) -> Self {
        StageCx { task, clock, budget, draining: false }
    }

    /// Marks the poll as part of a graceful shutdown: the sources of the run end now.
    #[must_use]
    pub fn draining(mut self, draining: bool) -> Self {
        self.draining = draining;
        self
    }

    /// Whether the run is shut down gracefully: a source of the run's own (not one built by an operator at run time)
    /// then ends, delivering what it has accepted.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// The run's clock. No stage reads another.
    #[must_use]
    pub fn clock(&self) -> &'a Clock {
        self.clock
    }

    /// The waker to register.
    #[must_use]
    pub fn waker(&self) -> &'w Waker {
        self.task.waker()
    }

    /// The task context, for polling a future.
    pub fn task(&mut self) -> &mut Context<'w> {
        self.task
    }

    /// What is left of the budget.
    #[inline]
    #[must_use]
    pub fn budget(&self) -> u32 {
        self.budget
    }

    /// Sets what is left: for a leaf that counts in a local variable while it loops.
    #[inline]
    pub fn set_budget(&mut self, left: u32) {
        self.budget = left;
    }

    /// Spends one turn of a loop. False: it is spent and this stage has been woken; return `Pending`.
    #[inline]
    #[must_use]
    pub fn spend(&mut self) -> bool {
        if self.budget == 0 {
            self.wake();
            return false;
        }
        self.budget -= 1;
        true
    }

    /// Wakes the stage that is polled now.
    #[cold]
    pub fn wake(&self) {
        self.task.waker().wake_by_ref();
    }

    /// Runs `f` with at most `share` of the budget; what it leaves comes back.
    #[inline]
    pub fn share<R>(&mut self, share: u32, f: impl FnOnce(&mut Self) -> R) -> R {
        let kept = self.budget.saturating_sub(share);
        self.budget -= kept;
        let result = f(self);
        self.budget += kept;
        result
    }

    /// Runs `f` with another waker (a dynamic input's own), the same clock and the same budget.
    #[inline]
    pub fn with_waker<R>(&mut self, waker: &Waker, f: impl FnOnce(&mut StageCx<'_, '_>) -> R) -> R {
        let mut task = Context::from_waker(waker);
        let mut cx =
            StageCx { task: &mut task, clock: self.clock, budget: self.budget, draining: self.draining };
        let result = f(&mut cx);
        self.budget = cx.budget;
        result
    }
}
