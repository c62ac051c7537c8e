//! A part with attributes of its own.

use super::{Blueprint, Built, Closed, Operator, SinkBlueprint};
use crate::attributes::Attributes;
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::Stage;

/// The part `.0`, built with the attributes `.1` on top of those around it.
#[derive(Clone, Debug)]
pub struct Attributed<P>(pub(super) P, pub(super) Attributes);

impl<B: Blueprint> Blueprint for Attributed<B> {
    type Out = B::Out;
    type Mat = B::Mat;
    type Stage = B::Stage;

    fn build(self, materializer: &Materializer) -> Built<B::Stage, B::Mat> {
        self.0.build(&materializer.with_attributes(self.1))
    }
}

impl<In: Send + 'static, O: Operator<In>> Operator<In> for Attributed<O> {
    type Out = O::Out;
    type Mat = O::Mat;
    type Stage<U: Stage<Out = In>> = O::Stage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<O::Stage<U>, O::Mat> {
        self.0.attach(up, &materializer.with_attributes(self.1))
    }
}

impl<In: Send + 'static, S: SinkBlueprint<In>> SinkBlueprint<In> for Attributed<S> {
    type Mat = S::Mat;
    type Run<U: Stage<Out = In>> = S::Run<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<S::Run<U>, S::Mat> {
        self.0.attach(up, &materializer.with_attributes(self.1))
    }
}

impl<C: Closed> Closed for Attributed<C> {
    type Mat = C::Mat;

    fn start(self, materializer: &Materializer) -> Result<C::Mat, StreamError> {
        self.0.start(&materializer.with_attributes(self.1))
    }
}
