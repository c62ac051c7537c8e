//! What a user of streams names: `use datum_core::prelude::*;`.

pub use crate::attributes::Attributes;
pub use crate::blueprint::{
    Blueprint, BoxFlow, BoxSink, BoxSource, Closed, Flow, Keep, Operator, RunnableGraph, SharedSource, Sink,
    SinkBlueprint, Source, StreamOps,
};
pub use crate::error::{ErrorKind, StreamError};
pub use crate::materializer::Materializer;
pub use crate::ops::traits::*;
pub use crate::ops::{KillSwitch, OverflowStrategy, Rate};
pub use crate::sinks::{Completion, SinkQueue};
pub use crate::sources::QueueHandle;
pub use crate::stage::{Directive, Supervision};
