//! The index of aborted transactions, which a reader of committed records needs.

use crate::log::producer::Ended;

/// A transaction that an abort marker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub producer_id: i64,
    pub first_offset: i64,
    /// Offset of its marker.
    pub last_offset: i64,
}

/// All of one partition, in the order of their markers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbortedIndex {
    entries: Vec<Aborted>,
}

impl AbortedIndex {
    pub(crate) fn push(&mut self, ended: Ended, marker: i64) {
        self.entries.push(Aborted {
            producer_id: ended.producer_id,
            first_offset: ended.first_offset,
            last_offset: marker,
        });
    }

    /// Those that touch the offsets from `from` up to, not including, `until`, by first offset.
    pub(crate) fn between(&self, from: i64, until: i64) -> Vec<Aborted> {
        let skip = self.entries.partition_point(|aborted| aborted.last_offset < from);
        let mut found: Vec<_> =
            self.entries[skip..].iter().copied().filter(|aborted| aborted.first_offset < until).collect();
        found.sort_unstable_by_key(|aborted| aborted.first_offset);
        found
    }

    /// Forgets those whose marker lies at `end` or beyond.
    pub(crate) fn forget_from(&mut self, end: i64) {
        self.entries.retain(|aborted| aborted.last_offset < end);
    }

    /// Forgets those that lie wholly below `start`.
    pub(crate) fn trim(&mut self, start: i64) {
        let keep = self.entries.partition_point(|aborted| aborted.last_offset < start);
        self.entries.drain(..keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_touches_the_range_is_told() {
        let mut index = AbortedIndex::default();
        index.push(Ended { producer_id: 1, first_offset: 5 }, 10);
        index.push(Ended { producer_id: 2, first_offset: 2 }, 20);
        index.push(Ended { producer_id: 3, first_offset: 30 }, 40);
        let ids = |from, until| index.between(from, until).iter().map(|a| a.producer_id).collect::<Vec<_>>();
        assert_eq!(ids(0, 25), [2, 1], "by first offset");
        assert_eq!(ids(11, 25), [2]);
        assert_eq!(ids(21, 30), [] as [i64; 0]);
        assert_eq!(ids(40, 41), [3]);
    }
}
