//! `Sink::ignore`: takes everything, keeps nothing.

use super::{Completion, Promise, SinkLogic, SinkRun, ended};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{Push, Stage, StageCx, Up};
use std::task::Poll;

impl Sink<Unset> {
    /// Consumes and drops every element; materialises the stream's completion.
    ///
    /// - **Cancels** never.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// Source::from_iter(0..10).run_with(Sink::ignore())?.await
    /// # }
    /// ```
    pub fn ignore() -> Sink<Ignore> {
        Sink::from_blueprint(Ignore)
    }
}

/// The blueprint of [`Sink::ignore`].
#[derive(Clone, Copy, Debug)]
pub struct Ignore;

/// The logic of [`Sink::ignore`].
#[derive(Debug)]
pub struct IgnoreLogic(Promise<()>);

impl<In: Send + 'static> SinkBlueprint<In> for Ignore {
    type Mat = Completion<()>;
    type Run<U: Stage<Out = In>> = SinkRun<U, IgnoreLogic>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        let (promise, completion) = Completion::new();
        Ok((SinkRun::new(up, IgnoreLogic(promise)), completion))
    }
}

impl<In: Send + 'static> SinkLogic<In> for IgnoreLogic {
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        ended(up.drive(cx, |_| Push::Continue(())))
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        self.0.resolve(outcome);
    }
}
