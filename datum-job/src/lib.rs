//! A keyed, windowed job on Kafka whose panes are published exactly once.
//!
//! # How it works
//! Input offsets, output and what a restart needs become visible in one Kafka transaction. Panes live in memory; what is
//! committed is what it takes to rebuild the open ones from the input: per partition the lowest offset an open window
//! still needs, the own watermark just before it, the next unprocessed offset, and up to which close time windows have
//! been published. So the cost of a commit does not grow with the state.
//!
//! # What the answer is
//! A record belongs to its window unless an earlier record of the *same partition* had already reached the window's end
//! plus grace; panes are the aggregates of such committed records, whatever the interleaving, the restarts or the number
//! of instances. Three decisions of the clock are not in the data: a partition idle or not yet discovered when a window
//! was published, a record too far ahead when first read, and a flush at the end. Each is made once, committed with the
//! output and repeated by every replay: exactly once always holds, but another run might have decided otherwise.
//!
//! # Parts
//! - [`machine`]: records and fetch answers in, cuts (output and the offsets that go with it) out. Pure: no broker, no
//!   clock of its own.
//! - [`stored`]: what is committed beside an offset, and its text form.
//! - [`restore`]: from committed offsets and log bounds to a start, or to a refusal that says why.
//! - [`protocol`]: ownership, fencing and the transaction, as a machine that asks for requests and is told the answers.
//!
//! - [`run`]: the same over a real cluster.
//!
//! Time is passed into the machines, in milliseconds since the epoch, so that all of them run in virtual time under test.

pub mod chain;
pub mod machine;
pub mod protocol;
pub mod restore;
pub mod run;
pub mod stored;

mod settings;

pub use chain::{JobRun, KafkaJobs, KafkaPaneSinks};
pub use machine::{Content, Cut, Fate, Machine, Payload, Reason, Side, SideKind};
pub use run::{JobError, JobLogic, JobObserver, JobPoint, JobReport, RunSettings, WindowJob};
pub use settings::{JobSettings, Mode, SettingsError};
