//! A job that can read its records: filter, map, and then the key.

use std::borrow::Cow;
use std::marker::PhantomData;

use datum_kafka::ConsumerSettings;

use super::keyed::KeyedJob;
use super::{FilterRecords, GroupKey, MapRecords, OwnedRecords, ReadRecord};

/// A job whose records are decoded. Records stay at their place: each verb makes at most one value of one record.
#[derive(Clone, Debug)]
#[must_use = "a job does nothing until it is run"]
pub struct DecodedJob<R> {
    pub(super) input: ConsumerSettings,
    pub(super) reader: R,
}

impl<R: ReadRecord> DecodedJob<R> {
    /// Keeps the records for which `wanted` is true. The others still move their partition's watermark.
    pub fn filter<F>(self, wanted: F) -> DecodedJob<FilterRecords<R, F>>
    where
        F: for<'a> FnMut(&R::Value<'a>) -> bool + Send + 'static,
    {
        DecodedJob { input: self.input, reader: FilterRecords::new(self.reader, wanted) }
    }

    /// Makes another value of each. The new value owns what it holds, so this is where a value that borrows from its
    /// record becomes one that can be aggregated.
    pub fn map<V, F>(self, make: F) -> DecodedJob<MapRecords<R, F, V>>
    where
        F: for<'a> FnMut(R::Value<'a>) -> V + Send + 'static,
        V: 'static,
    {
        DecodedJob { input: self.input, reader: MapRecords::new(self.reader, make) }
    }
}

impl<R: OwnedRecords> DecodedJob<R> {
    /// Groups records by what `key` lends of them: `|m| m.region.as_str()`, `|m| &m.device`. Nothing is copied: the
    /// first record of a key in a window makes the pane's own copy.
    ///
    /// A key that has to be computed is a field of a value made by [`map`](DecodedJob::map).
    pub fn key_by<Q, F>(self, key: F) -> KeyedJob<R, F, Q>
    where
        Q: GroupKey + ?Sized + 'static,
        F: Fn(&R::Owned) -> &Q + Send + 'static,
    {
        KeyedJob {
            input: self.input,
            reader: self.reader,
            key,
            name: Cow::Borrowed("key"),
            lends: PhantomData,
        }
    }
}
