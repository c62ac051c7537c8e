//! The stream engine: sources, flows and sinks as values, and the fused stages they become.
//!
//! # The shape of it
//! - A [`Source`], a [`Flow`] and a [`Sink`] are *blueprints*: values that describe. Nothing runs until one of the
//!   `run` methods, and a cloned blueprint shares no state with its original.
//! - Running a blueprint *materialises* it: every operator becomes a [`Stage`](stage::Stage), and the stages of a
//!   straight line are one monomorphic loop, fused by the compiler as with [`Iterator`]. The loop is driven from the
//!   sink, so demand is a function call and nothing upstream runs ahead of it.
//! - What is driven together is an *island*: one task. [`async_boundary`](ops::AsyncBoundaryOps::async_boundary) cuts
//!   a line in two islands with a bounded hand-over between them.
//! - Parts can have *materialised values* (a queue's handle, a kill switch, the future of a fold);
//!   [`Keep`] says which of two survives a composition.
//! - A [`Materializer`] is where it runs: the runtime, the clock, the attributes, and the two ways to stop.
//!
//! # Where to look
//! [`sources`], [`ops`] and [`sinks`] hold one operator per file, each with its four lines (emits, backpressures,
//! completes, cancels). [`stage`] is the contract for those who write operators of their own.
//!
//! ```
//! use datum_core::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StreamError> {
//! let sum = Source::from_iter(1..=10u64)
//!     .map(|x| x * x)
//!     .filter(|x| x % 2 == 0)
//!     .run_with(Sink::fold(0, |sum, x| sum + x))?
//!     .await?;
//! assert_eq!(sum, 220);
//! # Ok(())
//! # }
//! ```

pub mod attributes;
pub mod blueprint;
pub mod clock;
pub mod error;
pub mod handover;
pub mod materializer;
pub mod ops;
pub mod prelude;
pub mod sinks;
pub mod sources;
pub mod stage;

pub use blueprint::{Flow, Keep, RunnableGraph, Sink, Source};
pub use error::{ErrorKind, StreamError};
pub use materializer::Materializer;
