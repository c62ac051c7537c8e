//! Hand-over between tasks: what the engine, and later its users, share across threads.
//!
//! - [`handover`]: the bounded single-producer single-consumer chunk hand-over behind async boundaries, substreams
//!   and graph edges.
//! - [`wake_set`]: one waker per child, a first-in first-out list of the woken ones, one parent to wake.
//!
//! This room knows nothing of stages: ends and cancellations are type parameters. Everything that synchronises goes
//! through [`sync`], so that the models in `tests/` check the very same code under `--cfg datum_loom`.

pub mod handover;
pub mod sync;
pub mod wake_set;
