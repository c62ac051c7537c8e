//! A fault while it travels up inside the decoder, before the field it belongs to is known.

use crate::error::{DecodeError, DecodeReason};

/// What was wrong, and at which byte of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    reason: DecodeReason,
    offset: usize,
}

impl Fault {
    #[cold]
    pub(super) const fn new(reason: DecodeReason, offset: usize) -> Self {
        Self { reason, offset }
    }

    /// The record ends too early.
    #[cold]
    pub(super) const fn end(input: &[u8]) -> Self {
        Self::new(DecodeReason::UnexpectedEnd, input.len())
    }

    /// What the caller sees.
    #[cold]
    pub(super) const fn in_field(self, path: Option<&'static str>) -> DecodeError {
        DecodeError::new(self.reason, self.offset, path)
    }
}
