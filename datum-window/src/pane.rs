//! Open accumulators of one partition, by window and key.
//!
//! Windows are few (one or two are open at a time for orderly input), keys may be many: so windows sit in a short
//! sorted list whose last used entry is looked at first, and each window has a hash table of its own, which dies with
//! the window. Hashing is seeded per process, so keys chosen by a stranger cannot be made to collide.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::{Key, KeyRef, Millis, Window};

/// A published pane: what one key's records in one window came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Pane<K, O> {
    /// The window.
    pub window: Window,
    /// The key.
    pub key: K,
    /// The finished aggregate.
    pub value: O,
}

impl<K, O> Pane<K, O> {
    /// The event time a pane is published with: its window's last millisecond.
    pub const fn timestamp(&self) -> Millis {
        self.window.last()
    }
}

pub(crate) type Table<K, Acc> = HashMap<K, Acc, RandomState>;

/// The open windows of one partition and the accumulators in them.
///
/// It knows nothing of lateness: whoever calls [`update`](Panes::update) has decided that the record belongs there.
#[derive(Clone, Debug)]
pub struct Panes<K, Acc> {
    open: Vec<(Window, Table<K, Acc>)>,
    recent: usize,
}

impl<K, Acc> Default for Panes<K, Acc> {
    fn default() -> Self {
        Self { open: Vec::new(), recent: 0 }
    }
}

impl<K: Key, Acc> Panes<K, Acc> {
    /// No windows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the accumulator of `key` in `window` to `update`, made by `init` if it is the first record there.
    #[inline]
    pub fn update<Q: KeyRef<K> + ?Sized>(
        &mut self,
        window: Window,
        key: &Q,
        init: impl FnOnce() -> Acc,
        update: impl FnOnce(&mut Acc),
    ) {
        if self.open.get(self.recent).is_none_or(|(w, _)| *w != window) {
            self.find_or_open(window);
        }
        let table = &mut self.open[self.recent].1;
        if let Some(acc) = table.get_mut(key) {
            update(acc);
        } else {
            let mut acc = init();
            update(&mut acc);
            table.insert(key.to_key(), acc);
        }
    }

    #[cold]
    fn find_or_open(&mut self, window: Window) {
        let at = self.open.partition_point(|(w, _)| *w < window);
        if self.open.get(at).is_none_or(|(w, _)| *w != window) {
            // A window usually sees the keys of the one before it.
            let keys = self.open.last().map_or(0, |(_, table)| table.len());
            self.open.insert(at, (window, Table::with_capacity_and_hasher(keys, RandomState::default())));
        }
        self.recent = at;
    }

    /// Takes all accumulators of `window` out, in no order; nothing if it is not open.
    pub fn take(&mut self, window: Window) -> impl Iterator<Item = (K, Acc)> + use<K, Acc> {
        self.take_table(window).into_iter().flatten()
    }

    pub(crate) fn take_table(&mut self, window: Window) -> Option<Table<K, Acc>> {
        let at = self.open.binary_search_by(|(w, _)| w.cmp(&window)).ok()?;
        self.recent = 0;
        Some(self.open.remove(at).1)
    }

    /// The open windows, earliest first.
    pub fn windows(&self) -> impl Iterator<Item = Window> {
        self.open.iter().map(|(w, _)| *w)
    }

    /// How many accumulators are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.iter().map(|(_, table)| table.len()).sum()
    }

    /// Whether no window is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
