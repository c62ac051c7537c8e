//! What leaves the machine at once: output, and the offsets that go with it.

use datum_window::{Millis, RecordPosition, Watermark, Window};

use crate::stored::Stored;

/// Why a transaction begins now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The resolved start offsets, before the first record.
    Start,
    /// Windows have closed.
    Close,
    /// Late, dead-letter and ahead records have reached their bound.
    Sides,
    /// Progress has waited for the commit interval.
    Interval,
    /// The job stops.
    Stop,
}

/// Why a record leaves beside the panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideKind {
    /// Its window had closed for it.
    Late(Window),
    /// It could not be decoded.
    Undecodable,
    /// Its event time lies too far ahead of the clock.
    Ahead,
}

/// A record that leaves beside the panes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side<R> {
    /// Why.
    pub kind: SideKind,
    /// Where it stands in the input.
    pub at: RecordPosition,
    /// The record, in whatever form the caller routes.
    pub record: R,
}

/// A published window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed<C> {
    /// The window.
    pub window: Window,
    /// Its panes.
    pub panes: C,
    /// When it closed.
    pub at: Millis,
    /// Whether it was published before its time, by a flush.
    pub flushed: bool,
    /// The partitions that were out of the minimum when it closed: what they still send for it is late.
    pub without: Vec<Without>,
}

/// A partition that did not hold a window open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Without {
    /// The partition.
    pub partition: u32,
    /// The log's end that its last fetch answer showed; records from there on may be late for no fault of their own.
    pub high_watermark: i64,
}

/// Output and offsets that become visible together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut<C, R> {
    /// Why now.
    pub reason: Reason,
    /// The windows that closed, by end.
    pub closed: Vec<Closed<C>>,
    /// Late, dead-letter and ahead records, in the order they were met.
    pub sides: Vec<Side<R>>,
    /// The partitions whose stored state changed; at least one.
    pub offsets: Vec<(u32, Stored)>,
    /// E after this cut.
    pub published: Watermark,
    /// When it was made.
    pub at: Millis,
}

impl<C, R> Cut<C, R> {
    /// Whether it has output besides offsets.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        !self.closed.is_empty() || !self.sides.is_empty()
    }
}
