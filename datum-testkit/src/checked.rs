//! `checked()`: asserts the stage contract between any two operators.

use datum_core::blueprint::{KeepLeft, StreamOps};
use datum_core::linear_operator;
use datum_core::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx};
use std::task::Poll;

/// Adds [`checked`](CheckedOps::checked).
pub trait CheckedOps: StreamOps {
    /// Passes everything through and panics when the stage above, or the one below, breaks the contract of
    /// [`datum_core::stage`]. `name` is in the panic's message.
    fn checked(self, name: &'static str) -> Self::Then<Checked, KeepLeft> {
        self.then(Checked(name))
    }
}

impl<S: StreamOps> CheckedOps for S {}

/// The operator of [`checked`](CheckedOps::checked).
#[derive(Clone, Debug)]
pub struct Checked(&'static str);

/// The stage of [`checked`](CheckedOps::checked).
#[derive(Debug)]
pub struct CheckedStage<U> {
    up: U,
    life: Life,
    name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Live,
    Over,
    Closed,
}

linear_operator!([In: Send + 'static] Checked, In => In, CheckedStage<>,
    |op, up, _m| CheckedStage { up, life: Life::Live, name: op.0 });

impl<U: Stage> CheckedStage<U> {
    fn must_be(&self, life: Life, call: &str) {
        assert_eq!(self.life, life, "{}: {call}", self.name);
    }

    fn after(&mut self, answer: Driven) -> Driven {
        if !matches!(answer, Ok(Progress::Pending | Progress::Stopped)) {
            self.life = Life::Over;
        }
        answer
    }
}

impl<U: Stage> Stage for CheckedStage<U> {
    type Out = U::Out;

    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.must_be(Life::Live, "driven");
        let (mut broke, name) = (false, self.name);
        let answer = self.up.drive(cx, |x| {
            assert!(!broke, "{name}: pushed after Break");
            let flow = push(x);
            broke = flow.is_break();
            flow
        });
        match &answer {
            Ok(Progress::Stopped) => assert!(broke, "{name}: Stopped without Break"),
            Ok(Progress::Pending) => assert!(!broke, "{name}: Pending after Break"),
            _ => {}
        }
        self.after(answer)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.must_be(Life::Live, "tended");
        let answer = self.up.tend(cx);
        assert!(!matches!(answer, Ok(Progress::Stopped)), "{}: tend answered Stopped", self.name);
        self.after(answer)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.must_be(Life::Live, "cancelled");
        self.life = Life::Over;
        self.up.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        self.must_be(Life::Over, "poll_closed");
        let closed = self.up.poll_closed(cx);
        if closed.is_ready() {
            self.life = Life::Closed;
        }
        closed
    }
}
