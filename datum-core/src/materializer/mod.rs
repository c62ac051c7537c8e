//! Where a blueprint runs: the runtime, the clock, the attributes, and the two ways to stop.
//!
//! A [`Materializer`] is a cheap handle. Its clones and [children](Materializer::child) share one set of running
//! islands, which [`shutdown`](Materializer::shutdown) drains and [`abort`](Materializer::abort) drops.
//!
//! # Graceful and abrupt
//! - *Graceful*: every source of a run ends, what was accepted flows out, resources close, completions resolve as
//!   they would have. Sources that an operator builds at run time (inside a `flat_map`) are not cut short: their
//!   element is being drained.
//! - *Abrupt*: every island is dropped where it stands; pending materialised values fail with
//!   [`Aborted`](crate::ErrorKind::Aborted). Dropping the runtime has the same effect.
//!
//! Either way the materializer takes no new run afterwards.

mod island;
mod registry;

pub use island::Runnable;

use crate::attributes::Attributes;
use crate::clock::Clock;
use crate::error::{ErrorKind, StreamError};
use crate::stage::{DEFAULT_BUDGET, Supervision, guard};
use island::Island;
use registry::Registry;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// A task to be spawned.
pub type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How tasks are spawned.
pub type Spawner = Arc<dyn Fn(BoxTask) + Send + Sync>;

const DEFAULT_WINDOW: usize = 16;

/// What a run is built with and runs on. The [module page](self) tells how it stops.
#[derive(Clone)]
pub struct Materializer {
    shared: Arc<Shared>,
    /// Islands of the build under way: they start when it has succeeded.
    deferred: Arc<Mutex<Vec<BoxTask>>>,
    attributes: Attributes,
    /// A run's own build, not one that an operator does at run time.
    of_run: bool,
}

struct Shared {
    spawn: Spawner,
    clock: Clock,
    budget: u32,
    registry: Arc<Registry>,
}

impl Materializer {
    /// Runs on the tokio runtime that the caller is in.
    ///
    /// # Errors
    /// [`NoRuntime`](ErrorKind::NoRuntime) outside of a runtime.
    pub fn current() -> Result<Self, StreamError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| ErrorKind::NoRuntime)?;
        Ok(Materializer::new(Arc::new(move |task| drop(runtime.spawn(task))), Clock::real()))
    }

    /// Runs wherever `spawn` puts the tasks, by the given clock.
    #[must_use]
    pub fn new(spawn: Spawner, clock: Clock) -> Self {
        Materializer::with_budget(spawn, clock, DEFAULT_BUDGET)
    }

    /// As [`new`](Materializer::new), with another budget per poll of an island than [`DEFAULT_BUDGET`]: for tests
    /// that want every yield point, and for runtimes that want shorter turns.
    #[must_use]
    pub fn with_budget(spawn: Spawner, clock: Clock, budget: u32) -> Self {
        let registry = Arc::new(Registry::default());
        Materializer {
            shared: Arc::new(Shared { spawn, clock, budget: budget.max(1), registry }),
            deferred: Arc::default(),
            attributes: Attributes::default(),
            of_run: true,
        }
    }

    /// The clock of its runs.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The elements a hand-over may hold here. See [`Attributes::window`].
    #[must_use]
    pub fn window(&self) -> usize {
        self.attributes.window.unwrap_or(DEFAULT_WINDOW)
    }

    /// The supervision that applies here. See [`Attributes::supervision`].
    #[must_use]
    pub fn supervision(&self) -> Supervision {
        self.attributes.supervision.clone().unwrap_or_default()
    }

    /// The name given to this part, if any. See [`Attributes::name`].
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        self.attributes.name
    }

    /// The same, with more attributes on top.
    #[must_use]
    pub fn with_attributes(&self, attributes: Attributes) -> Self {
        Materializer { attributes: attributes.over(&self.attributes), ..self.clone() }
    }

    /// A handle for one build that an operator does at run time: islands of its own to start, the same attributes, and
    /// sources that a graceful shutdown does not cut short.
    #[must_use]
    pub fn child(&self) -> Self {
        Materializer { deferred: Arc::default(), of_run: false, ..self.clone() }
    }

    /// Whether sources built with this handle belong to a run itself.
    #[must_use]
    pub fn builds_run(&self) -> bool {
        self.of_run
    }

    /// Registers an island. It starts when the [`scope`](Materializer::scope) it belongs to has succeeded.
    pub fn defer<R: Runnable>(&self, run: R) {
        let island = Island::new(run, self.clock().clone(), self.shared.budget, &self.shared.registry);
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(island));
    }

    /// Runs one whole build: all islands it deferred start, or none.
    ///
    /// A run does this with a fresh handle; an operator that builds at run time does it with a
    /// [`child`](Materializer::child).
    ///
    /// # Errors
    /// The build's own error or panic; [`Stopped`](ErrorKind::Stopped) after a shutdown or abort.
    pub fn scope<R>(&self, build: impl FnOnce(&Self) -> Result<R, StreamError>) -> Result<R, StreamError> {
        if self.shared.registry.is_stopped() || (self.of_run && self.shared.registry.is_draining()) {
            return Err(ErrorKind::Stopped.into());
        }
        let fresh = Materializer { deferred: Arc::default(), ..self.clone() };
        let result = guard("materialization", || build(&fresh)).and_then(|built| built)?;
        let islands = std::mem::take(&mut *fresh.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        for island in islands {
            (self.shared.spawn)(island);
        }
        Ok(result)
    }

    /// Graceful stop: ends the sources of every run and resolves when all islands have ended.
    ///
    /// Cancel safe: dropping the future does not take the shutdown back; call again to wait again. It waits as long
    /// as a consumer keeps a stream from draining: put a deadline around it and [`abort`](Materializer::abort) then.
    pub async fn shutdown(&self) {
        self.shared.registry.drain();
        self.shared.registry.wait_idle().await;
    }

    /// Abrupt stop: drops every island where it stands.
    pub fn abort(&self) {
        self.shared.registry.abort();
    }

    /// How many islands are running (not counting those of runs that ended).
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.registry.len()
    }
}

impl fmt::Debug for Materializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Materializer")
            .field("running", &self.running())
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}
