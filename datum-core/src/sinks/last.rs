//! `Sink::last` and `Sink::last_option`: the last element.

use super::{Completion, Promise, SinkLogic, SinkRun, ended};
use crate::blueprint::{Built, Sink, SinkBlueprint, Unset};
use crate::error::{ErrorKind, StreamError};
use crate::materializer::Materializer;
use crate::stage::{Push, Stage, StageCx, Up};
use std::marker::PhantomData;
use std::task::Poll;

impl Sink<Unset> {
    /// Consumes everything; materialises the future of the last element. Fails with
    /// [`NoElement`](ErrorKind::NoElement) when the stream completes without one.
    ///
    /// - **Cancels** never.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::from_iter(1..=5).run_with(Sink::last())?.await?, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn last<In: Send + 'static>() -> Sink<Last<In>> {
        Sink::from_blueprint(Last(PhantomData))
    }

    /// As [`last`](Sink::last), with `None` for a stream that completes without an element.
    ///
    /// - **Cancels** never.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::empty::<u8>().run_with(Sink::last_option())?.await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn last_option<In: Send + 'static>() -> Sink<LastOption<In>> {
        Sink::from_blueprint(LastOption(PhantomData))
    }
}

/// The blueprint of [`Sink::last`].
#[derive(Clone, Copy, Debug)]
pub struct Last<In>(PhantomData<fn(In)>);

/// The blueprint of [`Sink::last_option`].
#[derive(Clone, Copy, Debug)]
pub struct LastOption<In>(PhantomData<fn(In)>);

/// The logic of both: `A` is what the last element becomes.
#[derive(Debug)]
pub struct LastLogic<In, A> {
    last: Option<In>,
    outcome: fn(Option<In>) -> Result<A, StreamError>,
    promise: Promise<A>,
}

fn or_no_element<In>(last: Option<In>) -> Result<In, StreamError> {
    last.ok_or_else(|| ErrorKind::NoElement { stage: "last" }.into())
}

fn run<U: Stage, A: Send + 'static>(
    up: U,
    outcome: fn(Option<U::Out>) -> Result<A, StreamError>,
) -> (SinkRun<U, LastLogic<U::Out, A>>, Completion<A>) {
    let (promise, completion) = Completion::new();
    (SinkRun::new(up, LastLogic { last: None, outcome, promise }), completion)
}

impl<In: Send + 'static> SinkBlueprint<In> for Last<In> {
    type Mat = Completion<In>;
    type Run<U: Stage<Out = In>> = SinkRun<U, LastLogic<In, In>>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        Ok(run(up, or_no_element))
    }
}

impl<In: Send + 'static> SinkBlueprint<In> for LastOption<In> {
    type Mat = Completion<Option<In>>;
    type Run<U: Stage<Out = In>> = SinkRun<U, LastLogic<In, Option<In>>>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<Self::Run<U>, Self::Mat> {
        Ok(run(up, Ok))
    }
}

impl<In: Send + 'static, A: Send + 'static> SinkLogic<In> for LastLogic<In, A> {
    fn poll<U: Stage<Out = In>>(
        &mut self,
        up: &mut Up<U>,
        cx: &mut StageCx<'_, '_>,
    ) -> Poll<Result<(), StreamError>> {
        let last = &mut self.last;
        ended(up.drive(cx, |x| {
            *last = Some(x);
            Push::Continue(())
        }))
    }

    fn finish(&mut self, outcome: Result<(), StreamError>) {
        let last = self.last.take();
        self.promise.resolve(outcome.and_then(|()| (self.outcome)(last)));
    }
}
