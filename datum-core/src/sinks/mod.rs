//! Sinks, one concept per file. The constructors are functions of `Sink<Unset>`: `Sink::fold(..)`.
//!
//! A sink is a [`SinkLogic`] in a [`SinkRun`], which drives, closes the upstream, and only then lets the logic resolve
//! its materialised value: whoever waits for a completion finds all resources closed.

mod cancelled;
mod collect;
mod completion;
mod fold;
mod foreach;
mod foreach_async;
mod head;
mod ignore;
mod last;
mod queue;
mod run;

pub use cancelled::{Cancelled, CancelledLogic};
pub use collect::{Collect, CollectLogic};
pub use completion::{Completion, Promise};
pub use fold::{Fold, FoldLogic};
pub use foreach::{Foreach, ForeachLogic};
pub use foreach_async::{ForeachAsync, ForeachAsyncLogic};
pub use head::{Head, HeadLogic, HeadOption};
pub use ignore::{Ignore, IgnoreLogic};
pub use last::{Last, LastLogic, LastOption};
pub use queue::{QueueLogic, QueueSink, SinkQueue};
pub use run::{SinkLogic, SinkRun, ended};
