//! What tests of streams need: an executor that shows lost wakes, the hand-turned clock, contract checks, probes.
//!
//! Development only. `datum-core`'s own tests that use it live in its `tests/` folder.

mod checked;
mod jitter;
mod lingering;
mod pause;
mod rng;
mod sink_probe;
mod source_probe;
mod test_runtime;

pub use checked::{Checked, CheckedOps, CheckedStage};
pub use jitter::{Jitter, JitterOps, JitterStage};
pub use lingering::{LingerLog, Lingering, LingeringStage, lingering};
pub use pause::{pause, sleep};
pub use rng::Rng;
pub use sink_probe::{ProbeRun, ProbeSink, SinkProbe, sink_probe};
pub use source_probe::{Probe, ProbeStage, SourceProbe, source_probe};
pub use test_runtime::TestRuntime;
