//! Sinks, one concept per file. The constructors are functions of `Sink<Unset>`: `Sink::fold(..)`.
//!
//! A sink is a [`SinkLogic`] in a [`SinkRun`], which drives, closes the upstream, and only then lets the logic resolve
//! its materialised value: whoever waits for a completion finds all resources closed.

mod completion;
mod fold;
mod run;

pub use completion::{Completion, Promise};
pub use fold::{Collect, CollectLogic, Fold, FoldLogic};
pub use run::{SinkLogic, SinkRun, ended};
