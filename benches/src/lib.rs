//! Benchmarks of datum, on its public API only.
