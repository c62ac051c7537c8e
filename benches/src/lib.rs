//! Benchmarks of datum, on its public API only.

pub mod engine;
