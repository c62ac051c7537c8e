//! Probes, the hand-turned clock and a woken-tasks-only executor, for testing streams.
