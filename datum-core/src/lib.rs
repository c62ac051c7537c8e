//! The stream engine of datum: sources, flows, sinks and the stages they become.
