//! `Sink::fold`: one value of all elements.

use super::{Completion, Promise, SinkLogic, SinkRun, ended};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::{ErrorKind, StreamError};
use crate::materializer::Materializer;
use crate::stage::{Judge, Push, Stage, StageCx, Supervision, Up, guard};
use std::task::Poll;

impl Sink<Unset> {
    /// Folds all elements into one value, beginning with `zero`; materialises the future of it.
    ///
    /// A panic in `f` is supervised: `Resume` drops the element and keeps the value so far; `Restart` goes back to
    /// `zero`. The value so far moves into `f`, so `Resume` needs a copy of it per element and costs one clone each
    /// when (and only when) a decider is set.
    ///
    /// - **Cancels** when `f` fails.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let sum = Source::from_iter(1..=4).run_with(Sink::fold(0, |sum, x| sum + x))?.await?;
    /// assert_eq!(sum, 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fold<A, In, F>(zero: A, f: F) -> Sink<Fold<A, F>>
    where
        A: Clone + Send + 'static,
        In: Send + 'static,
        F: FnMut(A, In) -> A + Send + 'static,
    {
        Sink::from_blueprint(Fold { zero, f })
    }
}

/// The blueprint of [`Sink::fold`].
#[derive(Clone, Debug)]
pub struct Fold<A, F> {
    zero: A,
    f: F,
}

impl<In, A, F> SinkBlueprint<In> for Fold<A, F>
where
    In: Send + 'static,
    A: Clone + Send + 'static,
    F: FnMut(A, In) -> A + Send + 'static,
{
    type Mat = Completion<A>;
    type Run<U: Stage<Out = In>> = SinkRun<U, FoldLogic<A, F>>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Run<U>, Completion<A>> {
        let (promise, completion) = Completion::new();
        let Fold { zero, f } = self;
        let supervision = materializer.supervision();
        let logic = FoldLogic { so_far: Some(zero.clone()), zero, f, supervision, promise };
        Ok((SinkRun::new(up, logic), completion))
    }
}

/// The logic of [`Sink::fold`].
#[derive(Debug)]
pub struct FoldLogic<A, F> {
    zero: A,
    /// `None` only while the stream is driven.
    so_far: Option<A>,
    f: F,
    supervision: Supervision,
    promise: Promise<A>,
}

impl<A: Clone + Send + 'static, F> FoldLogic<A, F> {
    /// Without a decider: a failure ends the stream, and the value with it. The value is in a local that is there at every
    /// turn of the loop, so that it costs what it does in a loop written by hand.
    fn just_move<U: Stage>(
        &mut self,
        so_far: A,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>>
    where
        F: FnMut(A, U::Out) -> A,
    {
        let f = &mut self.f;
        let (mut slot, mut failed) = (Some(so_far), None);
        let answer = up.drive(cx, |x| {
            let before = slot.take().expect("given back after each element");
            match guard("fold", || f(before, x)) {
                Ok(after) => {
                    slot = Some(after);
                    Push::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    Push::Break(())
                }
            }
        });
        self.so_far = slot;
        ended(match failed {
            None => answer,
            Some(error) => up.fail(error, cx),
        })
    }

    /// With a decider: `Resume` needs the value from before the failure. The copies are user code, too.
    fn keep_copies<U: Stage>(
        &mut self,
        so_far: A,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>>
    where
        F: FnMut(A, U::Out) -> A,
    {
        let (f, zero, mut judge) = (&mut self.f, &self.zero, Judge::new(&self.supervision));
        let (mut value, mut lost) = (so_far, None);
        let answer = up.drive(cx, |x| match guard("fold", || f(value.clone(), x)) {
            Ok(after) => {
                value = after;
                Push::Continue(())
            }
            Err(error) => {
                let (value, lost) = (&mut value, &mut lost);
                let flow = judge.state_failed(error, || match guard("fold", || zero.clone()) {
                    Ok(fresh) => *value = fresh,
                    Err(error) => *lost = Some(error),
                });
                if lost.is_some() { Push::Break(()) } else { flow }
            }
        });
        self.so_far = Some(value);
        ended(match lost {
            None => judge.conclude(answer, up, cx),
            Some(error) => up.fail(error, cx),
        })
    }
}

impl<In, A, F> SinkLogic<In> for FoldLogic<A, F>
where
    In: Send + 'static,
    A: Clone + Send + 'static,
    F: FnMut(A, In) -> A + Send + 'static,
{
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        match self.so_far.take() {
            Some(so_far) if self.supervision.decides() => self.keep_copies(so_far, up, cx),
            Some(so_far) => self.just_move(so_far, up, cx),
            // Lost to a closure that failed, which has ended the sink.
            None => Poll::Ready(Err(ErrorKind::Aborted.into())),
        }
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        let so_far = self.so_far.take();
        self.promise.resolve(outcome.and_then(|()| so_far.ok_or_else(|| ErrorKind::Aborted.into())));
    }
}
