//! `kill_switch` and `killed_by`: ending a stream from outside.

use crate::blueprint::{Built, Keeps, KeepLeft, Operator, StreamOps};
use crate::error::StreamError;
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{Driven, Progress, Push, Stage, StageCx, Up};
use futures_util::task::AtomicWaker;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Adds [`kill_switch`](KillSwitchOps::kill_switch) and [`killed_by`](KillSwitchOps::killed_by).
pub trait KillSwitchOps: StreamOps {
    /// Lets everything pass until its switch is turned; materialises that [`KillSwitch`], which `keep` chooses or
    /// combines with the value so far. Each run has a switch of its own.
    ///
    /// - **Emits** when upstream does and the switch has not been turned.
    /// - **Backpressures** when downstream does.
    /// - **Completes** when upstream completes, or at once after [`KillSwitch::shutdown`]. Fails at once after
    ///   [`KillSwitch::abort`].
    /// - **Cancels** when downstream cancels, or when the switch is turned.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let (switch, done) = Source::from_iter(0u64..)
    ///     .kill_switch(Keep::right)
    ///     .to_keep(Sink::fold(0, |n: u64, _| n + 1), Keep::both)
    ///     .run()?;
    /// tokio::task::yield_now().await;
    /// switch.shutdown();
    /// assert!(done.await? > 0);
    /// # Ok(())
    /// # }
    /// ```
    fn kill_switch<K: Keeps>(self, keep: K) -> Self::Then<OwnSwitch, K> {
        self.then_keep(OwnSwitch, keep)
    }

    /// Lets everything pass until the given switch is turned; the switch may end any number of streams. Where it has
    /// been turned already, a run ends as soon as it begins.
    ///
    /// The four lines are those of [`kill_switch`](KillSwitchOps::kill_switch).
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let switch = KillSwitch::new();
    /// let a = Source::from_iter(0u64..).killed_by(&switch).run_with(Sink::fold(0, |n: u64, _| n + 1))?;
    /// let b = Source::from_iter(0u64..).killed_by(&switch).run_with(Sink::fold(0, |n: u64, _| n + 1))?;
    /// switch.shutdown();
    /// (a.await?, b.await?);
    /// # Ok(())
    /// # }
    /// ```
    fn killed_by(self, switch: &KillSwitch) -> Self::Then<SharedSwitch, KeepLeft> {
        self.then(SharedSwitch(switch.clone()))
    }
}

impl<S: StreamOps> KillSwitchOps for S {}

/// Ends the streams it is part of. Clones turn the same switch; dropping all of them ends nothing.
#[derive(Clone, Default)]
pub struct KillSwitch(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// How it was turned, if it was: only the first command counts.
    turned: OnceLock<Result<(), StreamError>>,
    /// The running stages behind it. One that has gone leaves an entry that the next registration takes away.
    stages: Mutex<Vec<Weak<AtomicWaker>>>,
}

impl KillSwitch {
    /// A switch for [`killed_by`](KillSwitchOps::killed_by).
    #[must_use]
    pub fn new() -> Self {
        KillSwitch::default()
    }

    /// Completes the streams and cancels their upstreams. Does nothing after an earlier command.
    pub fn shutdown(&self) {
        self.turn(Ok(()));
    }

    /// Fails the streams with `error` and cancels their upstreams with it. Does nothing after an earlier command.
    pub fn abort(&self, error: impl Into<StreamError>) {
        self.turn(Err(error.into()));
    }

    /// Whether a command was given.
    #[must_use]
    pub fn is_turned(&self) -> bool {
        self.0.turned.get().is_some()
    }

    fn turn(&self, how: Result<(), StreamError>) {
        if self.0.turned.set(how).is_ok() {
            // Woken outside the lock: a waker is the runtime's code.
            let stages = std::mem::take(&mut *self.stages());
            stages.iter().filter_map(Weak::upgrade).for_each(|waker| waker.wake());
        }
    }

    fn join(&self) -> Arc<AtomicWaker> {
        let waker = Arc::new(AtomicWaker::new());
        let mut stages = self.stages();
        if stages.len() == stages.capacity() {
            stages.retain(|stage| stage.strong_count() > 0);
        }
        stages.push(Arc::downgrade(&waker));
        waker
    }

    fn stages(&self) -> MutexGuard<'_, Vec<Weak<AtomicWaker>>> {
        self.0.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KillSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KillSwitch").field("turned", &self.0.turned.get()).finish_non_exhaustive()
    }
}

/// The operator of [`kill_switch`](KillSwitchOps::kill_switch).
#[derive(Clone, Copy, Debug)]
pub struct OwnSwitch;

/// The operator of [`killed_by`](KillSwitchOps::killed_by).
#[derive(Clone, Debug)]
pub struct SharedSwitch(KillSwitch);

impl<In: Send + 'static> Operator<In> for OwnSwitch {
    type Out = In;
    type Mat = KillSwitch;
    type Stage<U: Stage<Out = In>> = KillSwitchStage<U>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        _: &Materializer,
    ) -> Built<KillSwitchStage<U>, KillSwitch> {
        let switch = KillSwitch::new();
        Ok((KillSwitchStage::new(up, switch.clone()), switch))
    }
}

impl<In: Send + 'static> Operator<In> for SharedSwitch {
    type Out = In;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = KillSwitchStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<KillSwitchStage<U>, ()> {
        Ok((KillSwitchStage::new(up, self.0), ()))
    }
}

/// The stage of [`kill_switch`](KillSwitchOps::kill_switch).
#[derive(Debug)]
pub struct KillSwitchStage<U> {
    up: Up<U>,
    switch: KillSwitch,
    waker: Arc<AtomicWaker>,
}

impl<U: Stage> KillSwitchStage<U> {
    fn new(up: U, switch: KillSwitch) -> Self {
        let waker = switch.join();
        KillSwitchStage { up: Up::new(up), switch, waker }
    }

    #[inline]
    fn turned(&mut self, cx: &mut StageCx<'_, '_>) -> Option<Driven> {
        let how = self.switch.0.turned.get()?;
        Some(match how.clone() {
            Ok(()) => self.up.complete(cx),
            Err(error) => self.up.fail(error, cx),
        })
    }

    /// Registers before it looks again: a turn in between is not missed.
    fn rest(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.waker.register(cx.waker());
        self.turned(cx).unwrap_or(Ok(Progress::Pending))
    }
}

impl<U: Stage> Stage for KillSwitchStage<U> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, push: P) -> Driven {
        if let Some(answer) = self.turned(cx) {
            return answer;
        }
        match self.up.drive(cx, push) {
            Ok(Progress::Pending) => self.rest(cx),
            answer => answer,
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        if let Some(answer) = self.turned(cx) {
            return answer;
        }
        match self.up.tend(cx) {
            Ok(Progress::Pending) => self.rest(cx),
            answer => answer,
        }
    }

    forward!(cancel poll_closed);
}
