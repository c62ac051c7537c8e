//! Where a record stands in its input.
//!
//! The position travels beside each record from the source to the window: lateness is a property of a record's own
//! partition, and what a commit may forget is counted in its offsets. An operator that would lose or reorder it has
//! no place on that way.

use crate::Millis;

/// Partition, offset and event time of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordPosition {
    /// Which ordered part of the input it came from; 0 where there is only one.
    pub partition: u32,
    /// Its place there. Grows from record to record, with gaps.
    pub offset: i64,
    /// Its event time in milliseconds.
    pub timestamp: Millis,
}

impl RecordPosition {
    /// A position from its three parts.
    #[must_use]
    pub const fn new(partition: u32, offset: i64, timestamp: Millis) -> Self {
        Self { partition, offset, timestamp }
    }
}
