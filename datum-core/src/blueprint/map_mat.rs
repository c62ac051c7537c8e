//! A part whose materialised value is turned into another.

use super::{Blueprint, Built, Closed, Operator, SinkBlueprint};
use crate::error::StreamError;
use crate::materializer::Materializer;
use crate::stage::{Stage, guard};

/// The part `.0`, its materialised value mapped by `.1`. A panic in the closure fails the run before it starts.
#[derive(Clone, Debug)]
pub struct MapMat<P, F>(pub(super) P, pub(super) F);

fn call<L, M>(f: impl FnOnce(L) -> M, value: L) -> Result<M, StreamError> {
    guard("map_materialized", || f(value))
}

impl<B: Blueprint, M: 'static, F: FnOnce(B::Mat) -> M + Send + 'static> Blueprint for MapMat<B, F> {
    type Out = B::Out;
    type Mat = M;
    type Stage = B::Stage;

    fn build(self, materializer: &Materializer) -> Built<B::Stage, M> {
        let (stage, mat) = self.0.build(materializer)?;
        Ok((stage, call(self.1, mat)?))
    }
}

impl<In, O, M, F> Operator<In> for MapMat<O, F>
where
    In: Send + 'static,
    O: Operator<In>,
    M: 'static,
    F: FnOnce(O::Mat) -> M + Send + 'static,
{
    type Out = O::Out;
    type Mat = M;
    type Stage<U: Stage<Out = In>> = O::Stage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<O::Stage<U>, M> {
        let (stage, mat) = self.0.attach(up, materializer)?;
        Ok((stage, call(self.1, mat)?))
    }
}

impl<In, S, M, F> SinkBlueprint<In> for MapMat<S, F>
where
    In: Send + 'static,
    S: SinkBlueprint<In>,
    M: 'static,
    F: FnOnce(S::Mat) -> M + Send + 'static,
{
    type Mat = M;
    type Run<U: Stage<Out = In>> = S::Run<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<S::Run<U>, M> {
        let (run, mat) = self.0.attach(up, materializer)?;
        Ok((run, call(self.1, mat)?))
    }
}

impl<C: Closed, M: 'static, F: FnOnce(C::Mat) -> M + Send + 'static> Closed for MapMat<C, F> {
    type Mat = M;

    fn start(self, materializer: &Materializer) -> Result<M, StreamError> {
        let mat = self.0.start(materializer)?;
        call(self.1, mat)
    }
}
