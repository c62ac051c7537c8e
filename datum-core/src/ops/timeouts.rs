//! Timeouts: a stream in which nothing happens for too long fails.

use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::clock::{Clock, Timer};
use crate::error::ErrorKind;
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{Driven, Progress, Push, Stage, StageCx, Up};
use std::time::Duration;

/// Adds the timeouts. All fail the stream with [`Timeout`](ErrorKind::Timeout) and cancel the upstream with it. Their
/// clocks start when the stage is first polled, so that a run that begins late is not punished for it. Else they let
/// everything pass: emit, backpressure, complete and cancel as the two sides do.
pub trait TimeoutOps: StreamOps {
    /// Fails when no element passes for longer than `limit`, whichever side is to blame; also before the first.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let silent = Source::from_iter([1, 2]).map_async(1, |x| async move {
    ///     if x == 2 {
    ///         std::future::pending::<()>().await;
    ///     }
    ///     x
    /// });
    /// let failed = silent.idle_timeout(Duration::from_millis(20)).run_with(Sink::collect())?.await.unwrap_err();
    /// assert!(matches!(failed.kind(), ErrorKind::Timeout { stage: "idle_timeout", .. }));
    /// # Ok(())
    /// # }
    /// ```
    fn idle_timeout(self, limit: Duration) -> Self::Then<Timeout, KeepLeft> {
        self.then(Timeout { kind: Kind::Idle, limit })
    }

    /// Fails when the first element has not passed within `limit`.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let prompt = Source::from_iter([1]).initial_timeout(Duration::from_secs(5));
    /// assert_eq!(prompt.run_with(Sink::collect())?.await?, [1]);
    /// # Ok(())
    /// # }
    /// ```
    fn initial_timeout(self, limit: Duration) -> Self::Then<Timeout, KeepLeft> {
        self.then(Timeout { kind: Kind::Initial, limit })
    }

    /// Fails when the stream has not completed within `limit`.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let endless = Source::from_iter(0u64..).completion_timeout(Duration::from_millis(5));
    /// let failed = endless.run_with(Sink::fold(0, |n: u64, _| n + 1))?.await.unwrap_err();
    /// assert!(matches!(failed.kind(), ErrorKind::Timeout { stage: "completion_timeout", .. }));
    /// # Ok(())
    /// # }
    /// ```
    fn completion_timeout(self, limit: Duration) -> Self::Then<Timeout, KeepLeft> {
        self.then(Timeout { kind: Kind::Completion, limit })
    }

    /// Fails when downstream takes longer than `limit` to ask again after an element. The time that upstream takes to
    /// make one does not count.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let stuck = Source::from_iter(0..9).backpressure_timeout(Duration::from_millis(5)).map_async(1, |x| async move {
    ///     std::future::pending::<()>().await;
    ///     x
    /// });
    /// let failed = stuck.run_with(Sink::collect())?.await.unwrap_err();
    /// assert!(matches!(failed.kind(), ErrorKind::Timeout { stage: "backpressure_timeout", .. }));
    /// # Ok(())
    /// # }
    /// ```
    fn backpressure_timeout(self, limit: Duration) -> Self::Then<Timeout, KeepLeft> {
        self.then(Timeout { kind: Kind::Backpressure, limit })
    }
}

impl<S: StreamOps> TimeoutOps for S {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Idle,
    Initial,
    Completion,
    Backpressure,
}

/// The operator of the [timeouts](TimeoutOps).
#[derive(Clone, Debug)]
pub struct Timeout {
    kind: Kind,
    limit: Duration,
}

impl<In: Send + 'static> Operator<In> for Timeout {
    type Out = In;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = TimeoutStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<TimeoutStage<U>, ()> {
        let clock = materializer.clock().clone();
        let stage = TimeoutStage {
            up: Up::new(up),
            kind: self.kind,
            limit: self.limit,
            deadline: None,
            begun: false,
            clock,
            timer: Timer::default(),
        };
        Ok((stage, ()))
    }
}

/// The stage of the [timeouts](TimeoutOps).
#[derive(Debug)]
pub struct TimeoutStage<U> {
    up: Up<U>,
    kind: Kind,
    limit: Duration,
    /// `None`: not running.
    deadline: Option<Duration>,
    begun: bool,
    clock: Clock,
    timer: Timer,
}

impl<U: Stage> TimeoutStage<U> {
    fn start(&mut self) {
        self.deadline = self.clock.now().checked_add(self.limit);
    }

    fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            self.start();
        }
    }

    /// Whether the time is over; registers the waker otherwise.
    fn over(&mut self, cx: &mut StageCx<'_, '_>) -> bool {
        self.deadline.is_some_and(|at| self.timer.poll_until(at, cx).is_ready())
    }

    #[cold]
    fn time_out(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        let stage = match self.kind {
            Kind::Idle => "idle_timeout",
            Kind::Initial => "initial_timeout",
            Kind::Completion => "completion_timeout",
            Kind::Backpressure => "backpressure_timeout",
        };
        self.up.fail(ErrorKind::Timeout { stage, after: self.limit }.into(), cx)
    }
}

impl<U: Stage> Stage for TimeoutStage<U> {
    type Out = U::Out;

    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.begin();
        match self.kind {
            Kind::Backpressure => self.deadline = None,
            Kind::Completion if self.deadline.is_some_and(|at| self.clock.now() >= at) => return self.time_out(cx),
            _ => {}
        }
        let mut any = false;
        let answer = self.up.drive(cx, |x| {
            any = true;
            push(x)
        })?;
        match self.kind {
            Kind::Idle if any => self.start(),
            Kind::Initial if any => self.deadline = None,
            Kind::Backpressure if answer == Progress::Stopped => self.start(),
            _ => {}
        }
        if answer == Progress::Pending && self.over(cx) { self.time_out(cx) } else { Ok(answer) }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.begin();
        let answer = self.up.tend(cx)?;
        if answer == Progress::Pending && self.over(cx) { self.time_out(cx) } else { Ok(answer) }
    }

    forward!(cancel poll_closed);
}
