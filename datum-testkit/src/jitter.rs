//! `jitter(seed)`: a consumer in a bad mood. Asks for little, tends instead, yields, at random.

use crate::rng::Rng;
use datum_core::blueprint::{KeepLeft, StreamOps};
use datum_core::stage::{Driven, Progress, Push, Stage, StageCx, Up};
use datum_core::{forward, linear_operator};

/// Adds [`jitter`](JitterOps::jitter).
pub trait JitterOps: StreamOps {
    /// Passes every element through, but drives its upstream in random small pieces, tends it at random, and wakes
    /// itself: every resumption point of the operators around it is met.
    fn jitter(self, seed: u64) -> Self::Then<Jitter, KeepLeft> {
        self.then(Jitter(seed))
    }
}

impl<S: StreamOps> JitterOps for S {}

/// The operator of [`jitter`](JitterOps::jitter).
#[derive(Clone, Debug)]
pub struct Jitter(u64);

/// The stage of [`jitter`](JitterOps::jitter).
#[derive(Debug)]
pub struct JitterStage<U> {
    up: Up<U>,
    rng: Rng,
}

linear_operator!([In: Send + 'static] Jitter, In => In, JitterStage<>,
    |op, up, _m| JitterStage { up: Up::new(up), rng: Rng::new(op.0) });

impl<U: Stage> Stage for JitterStage<U> {
    type Out = U::Out;

    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if self.rng.one_in(3) {
            cx.wake();
            return self.up.tend(cx);
        }
        let (mut left, mut broke) = (1 + self.rng.below(5), false);
        let answer = self.up.drive(cx, |x| {
            left -= 1;
            broke = push(x).is_break();
            if broke || left == 0 { Push::Break(()) } else { Push::Continue(()) }
        })?;
        if answer == Progress::Stopped && !broke {
            cx.wake();
            return Ok(Progress::Pending);
        }
        Ok(answer)
    }

    forward!(tend cancel poll_closed);
}
