//! What tests of streams need: an executor that shows lost wakes, the hand-turned clock, contract checks, probes.
//!
//! Development only. `datum-core`'s own tests that use it live in its `tests/` folder.

mod checked;
mod jitter;
mod rng;
mod test_runtime;

pub use checked::{Checked, CheckedOps, CheckedStage};
pub use jitter::{Jitter, JitterOps, JitterStage};
pub use rng::Rng;
pub use test_runtime::TestRuntime;
