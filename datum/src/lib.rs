//! Typed stream processing: sources, flows and sinks, Kafka, event-time windows, exactly once.
