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
        let (f, zero, mut judge) = (&mut self.f, &self.zero, Judge::new(&self.supervision));
        let keeps = self.supervision.decides();
        // Local while it drives: in a field it would go through memory for every element. And there is a value at every
        // turn of the loop, whatever failed, so that the compiler need not look for one.
        let mut so_far = Some(self.so_far.take().expect("a value between two drives"));
        let answer = up.drive(cx, |x| {
            let backup = if keeps { so_far.clone() } else { None };
            let before = so_far.take().expect("given back after each element");
            match guard("fold", || f(before, x)) {
                Ok(after) => {
                    so_far = Some(after);
                    Push::Continue(())
                }
                Err(error) => {
                    so_far = Some(backup.unwrap_or_else(|| zero.clone()));
                    let slot = &mut so_far;
                    judge.state_failed(error, || *slot = Some(zero.clone()))
                }
            }
        });
        self.so_far = so_far;
        ended(judge.conclude(answer, up, cx))
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        let so_far = self.so_far.take();
        self.promise.resolve(outcome.and_then(|()| so_far.ok_or_else(|| ErrorKind::Aborted.into())));
    }
}
