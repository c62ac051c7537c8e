//! What became of records, one by one and in number.

/// What the machine did with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in its window.
    Accepted,
    /// Not wanted; it moved its partition's watermark.
    Filtered,
    /// Its window had closed for it.
    Late,
    /// It could not be decoded.
    Undecodable,
    /// Its event time lies too far ahead; it moved no watermark.
    Ahead,
    /// It lies at or past the end set by [`Machine::stop_at_end`](super::Machine::stop_at_end): not looked at.
    PastEnd,
}

/// How many records met each fate since the start. What a replay reads again is not counted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// In their windows.
    pub accepted: u64,
    /// Not wanted.
    pub filtered: u64,
    /// Late.
    pub late: u64,
    /// Could not be decoded.
    pub undecodable: u64,
    /// Too far ahead.
    pub ahead: u64,
    /// Read again after the start.
    pub replayed: u64,
}

impl Counters {
    /// How many records were read, each once.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.accepted + self.filtered + self.late + self.undecodable + self.ahead
    }

    /// Adds what another machine has counted.
    pub fn add(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.filtered += other.filtered;
        self.late += other.late;
        self.undecodable += other.undecodable;
        self.ahead += other.ahead;
        self.replayed += other.replayed;
    }
}
