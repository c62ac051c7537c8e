//! Sinks: descriptions with one open input.

use super::{Attributed, BoxSink, BoxSinkBlueprint, MapMat, SinkBlueprint};
use crate::attributes::Attributes;

/// A description of where elements go. The constructors are in [`crate::sinks`].
#[derive(Clone, Debug)]
#[must_use = "a sink does nothing until a source runs into it"]
pub struct Sink<S>(S);

impl<S> Sink<S> {
    /// Holds a sink blueprint: how constructors and connectors make sinks.
    pub fn from_blueprint(blueprint: S) -> Self {
        Sink(blueprint)
    }

    /// The blueprint inside.
    pub fn into_blueprint(self) -> S {
        self.0
    }

    /// Turns the materialised value into another.
    pub fn map_materialized<F>(self, f: F) -> Sink<MapMat<S, F>> {
        Sink(MapMat(self.0, f))
    }

    /// Gives attributes to everything inside.
    pub fn with_attributes(self, attributes: Attributes) -> Sink<Attributed<S>> {
        Sink(Attributed(self.0, attributes))
    }

    /// Makes the type nameable, at one indirect call per element. `Send`; neither `Clone` nor `Sync`.
    pub fn boxed<In: Send + 'static>(self) -> BoxSink<In, S::Mat>
    where
        S: SinkBlueprint<In>,
    {
        Sink(BoxSinkBlueprint::new(self.0))
    }
}
