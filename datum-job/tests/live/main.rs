//! The job over brokers: the embedded one always, a real Kafka where one is given.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "modules of one test program")]

mod chain;
mod exactly_once;
mod support;
