//! Two parts as one: a blueprint, an operator, a sink or a closed graph, by what the parts are.

use super::{Blueprint, Built, Closed, Keeps, Operator, SinkBlueprint};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::Stage;

/// The operator that does nothing: an empty [`Flow`](super::Flow). It leaves no trace in the fused loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl<In: Send + 'static> Operator<In> for Identity {
    type Out = In;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = U;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<U, ()> {
        Ok((up, ()))
    }
}

/// A source and an operator: a blueprint.
#[derive(Clone, Debug)]
pub struct Via<B, O, K>(pub(super) B, pub(super) O, pub(super) K);

impl<B: Blueprint, O: Operator<B::Out>, K: Keeps> Blueprint for Via<B, O, K> {
    type Out = O::Out;
    type Mat = K::Out<B::Mat, O::Mat>;
    type Stage = O::Stage<B::Stage>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, Self::Mat> {
        let (stage, left) = self.0.build(materializer)?;
        let (stage, right) = self.1.attach(stage, materializer)?;
        Ok((stage, self.2.combine(left, right)))
    }
}

/// Two operators: an operator.
#[derive(Clone, Debug)]
pub struct Chain<A, B, K>(pub(super) A, pub(super) B, pub(super) K);

impl<In: Send + 'static, A: Operator<In>, B: Operator<A::Out>, K: Keeps> Operator<In> for Chain<A, B, K> {
    type Out = B::Out;
    type Mat = K::Out<A::Mat, B::Mat>;
    type Stage<U: Stage<Out = In>> = B::Stage<A::Stage<U>>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Stage<U>, Self::Mat> {
        let (stage, left) = self.0.attach(up, materializer)?;
        let (stage, right) = self.1.attach(stage, materializer)?;
        Ok((stage, self.2.combine(left, right)))
    }
}

/// An operator and a sink: a sink.
#[derive(Clone, Debug)]
pub struct FlowTo<O, S, K>(pub(super) O, pub(super) S, pub(super) K);

impl<In: Send + 'static, O: Operator<In>, S: SinkBlueprint<O::Out>, K: Keeps> SinkBlueprint<In>
    for FlowTo<O, S, K>
{
    type Mat = K::Out<O::Mat, S::Mat>;
    type Run<U: Stage<Out = In>> = S::Run<O::Stage<U>>;

    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Run<U>, Self::Mat> {
        let (stage, left) = self.0.attach(up, materializer)?;
        let (run, right) = self.1.attach(stage, materializer)?;
        Ok((run, self.2.combine(left, right)))
    }
}

/// A source and a sink: a closed graph.
#[derive(Clone, Debug)]
pub struct SourceTo<B, S, K>(pub(super) B, pub(super) S, pub(super) K);

impl<B: Blueprint, S: SinkBlueprint<B::Out>, K: Keeps> Closed for SourceTo<B, S, K> {
    type Mat = K::Out<B::Mat, S::Mat>;

    fn start(self, materializer: &Materializer) -> Result<Self::Mat, StreamError> {
        let (stage, left) = self.0.build(materializer)?;
        let (run, right) = self.1.attach(stage, materializer)?;
        materializer.defer(run);
        Ok(self.2.combine(left, right))
    }
}
