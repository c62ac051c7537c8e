//! What a broker must do, as a client sees it on the wire. Every case runs against the embedded broker, and against a
//! real Apache Kafka when `DATUM_TEST_KAFKA` names one (`host:port`; with `DATUM_TEST_REQUIRE_KAFKA` it must). Where the
//! two differ, the real one is right.
//!
//! The client is this suite's own: messages of the `kafka-protocol` crate over a blocking socket, and record batches
//! written by hand, so that a fault in the project's own codec cannot hide on both sides.

mod batch;
mod client;
mod group;
mod log;
mod member;
mod produce;
mod target;
mod topics;
mod transaction;

/// Makes one test per case and broker.
macro_rules! cases {
    ($($case:ident)*) => {
        mod embedded {
            $(#[test] fn $case() { super::$case(&crate::target::Target::embedded()); })*
        }
        mod real {
            $(#[test] fn $case() {
                if let Some(target) = crate::target::Target::real() { super::$case(&target); }
            })*
        }
    };
}
pub(crate) use cases;
