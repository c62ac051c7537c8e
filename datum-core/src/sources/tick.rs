//! `Source::tick`: an element every so often.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::clock::{Clock, Timer};
use crate::error::ErrorKind;
use crate::materializer::Materializer;
use crate::stage::{Driven, Leaf, Progress, Push, Stage, StageCx, guard};
use std::time::Duration;

impl Source<Unset> {
    /// Clones of one element: the first after `initial_delay`, then one every `interval`, by the run's clock. The
    /// clock starts when the stream does. A tick that nobody demands when it is due is skipped, not queued; ticks
    /// do not drift.
    ///
    /// - **Emits** when a tick is due and demanded.
    /// - **Completes** never, except at a graceful shutdown.
    ///
    /// # Errors
    /// An `interval` of zero is an [`InvalidArgument`](ErrorKind::InvalidArgument) when the stream is run.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let ticks = Source::tick(Duration::ZERO, Duration::from_millis(1), "tick").take(2);
    /// assert_eq!(ticks.run_with(Sink::collect())?.await?, ["tick", "tick"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tick<T: Clone + Send + 'static>(
        initial_delay: Duration,
        interval: Duration,
        element: T,
    ) -> Source<Tick<T>> {
        Source::from_blueprint(Tick { initial_delay, interval, element })
    }
}

/// The blueprint of [`Source::tick`].
#[derive(Clone, Debug)]
pub struct Tick<T> {
    initial_delay: Duration,
    interval: Duration,
    element: T,
}

/// The stage of [`Source::tick`].
#[derive(Debug)]
pub struct TickStage<T> {
    due: Duration,
    interval: Duration,
    timer: Timer,
    element: T,
}

impl<T: Clone + Send + 'static> Blueprint for Tick<T> {
    type Out = T;
    type Mat = ();
    type Stage = Leaf<TickStage<T>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        if self.interval.is_zero() {
            let reason = "the interval must be longer than zero; for elements without pause use `repeat`";
            return Err(ErrorKind::InvalidArgument { stage: "tick", reason }.into());
        }
        let due = materializer.clock().now() + self.initial_delay;
        let stage =
            TickStage { due, interval: self.interval, timer: Timer::default(), element: self.element };
        Ok((Leaf::new(stage, materializer), ()))
    }
}

impl<T> TickStage<T> {
    /// The next due time after now, on the grid.
    fn next_due(&mut self, clock: &Clock) {
        let late = clock.now().saturating_sub(self.due).as_nanos();
        let interval = self.interval.as_nanos();
        let skipped = u32::try_from(late / interval).unwrap_or(u32::MAX);
        self.due += self.interval.saturating_mul(skipped.saturating_add(1));
    }
}

impl<T: Clone + Send + 'static> Stage for TickStage<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        while self.timer.poll_until(self.due, cx).is_ready() {
            self.next_due(cx.clock());
            if push(guard("tick", || self.element.clone())?).is_break() {
                return Ok(Progress::Stopped);
            }
        }
        Ok(Progress::Pending)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        while self.timer.poll_until(self.due, cx).is_ready() {
            self.next_due(cx.clock());
        }
        Ok(Progress::Pending)
    }

    nothing_to_close!();
}
