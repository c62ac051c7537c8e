//! Nameable forms: one indirect call per element, no buffer, the same demand.
//!
//! For struct fields, collections, recursion and short compile times. A box changes nothing in what a stream does:
//! `take(3)` behind it still stops its upstream after exactly the third element.

use super::{Blueprint, Built, Flow, Operator, Sink, SinkBlueprint, Source};
use crate::materializer::{Materializer, Runnable};
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx};
use std::fmt;
use std::marker::PhantomData;
use std::task::Poll;

/// A boxed [`Source`].
pub type BoxSource<T, M = ()> = Source<BoxBlueprint<T, M>>;
/// A boxed [`Flow`].
pub type BoxFlow<In, T, M = ()> = Flow<In, BoxOperator<In, T, M>>;
/// A boxed [`Sink`].
pub type BoxSink<In, M = ()> = Sink<BoxSinkBlueprint<In, M>>;

trait DynStage<T>: Send {
    fn drive(&mut self, cx: &mut StageCx<'_, '_>, push: &mut dyn FnMut(T) -> Push) -> Driven;
    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven;
    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>);
    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()>;
    fn take_tail(&mut self) -> Option<BoxStage<T>>;
}

impl<S: Stage> DynStage<S::Out> for S {
    fn drive(&mut self, cx: &mut StageCx<'_, '_>, push: &mut dyn FnMut(S::Out) -> Push) -> Driven {
        Stage::drive(self, cx, push)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        Stage::tend(self, cx)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        Stage::cancel(self, cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        Stage::poll_closed(self, cx)
    }

    fn take_tail(&mut self) -> Option<BoxStage<S::Out>> {
        Stage::take_tail(self)
    }
}

/// A stage behind one pointer.
pub struct BoxStage<T>(Box<dyn DynStage<T>>);

impl<T: Send + 'static> BoxStage<T> {
    /// Boxes a stage.
    pub fn new<S: Stage<Out = T>>(stage: S) -> Self {
        BoxStage(Box::new(stage))
    }
}

impl<T: Send + 'static> Stage for BoxStage<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            let answer = self.0.drive(cx, &mut push);
            if matches!(answer, Ok(Progress::Pending))
                && let Some(tail) = self.0.take_tail()
            {
                // What it held only forwarded to a box: that one takes its place, and the demand goes on there.
                *self = tail;
                continue;
            }
            return answer;
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.0.tend(cx)
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.0.cancel(cause, cx);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        self.0.poll_closed(cx)
    }

    const BOXED: bool = true;

    fn take_tail(&mut self) -> Option<BoxStage<T>> {
        Some(std::mem::replace(self, BoxStage::new(Taken(PhantomData))))
    }
}

/// What is left in a box whose stage was taken. The box is dropped next.
struct Taken<T>(PhantomData<fn() -> T>);

impl<T: Send + 'static> Stage for Taken<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, _: &mut StageCx<'_, '_>, _: P) -> Driven {
        Ok(Progress::Complete)
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(Progress::Complete)
    }

    fn cancel(&mut self, _: CancelCause, _: &mut StageCx<'_, '_>) {}

    fn poll_closed(&mut self, _: &mut StageCx<'_, '_>) -> Poll<()> {
        Poll::Ready(())
    }
}

type BuildFn<T, M> = Box<dyn FnOnce(&Materializer) -> Built<BoxStage<T>, M> + Send>;

/// The blueprint inside a [`BoxSource`].
pub struct BoxBlueprint<T, M>(BuildFn<T, M>);

impl<T: Send + 'static, M: 'static> BoxBlueprint<T, M> {
    /// Boxes a blueprint.
    pub fn new<B: Blueprint<Out = T, Mat = M>>(blueprint: B) -> Self {
        BoxBlueprint(Box::new(move |materializer| {
            let (stage, mat) = blueprint.build(materializer)?;
            Ok((BoxStage::new(stage), mat))
        }))
    }
}

impl<T: Send + 'static, M: 'static> Blueprint for BoxBlueprint<T, M> {
    type Out = T;
    type Mat = M;
    type Stage = BoxStage<T>;

    fn build(self, materializer: &Materializer) -> Built<BoxStage<T>, M> {
        (self.0)(materializer)
    }
}

type AttachFn<In, T, M> = Box<dyn FnOnce(BoxStage<In>, &Materializer) -> Built<BoxStage<T>, M> + Send>;

/// The operator inside a [`BoxFlow`].
pub struct BoxOperator<In, T, M>(AttachFn<In, T, M>);

impl<In: Send + 'static, T: Send + 'static, M: 'static> BoxOperator<In, T, M> {
    /// Boxes an operator.
    pub fn new<O: Operator<In, Out = T, Mat = M>>(operator: O) -> Self {
        BoxOperator(Box::new(move |up, materializer| {
            let (stage, mat) = operator.attach(up, materializer)?;
            Ok((BoxStage::new(stage), mat))
        }))
    }
}

impl<In: Send + 'static, T: Send + 'static, M: 'static> Operator<In> for BoxOperator<In, T, M> {
    type Out = T;
    type Mat = M;
    type Stage<U: Stage<Out = In>> = BoxStage<T>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<BoxStage<T>, M> {
        (self.0)(BoxStage::new(up), materializer)
    }
}

/// A running sink behind one pointer.
pub struct BoxRun(Box<dyn Runnable>);

impl Runnable for BoxRun {
    fn poll_run(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        self.0.poll_run(cx)
    }
}

type SinkFn<In, M> = Box<dyn FnOnce(BoxStage<In>, &Materializer) -> Built<BoxRun, M> + Send>;

/// The blueprint inside a [`BoxSink`].
pub struct BoxSinkBlueprint<In, M>(SinkFn<In, M>);

impl<In: Send + 'static, M: 'static> BoxSinkBlueprint<In, M> {
    /// Boxes a sink blueprint.
    pub fn new<S: SinkBlueprint<In, Mat = M>>(sink: S) -> Self {
        BoxSinkBlueprint(Box::new(move |up, materializer| {
            let (run, mat) = sink.attach(up, materializer)?;
            Ok((BoxRun(Box::new(run)), mat))
        }))
    }
}

impl<In: Send + 'static, M: 'static> SinkBlueprint<In> for BoxSinkBlueprint<In, M> {
    type Mat = M;
    type Run<U: Stage<Out = In>> = BoxRun;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<BoxRun, M> {
        (self.0)(BoxStage::new(up), materializer)
    }
}

macro_rules! opaque_debug {
    ($($name:ident<$($p:ident),*>)*) => {$(
        impl<$($p),*> fmt::Debug for $name<$($p),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

opaque_debug! { BoxStage<T> BoxBlueprint<T, M> BoxOperator<In, T, M> BoxSinkBlueprint<In, M> BoxRun<> }
