//! `throttle`: at most so many elements per time, by a token bucket.

use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::clock::{Clock, Timer};
use crate::error::ErrorKind;
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{Driven, Progress, Push, Stage, StageCx, Up};
use std::time::Duration;

/// Adds [`throttle`](ThrottleOps::throttle).
pub trait ThrottleOps: StreamOps {
    /// Lets at most [`Rate`] elements per time pass.
    ///
    /// A shaping rate (the default) asks for an element only when it may pass: nothing is held. An enforcing one asks
    /// whenever downstream does and fails the stream at the first element too many.
    ///
    /// - **Emits** when upstream has an element and a token is there.
    /// - **Backpressures** when downstream does, or (shaping) no token is there.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when the rate is 0 elements or 0
    /// time; the stream fails with [`RateExceeded`](ErrorKind::RateExceeded) where the rate is enforcing.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let slow = Source::from_iter(0..3).throttle(Rate::new(100, Duration::from_secs(1)).burst(1));
    /// let started = std::time::Instant::now();
    /// assert_eq!(slow.run_with(Sink::collect())?.await?, [0, 1, 2]);
    /// assert!(started.elapsed() >= Duration::from_millis(20));
    /// # Ok(())
    /// # }
    /// ```
    fn throttle(self, rate: Rate) -> Self::Then<Throttle, KeepLeft> {
        self.then(Throttle(rate))
    }
}

impl<S: StreamOps> ThrottleOps for S {}

/// So many elements per time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    elements: u64,
    per: Duration,
    burst: Option<u64>,
    enforcing: bool,
}

impl Rate {
    /// `elements` per `per`, in equal steps after a burst of what comes in 100 ms (at least one element): timers are
    /// no finer than a millisecond, and a larger burst hides that at any rate.
    #[must_use]
    pub fn new(elements: u64, per: Duration) -> Self {
        Rate { elements, per, burst: None, enforcing: false }
    }

    /// How many elements may pass at once after a pause. 0 counts as 1. A burst of 1 spaces the elements evenly, at
    /// most one per timer tick (a millisecond on the real clock).
    #[must_use]
    pub fn burst(mut self, elements: u64) -> Self {
        self.burst = Some(elements);
        self
    }

    /// Fails the stream when elements come faster, instead of asking for them more slowly.
    #[must_use]
    pub fn enforcing(mut self) -> Self {
        self.enforcing = true;
        self
    }
}

/// The operator of [`throttle`](ThrottleOps::throttle).
#[derive(Clone, Debug)]
pub struct Throttle(Rate);

impl<In: Send + 'static> Operator<In> for Throttle {
    type Out = In;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = ThrottleStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<ThrottleStage<U>, ()> {
        let rate = self.0;
        if rate.elements == 0 || rate.per.is_zero() {
            let reason = "a rate needs at least 1 element and a time above zero";
            return Err(ErrorKind::InvalidArgument { stage: STAGE, reason }.into());
        }
        let clock = materializer.clock().clone();
        let bucket = Bucket::full(&rate, clock.now());
        Ok((ThrottleStage { up: Up::new(up), rate, bucket, clock, timer: Timer::default() }, ()))
    }
}

/// The token bucket, as the generic cell rate algorithm (ITU-T I.371): the time at which it would be full again says
/// all about it. Time is in parts of 2^-32 ns, so that a rate of any size is exact enough.
#[derive(Debug)]
struct Bucket {
    /// When the bucket would be full.
    full_at: u128,
    /// Time per token.
    step: u128,
    /// How far `full_at` may lie ahead while a token is there.
    slack: u128,
}

const FRACTION: u32 = 32;

impl Bucket {
    fn full(rate: &Rate, now: Duration) -> Self {
        let step = ((rate.per.as_nanos() << FRACTION) / u128::from(rate.elements)).max(1);
        let auto = || u64::try_from((AUTO_BURST.as_nanos() << FRACTION) / step).unwrap_or(u64::MAX);
        let burst = rate.burst.unwrap_or_else(auto).max(1);
        Bucket { full_at: now.as_nanos() << FRACTION, step, slack: step.saturating_mul(u128::from(burst - 1)) }
    }

    /// When the next token is there, rounded up to a nanosecond.
    fn next_at(&self) -> Duration {
        let nanos = self.full_at.saturating_sub(self.slack).div_ceil(1 << FRACTION);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    #[inline]
    fn has_token(&self, now: Duration) -> bool {
        self.full_at.saturating_sub(self.slack) <= now.as_nanos() << FRACTION
    }

    #[inline]
    fn take(&mut self, now: Duration) {
        // Waiting was rounded up to a nanosecond: what that took is not taken from the rate.
        let idle_since = (now.as_nanos() << FRACTION).saturating_sub((1 << FRACTION) - 1);
        self.full_at = self.full_at.max(idle_since).saturating_add(self.step);
    }
}

/// The stage of [`throttle`](ThrottleOps::throttle).
#[derive(Debug)]
pub struct ThrottleStage<U> {
    up: Up<U>,
    rate: Rate,
    bucket: Bucket,
    clock: Clock,
    timer: Timer,
}

impl<U: Stage> ThrottleStage<U> {
    fn shape<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            let now = cx.clock().now();
            if !self.bucket.has_token(now) && self.timer.poll_until(self.bucket.next_at(), cx).is_pending() {
                return self.up.tend(cx);
            }
            let (now, bucket, mut broke) = (cx.clock().now(), &mut self.bucket, false);
            let answer = self.up.drive(cx, |x| {
                bucket.take(now);
                broke = push(x).is_break();
                if broke || !bucket.has_token(now) { Push::Break(()) } else { Push::Continue(()) }
            });
            match answer {
                Ok(Progress::Stopped) if !broke => {}
                answer => return answer,
            }
        }
    }

    fn enforce<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (bucket, clock, mut exceeded) = (&mut self.bucket, &self.clock, false);
        let answer = self.up.drive(cx, |x| {
            let now = clock.now();
            exceeded = !bucket.has_token(now);
            if exceeded {
                return Push::Break(());
            }
            bucket.take(now);
            push(x)
        });
        if exceeded {
            let Rate { elements, per, .. } = self.rate;
            return self.up.fail(ErrorKind::RateExceeded { stage: STAGE, elements, per }.into(), cx);
        }
        answer
    }
}

impl<U: Stage> Stage for ThrottleStage<U> {
    type Out = U::Out;

    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, push: P) -> Driven {
        if self.rate.enforcing { self.enforce(cx, push) } else { self.shape(cx, push) }
    }

    forward!(tend cancel poll_closed);
}

const STAGE: &str = "throttle";
const AUTO_BURST: Duration = Duration::from_millis(100);
