//! `Sink::head` and `Sink::head_option`: the first element.

use super::{Completion, Promise, SinkLogic, SinkRun};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::{ErrorKind, StreamError};
use crate::materializer::Materializer;
use crate::stage::{Progress, Push, Stage, StageCx, Up};
use std::marker::PhantomData;
use std::task::Poll;

impl Sink<Unset> {
    /// Takes the first element and cancels; materialises the future of it. Fails with
    /// [`NoElement`](ErrorKind::NoElement) when the stream completes without one.
    ///
    /// - **Cancels** after the first element.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::from_iter(5..).run_with(Sink::head())?.await?, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn head<In: Send + 'static>() -> Sink<Head<In>> {
        Sink::from_blueprint(Head(PhantomData))
    }

    /// As [`head`](Sink::head), with `None` for a stream that completes without an element.
    ///
    /// - **Cancels** after the first element.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::empty::<u8>().run_with(Sink::head_option())?.await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn head_option<In: Send + 'static>() -> Sink<HeadOption<In>> {
        Sink::from_blueprint(HeadOption(PhantomData))
    }
}

/// The blueprint of [`Sink::head`].
#[derive(Clone, Copy, Debug)]
pub struct Head<In>(PhantomData<fn(In)>);

/// The blueprint of [`Sink::head_option`].
#[derive(Clone, Copy, Debug)]
pub struct HeadOption<In>(PhantomData<fn(In)>);

/// The logic of both: `A` is what the first element becomes.
#[derive(Debug)]
pub struct HeadLogic<In, A> {
    first: Option<In>,
    outcome: fn(Option<In>) -> Result<A, StreamError>,
    promise: Promise<A>,
}

fn or_no_element<In>(first: Option<In>) -> Result<In, StreamError> {
    first.ok_or_else(|| ErrorKind::NoElement { stage: "head" }.into())
}

fn run<U: Stage, A: Send + 'static>(
    up: U,
    outcome: fn(Option<U::Out>) -> Result<A, StreamError>,
) -> (SinkRun<U, HeadLogic<U::Out, A>>, Completion<A>) {
    let (promise, completion) = Completion::new();
    (SinkRun::new(up, HeadLogic { first: None, outcome, promise }), completion)
}

impl<In: Send + 'static> SinkBlueprint<In> for Head<In> {
    type Mat = Completion<In>;
    type Run<U: Stage<Out = In>> = SinkRun<U, HeadLogic<In, In>>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        Ok(run(up, or_no_element))
    }
}

impl<In: Send + 'static> SinkBlueprint<In> for HeadOption<In> {
    type Mat = Completion<Option<In>>;
    type Run<U: Stage<Out = In>> = SinkRun<U, HeadLogic<In, Option<In>>>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        Ok(run(up, Ok))
    }
}

impl<In: Send + 'static, A: Send + 'static> SinkLogic<In> for HeadLogic<In, A> {
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        let first = &mut self.first;
        let answer = up.drive(cx, |x| {
            *first = Some(x);
            Push::Break(())
        });
        match answer {
            // A failure that came with the element is not wanted any more.
            _ if self.first.is_some() => Poll::Ready(Ok(())),
            Ok(Progress::Pending | Progress::Stopped) => Poll::Pending,
            Ok(Progress::Complete) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        let first = self.first.take();
        self.promise.resolve(outcome.and_then(|()| (self.outcome)(first)));
    }
}
