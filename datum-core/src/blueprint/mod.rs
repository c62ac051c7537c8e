//! Descriptions of streams, and how they compose.
//!
//! Three traits say what a description can become: a [`Blueprint`] a stage, an [`Operator`] a stage over an upstream,
//! a [`SinkBlueprint`] something that runs an upstream. [`Source`], [`Flow`] and [`Sink`] hold one each. Operators are
//! written once, against [`StreamOps`], which `Source` and `Flow` both implement.
//!
//! # Returning a pipeline from a function
//! Either name the operators (`-> Source<impl Blueprint<Out = u64, Mat = ()>>`), which keeps the loop fused, or
//! [`boxed`](Source::boxed) it (`-> BoxSource<u64>`), which costs one indirect call per element and makes the type
//! nameable. Box a chain every forty operators or so: a type of sixty nested operators takes seconds to compile.

mod attributed;
mod boxed;
mod compose;
mod flow;
mod keep;
mod map_mat;
mod runnable_graph;
mod shared;
mod sink;
mod source;
mod stream_ops;

pub use attributed::Attributed;
pub use boxed::{BoxBlueprint, BoxFlow, BoxOperator, BoxRun, BoxSink, BoxSinkBlueprint, BoxSource, BoxStage};
pub use compose::{Chain, FlowTo, Identity, SourceTo, Via};
pub use flow::Flow;
pub use keep::{Keep, KeepBoth, KeepLeft, KeepNone, KeepRight, Keeps};
pub use map_mat::MapMat;
pub use runnable_graph::{Closed, RunnableGraph};
pub use shared::{SharedBlueprint, SharedSource};
pub use sink::Sink;
pub use source::{Source, Unset};
pub use stream_ops::StreamOps;

use crate::error::StreamError;
use crate::materializer::{Materializer, Runnable};
use crate::stage::Stage;

/// What a build gives: the running part and its materialised value.
///
/// # Errors
/// Why it could not be built. Nothing has started then.
pub type Built<S, M> = Result<(S, M), StreamError>;

/// A source's description.
pub trait Blueprint: Send + 'static {
    /// Its elements.
    type Out: Send + 'static;
    /// Its materialised value.
    type Mat: 'static;
    /// What it becomes.
    type Stage: Stage<Out = Self::Out>;

    /// Builds it.
    ///
    /// # Errors
    /// When it cannot be built.
    fn build(self, materializer: &Materializer) -> Built<Self::Stage, Self::Mat>;
}

/// An operator's description: what it becomes over an upstream.
pub trait Operator<In: Send + 'static>: Send + 'static {
    /// Its elements.
    type Out: Send + 'static;
    /// Its materialised value.
    type Mat: 'static;
    /// What it becomes over an upstream `U`.
    type Stage<U: Stage<Out = In>>: Stage<Out = Self::Out>;

    /// Builds it over `up`.
    ///
    /// # Errors
    /// When it cannot be built.
    fn attach<U: Stage<Out = In>>(
        self,
        up: U,
        materializer: &Materializer,
    ) -> Built<Self::Stage<U>, Self::Mat>;
}

/// A sink's description.
pub trait SinkBlueprint<In: Send + 'static>: Send + 'static {
    /// Its materialised value.
    type Mat: 'static;
    /// What it becomes over an upstream `U`.
    type Run<U: Stage<Out = In>>: Runnable;

    /// Builds it over `up`.
    ///
    /// # Errors
    /// When it cannot be built.
    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer)
    -> Built<Self::Run<U>, Self::Mat>;
}
