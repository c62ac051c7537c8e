//! The job over brokers: the embedded one always, a real Kafka where one is given.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a failing test has to show its seed")]
#![allow(unreachable_pub, reason = "modules of one test program")]

mod aside;
mod chain;
mod chaos;
mod exactly_once;
mod foreign;
mod growth;
mod members;
mod oracle;
mod paused;
mod points;
mod refusals;
mod support;
