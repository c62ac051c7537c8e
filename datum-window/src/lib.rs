//! Event time, watermarks, keyed windows and aggregates.
