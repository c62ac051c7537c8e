//! An embedded broker: Kafka's protocol in memory, for tests and the zero-install default.
