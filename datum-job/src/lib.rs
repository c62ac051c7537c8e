//! A keyed job on Kafka, exactly once.
