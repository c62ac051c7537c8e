//! The protocol's error codes, as outcomes.

pub(crate) use datum_kafka::wire::ErrorCode as Code;

/// The number that stands for an outcome on the wire; 0 is success.
pub(crate) fn number<T>(outcome: &Result<T, Code>) -> i16 {
    outcome.as_ref().err().map_or(0, |code| code.code())
}
