//! `Sink::foreach`: a side effect per element.

use super::{Completion, Promise, SinkLogic, SinkRun, ended};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{Judge, Push, Stage, StageCx, Supervision, Up, guard};
use std::task::Poll;

impl Sink<Unset> {
    /// Calls `f` with each element; materialises the stream's completion.
    ///
    /// A panic in `f` is supervised: `Resume` and `Restart` go on with the next element.
    ///
    /// - **Cancels** when `f` fails.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// Source::from_iter(0..3).run_with(Sink::foreach(move |x| sender.send(x).unwrap()))?.await?;
    /// assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn foreach<In, F>(f: F) -> Sink<Foreach<F>>
    where
        In: Send + 'static,
        F: FnMut(In) + Send + 'static,
    {
        Sink::from_blueprint(Foreach(f))
    }
}

/// The blueprint of [`Sink::foreach`].
#[derive(Clone, Debug)]
pub struct Foreach<F>(F);

/// The logic of [`Sink::foreach`].
#[derive(Debug)]
pub struct ForeachLogic<F> {
    f: F,
    supervision: Supervision,
    promise: Promise<()>,
}

impl<In: Send + 'static, F: FnMut(In) + Send + 'static> SinkBlueprint<In> for Foreach<F> {
    type Mat = Completion<()>;
    type Run<U: Stage<Out = In>> = SinkRun<U, ForeachLogic<F>>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Run<U>, Self::Mat> {
        let (promise, completion) = Completion::new();
        let logic = ForeachLogic { f: self.0, supervision: materializer.supervision(), promise };
        Ok((SinkRun::new(up, logic), completion))
    }
}

impl<In: Send + 'static, F: FnMut(In) + Send + 'static> SinkLogic<In> for ForeachLogic<F> {
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        let (f, mut judge) = (&mut self.f, Judge::new(&self.supervision));
        let answer = up.drive(cx, |x| match guard("foreach", || f(x)) {
            Ok(()) => Push::Continue(()),
            Err(error) => judge.element_failed(error),
        });
        ended(judge.conclude(answer, up, cx))
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        self.promise.resolve(outcome);
    }
}
