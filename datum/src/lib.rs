//! Typed stream processing: sources, flows and sinks, Kafka, event-time windows, exactly once.

#[cfg(feature = "codec")]
pub use datum_codec as codec;
#[cfg(feature = "window")]
pub use datum_window as window;
