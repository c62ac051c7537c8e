//! The shapes a decoder knows.
//!
//! A stream often mixes a few forms of records: with and without an optional key, or from two producers. So several
//! shapes are kept, and each remembers which one followed it last, which is tried first; thus both long runs and
//! alternation are foreseen. When all places are taken, a new shape replaces the one longest unused, but only
//! once in a while, since a stream with more forms than places would otherwise do nothing but learn. Where nothing
//! has fitted for long, most records are not even compared.

use super::PathsTaken;
use super::parse::Form;
use super::plan::Plan;
use super::shape::{Shape, Way};
use crate::projected::{Field, Slot, Unescaped};

#[derive(Clone, Debug)]
pub(super) struct ShapeCache {
    entries: Vec<Entry>,
    way: Way,
    /// The entry that the previous record fitted.
    previous: usize,
    /// Records since one was read by shape.
    misses_in_a_row: u64,
    taken: PathsTaken,
}

#[derive(Clone, Debug)]
struct Entry {
    shape: Shape,
    /// The entry that was right when this one had been right before.
    successor: usize,
    /// The number of records read by shape when this one last was.
    last_used: u64,
}

impl ShapeCache {
    /// An empty one, whose shapes are read in this way.
    pub(super) const fn new(way: Way) -> Self {
        let taken = PathsTaken { by_shape: 0, in_full: 0 };
        Self { entries: Vec::new(), way, previous: 0, misses_in_a_row: 0, taken }
    }

    /// Fills the slots and says so, if the record fits a known shape.
    #[inline]
    pub(super) fn read(
        &mut self,
        input: &[u8],
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> bool {
        if let Some(entry) = self.entries.get(self.previous) {
            let foreseen = entry.successor;
            if self.entries[foreseen].shape.read(&mut self.way, input, fields, slots, unescaped) {
                self.hit(foreseen);
                return true;
            }
            if self.read_unforeseen(foreseen, input, fields, slots, unescaped) {
                return true;
            }
        }
        self.misses_in_a_row += 1;
        self.taken.in_full += 1;
        false
    }

    #[cold]
    fn read_unforeseen(
        &mut self,
        foreseen: usize,
        input: &[u8],
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> bool {
        if self.misses_in_a_row > PATIENCE && !self.misses_in_a_row.is_multiple_of(RETRY_EVERY) {
            return false;
        }
        for index in (0..self.entries.len()).filter(|index| *index != foreseen) {
            unescaped.clear();
            if self.entries[index].shape.read(&mut self.way, input, fields, slots, unescaped) {
                self.hit(index);
                return true;
            }
        }
        false
    }

    #[inline]
    fn hit(&mut self, index: usize) {
        self.misses_in_a_row = 0;
        self.taken.by_shape += 1;
        let entry = &mut self.entries[index];
        entry.last_used = self.taken.by_shape;
        self.follow(index);
    }

    #[inline]
    fn follow(&mut self, index: usize) {
        self.entries[self.previous].successor = index;
        self.previous = index;
    }

    /// Remembers the shape of a record that fitted none.
    #[cold]
    pub(super) fn learn(&mut self, input: &[u8], plan: &Plan, form: &Form) {
        let full = self.entries.len() == CAPACITY;
        if full && !self.taken.in_full.is_multiple_of(LEARN_EVERY) {
            return;
        }
        let Some(shape) = Shape::of(input, plan, form) else { return };
        let index = if full { self.longest_unused() } else { self.entries.len() };
        let entry = Entry { shape, successor: index, last_used: self.taken.by_shape };
        if full {
            self.entries[index] = entry;
        } else {
            self.entries.push(entry);
        }
        self.follow(index);
    }

    fn longest_unused(&self) -> usize {
        let by_use = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.last_used);
        by_use.map_or(0, |(index, _)| index)
    }

    pub(super) const fn paths_taken(&self) -> PathsTaken {
        self.taken
    }
}

/// How many shapes are kept.
const CAPACITY: usize = 8;

/// When full, every how many misses one is learnt.
const LEARN_EVERY: u64 = 16;

/// After how many misses in a row only the foreseen shape is tried ...
const PATIENCE: u64 = 64;

/// ... except that one record in so many is compared with all.
const RETRY_EVERY: u64 = 8;
