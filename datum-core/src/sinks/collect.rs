//! `Sink::collect`: all elements.

use super::{Completion, Promise, SinkLogic, SinkRun, ended};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{Push, Stage, StageCx, Up};
use std::marker::PhantomData;
use std::task::Poll;

impl Sink<Unset> {
    /// Collects all elements; materialises the future of them. Memory grows with the stream.
    ///
    /// - **Cancels** never.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::from_iter(1..=3).run_with(Sink::collect())?.await?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn collect<In: Send + 'static>() -> Sink<Collect<In>> {
        Sink::from_blueprint(Collect(PhantomData))
    }
}

/// The blueprint of [`Sink::collect`].
#[derive(Debug)]
pub struct Collect<In>(PhantomData<fn(In)>);

impl<In> Clone for Collect<In> {
    fn clone(&self) -> Self {
        Collect(PhantomData)
    }
}

impl<In: Send + 'static> SinkBlueprint<In> for Collect<In> {
    type Mat = Completion<Vec<In>>;
    type Run<U: Stage<Out = In>> = SinkRun<U, CollectLogic<In>>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        let (promise, completion) = Completion::new();
        Ok((SinkRun::new(up, CollectLogic { all: Vec::new(), promise }), completion))
    }
}

/// The logic of [`Sink::collect`].
#[derive(Debug)]
pub struct CollectLogic<In> {
    all: Vec<In>,
    promise: Promise<Vec<In>>,
}

impl<In: Send + 'static> SinkLogic<In> for CollectLogic<In> {
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        let all = &mut self.all;
        ended(up.drive(cx, |x| {
            all.push(x);
            Push::Continue(())
        }))
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        let all = std::mem::take(&mut self.all);
        self.promise.resolve(outcome.map(|()| all));
    }
}
