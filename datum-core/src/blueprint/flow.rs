//! Flows: descriptions with an open input and an open output.

use super::{
    Attributed, BoxFlow, BoxOperator, Chain, FlowTo, Identity, KeepRight, Keeps, MapMat, Operator, Sink,
    SinkBlueprint, StreamOps,
};
use crate::attributes::Attributes;
use std::fmt;
use std::marker::PhantomData;

/// A description of a part in the middle: stored, passed on, attached to as many streams as wanted.
///
/// ```
/// use datum_core::prelude::*;
/// let even_squares = Flow::<u64>::new().map(|x| x * x).filter(|x| x % 2 == 0);
/// let _a = Source::from_iter(0..10).via(even_squares.clone());
/// let _b = Source::from_iter(10..20).via(even_squares);
/// ```
#[must_use = "a flow does nothing until it is part of a stream that runs"]
pub struct Flow<In, O = Identity> {
    operator: O,
    input: PhantomData<fn(In)>,
}

impl<In: Send + 'static> Flow<In> {
    /// The flow that changes nothing; what begins a chain of operators.
    #[allow(clippy::new_without_default, reason = "a flow is begun, not defaulted")]
    pub fn new() -> Self {
        Flow::from_operator(Identity)
    }
}

impl<In: Send + 'static, O: Operator<In>> Flow<In, O> {
    /// Holds an operator.
    pub fn from_operator(operator: O) -> Self {
        Flow { operator, input: PhantomData }
    }

    /// The operator inside.
    pub fn into_operator(self) -> O {
        self.operator
    }

    /// Connects a sink: a sink that takes this flow's input. Keeps the sink's materialised value.
    pub fn to<S: SinkBlueprint<O::Out>>(self, sink: Sink<S>) -> Sink<FlowTo<O, S, KeepRight>> {
        self.to_keep(sink, KeepRight)
    }

    /// Connects a sink and says which materialised value to keep.
    pub fn to_keep<S: SinkBlueprint<O::Out>, K: Keeps>(
        self,
        sink: Sink<S>,
        keep: K,
    ) -> Sink<FlowTo<O, S, K>> {
        Sink::from_blueprint(FlowTo(self.operator, sink.into_blueprint(), keep))
    }

    /// Turns the materialised value into another.
    pub fn map_materialized<M, F>(self, f: F) -> Flow<In, MapMat<O, F>>
    where
        M: 'static,
        F: FnOnce(O::Mat) -> M + Send + 'static,
    {
        Flow::from_operator(MapMat(self.operator, f))
    }

    /// Gives attributes to everything so far.
    pub fn with_attributes(self, attributes: Attributes) -> Flow<In, Attributed<O>> {
        Flow::from_operator(Attributed(self.operator, attributes))
    }

    /// Makes the type nameable, at two indirect calls per element (one on each side). `Send`; neither `Clone` nor
    /// `Sync`.
    pub fn boxed(self) -> BoxFlow<In, O::Out, O::Mat> {
        Flow::from_operator(BoxOperator::new(self.operator))
    }
}

impl<In: Send + 'static, Op: Operator<In>> StreamOps for Flow<In, Op> {
    type Item = Op::Out;
    type Mat = Op::Mat;
    type Then<O: Operator<Op::Out>, K: Keeps> = Flow<In, Chain<Op, O, K>>;

    fn then_keep<O: Operator<Op::Out>, K: Keeps>(self, operator: O, keep: K) -> Flow<In, Chain<Op, O, K>> {
        Flow::from_operator(Chain(self.operator, operator, keep))
    }
}

impl<In, O: Clone> Clone for Flow<In, O> {
    fn clone(&self) -> Self {
        Flow { operator: self.operator.clone(), input: PhantomData }
    }
}

impl<In, O: fmt::Debug> fmt::Debug for Flow<In, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flow").field(&self.operator).finish()
    }
}
