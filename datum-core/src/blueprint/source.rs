//! Sources: descriptions with one open output.

use super::{
    Attributed, Blueprint, BoxBlueprint, BoxSource, KeepRight, Keeps, MapMat, Operator, RunnableGraph,
    SharedBlueprint, SharedSource, Sink, SinkBlueprint, SourceTo, StreamOps, Via,
};
use crate::attributes::Attributes;
use crate::error::StreamError;
use crate::materializer::Materializer;

/// A description of where elements come from. The constructors are in [`crate::sources`]; the operators in
/// [`crate::ops`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before one of the `run` methods"]
pub struct Source<B>(B);

/// The type parameter that constructors are found under: `Source::from_iter(..)` is a function of `Source<Unset>`.
#[derive(Clone, Copy, Debug)]
pub enum Unset {}

impl<B: Blueprint> Source<B> {
    /// Holds a blueprint: how constructors and connectors make sources.
    pub fn from_blueprint(blueprint: B) -> Self {
        Source(blueprint)
    }

    /// The blueprint inside.
    pub fn into_blueprint(self) -> B {
        self.0
    }

    /// Connects a sink; keeps the source's materialised value.
    pub fn to<S: SinkBlueprint<B::Out>>(
        self,
        sink: Sink<S>,
    ) -> RunnableGraph<SourceTo<B, S, super::KeepLeft>> {
        self.to_keep(sink, super::KeepLeft)
    }

    /// Connects a sink and says which materialised value to keep.
    pub fn to_keep<S: SinkBlueprint<B::Out>, K: Keeps>(
        self,
        sink: Sink<S>,
        keep: K,
    ) -> RunnableGraph<SourceTo<B, S, K>> {
        RunnableGraph::from_closed(SourceTo(self.0, sink.into_blueprint(), keep))
    }

    /// Runs into a sink, on the tokio runtime that the caller is in, and gives the sink's materialised value.
    ///
    /// # Errors
    /// When it cannot be built, or outside of a runtime. Nothing has started then.
    pub fn run_with<S: SinkBlueprint<B::Out>>(self, sink: Sink<S>) -> Result<S::Mat, StreamError> {
        self.to_keep(sink, KeepRight).run()
    }

    /// Runs into a sink on a given materializer and gives the sink's materialised value.
    ///
    /// # Errors
    /// When it cannot be built, or the materializer was shut down. Nothing has started then.
    pub fn run_with_on<S: SinkBlueprint<B::Out>>(
        self,
        sink: Sink<S>,
        materializer: &Materializer,
    ) -> Result<S::Mat, StreamError> {
        self.to_keep(sink, KeepRight).run_on(materializer)
    }

    /// Turns the materialised value into another.
    pub fn map_materialized<M, F>(self, f: F) -> Source<MapMat<B, F>>
    where
        M: 'static,
        F: FnOnce(B::Mat) -> M + Send + 'static,
    {
        Source(MapMat(self.0, f))
    }

    /// Gives attributes to everything so far.
    pub fn with_attributes(self, attributes: Attributes) -> Source<Attributed<B>> {
        Source(Attributed(self.0, attributes))
    }

    /// Makes the type nameable, at one indirect call per element. `Send`; neither `Clone` nor `Sync`: for that see
    /// [`shared`](Source::shared).
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// fn squares() -> BoxSource<u64> {
    ///     Source::from_iter(0..4u64).map(|x| x * x).boxed()
    /// }
    /// ```
    pub fn boxed(self) -> BoxSource<B::Out, B::Mat> {
        Source(BoxBlueprint::new(self.0))
    }

    /// As [`boxed`](Source::boxed), and `Clone` and `Sync`: a source to keep in a struct and run many times.
    pub fn shared(self) -> SharedSource<B::Out, B::Mat>
    where
        B: Clone + Sync,
    {
        Source(SharedBlueprint::new(self.0))
    }
}

impl<B: Blueprint> StreamOps for Source<B> {
    type Item = B::Out;
    type Mat = B::Mat;
    type Then<O: Operator<B::Out>, K: Keeps> = Source<Via<B, O, K>>;

    fn then_keep<O: Operator<B::Out>, K: Keeps>(self, operator: O, keep: K) -> Source<Via<B, O, K>> {
        Source(Via(self.0, operator, keep))
    }
}
