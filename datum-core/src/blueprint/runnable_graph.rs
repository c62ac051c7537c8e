//! A stream with no open end, ready to run.

use super::{Attributed, MapMat};
use crate::attributes::Attributes;
use crate::error::StreamError;
use crate::materializer::Materializer;

/// A closed graph's description.
pub trait Closed: Send + 'static {
    /// Its materialised value.
    type Mat: 'static;

    /// Builds it and defers its islands.
    ///
    /// # Errors
    /// When it cannot be built.
    fn start(self, materializer: &Materializer) -> Result<Self::Mat, StreamError>;
}

/// A source connected to a sink. Nothing runs before [`run`](RunnableGraph::run).
///
/// Clone it to run it several times; the runs share no state.
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `run`"]
pub struct RunnableGraph<C>(C);

impl<C: Closed> RunnableGraph<C> {
    /// Holds a closed description.
    pub fn from_closed(closed: C) -> Self {
        RunnableGraph(closed)
    }

    /// Starts it on the tokio runtime that the caller is in and gives its materialised value.
    ///
    /// # Errors
    /// When it cannot be built, or outside of a runtime. Nothing has started then.
    pub fn run(self) -> Result<C::Mat, StreamError> {
        self.run_on(&Materializer::current()?)
    }

    /// Starts it on a given materializer.
    ///
    /// # Errors
    /// When it cannot be built, or the materializer was shut down. Nothing has started then.
    pub fn run_on(self, materializer: &Materializer) -> Result<C::Mat, StreamError> {
        materializer.scope(|fresh| self.0.start(fresh))
    }

    /// Turns the materialised value into another.
    pub fn map_materialized<M, F>(self, f: F) -> RunnableGraph<MapMat<C, F>>
    where
        M: 'static,
        F: FnOnce(C::Mat) -> M + Send + 'static,
    {
        RunnableGraph(MapMat(self.0, f))
    }

    /// Gives attributes to everything inside.
    pub fn with_attributes(self, attributes: Attributes) -> RunnableGraph<Attributed<C>> {
        RunnableGraph(Attributed(self.0, attributes))
    }
}
