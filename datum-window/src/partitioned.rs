//! Partial panes per partition, merged when their window closes.

use std::marker::PhantomData;

use crate::pane::Table;
use crate::{Aggregate, Key, KeyRef, Pane, Panes, Window};

/// The open panes of several partitions under one aggregate.
///
/// Each partition has accumulators of its own. [`close`](PartitionedPanes::close) merges them in the order of the
/// partition numbers, so that a pane depends on the partitions' contents and never on how they were interleaved.
pub struct PartitionedPanes<K, In: ?Sized, A: Aggregate<In>> {
    aggregate: A,
    partitions: Vec<(u32, Panes<K, A::Acc>)>,
    recent: usize,
    input: PhantomData<fn(&In)>,
}

impl<K: Key, In: ?Sized, A: Aggregate<In>> PartitionedPanes<K, In, A> {
    /// No panes yet. Partitions are met as their first record comes.
    #[must_use]
    pub const fn new(aggregate: A) -> Self {
        Self { aggregate, partitions: Vec::new(), recent: 0, input: PhantomData }
    }

    /// Adds `input` to the pane of `key` in `window`.
    #[inline]
    pub fn add<Q: KeyRef<K> + ?Sized>(&mut self, partition: u32, window: Window, key: &Q, input: &In) {
        if self.partitions.get(self.recent).is_none_or(|(p, _)| *p != partition) {
            self.find_or_add(partition);
        }
        let aggregate = &self.aggregate;
        let panes = &mut self.partitions[self.recent].1;
        panes.update(window, key, || aggregate.init(), |acc| aggregate.add(acc, input));
    }

    #[cold]
    fn find_or_add(&mut self, partition: u32) {
        let at = self.partitions.partition_point(|(p, _)| *p < partition);
        if self.partitions.get(at).is_none_or(|(p, _)| *p != partition) {
            self.partitions.insert(at, (partition, Panes::new()));
        }
        self.recent = at;
    }

    /// Takes `window` out of all partitions, merges what they hold and finishes it; ordered by key.
    pub fn close(&mut self, window: Window) -> Vec<Pane<K, A::Out>> {
        let mut merged: Option<Table<K, A::Acc>> = None;
        for (_, panes) in &mut self.partitions {
            let Some(table) = panes.take_table(window) else { continue };
            match &mut merged {
                None => merged = Some(table),
                Some(all) => merge(&self.aggregate, all, table),
            }
        }
        let mut accs: Vec<(K, A::Acc)> = merged.into_iter().flatten().collect();
        accs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        accs.into_iter().map(|(key, acc)| Pane { window, key, value: self.aggregate.finish(&acc) }).collect()
    }

    /// Forgets everything held.
    pub fn clear(&mut self) {
        self.partitions.clear();
        self.recent = 0;
    }

    /// The aggregate.
    pub const fn aggregate(&self) -> &A {
        &self.aggregate
    }

    /// How many accumulators are held, over all partitions and windows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.partitions.iter().map(|(_, panes)| panes.len()).sum()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partitions.iter().all(|(_, panes)| panes.is_empty())
    }
}

fn merge<K: Key, In: ?Sized, A: Aggregate<In>>(
    aggregate: &A,
    all: &mut Table<K, A::Acc>,
    more: Table<K, A::Acc>,
) {
    for (key, acc) in more {
        if let Some(held) = all.get_mut(&key) {
            aggregate.merge(held, &acc);
        } else {
            all.insert(key, acc);
        }
    }
}
