//! A job that can read its records: filter, map, and then the key.

use datum_kafka::ConsumerSettings;

use super::keyed::KeyedJob;
use super::{FilterRecords, GroupKey, KeyAndValue, KeyOf, MapRecords, OwnedRecords, ReadRecord};

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

    /// Takes each record apart: into the key to group by, which the record lends, and the value to aggregate, which owns what it holds. Nothing of the
    /// key is copied but for the first record of it in a window, so this is the quickest way for keys that are text.
    ///
    /// ```
    /// use datum_codec::{Json, Projected};
    /// use datum_core::prelude::*;
    /// use datum_job::chain::KafkaJobs;
    /// use datum_kafka::ConsumerSettings;
    ///
    /// #[derive(Projected)]
    /// struct Metric<'a> {
    ///     region: &'a str,
    ///     latency_ms: f64,
    /// }
    ///
    /// let input = ConsumerSettings::new("localhost:9092").group("slo").topic("requests");
    /// let keyed = Source::kafka_job(input)
    ///     .decode(Json::<Metric<'_>>::projected())
    ///     .key_and_value(|m: &Metric<'_>| (m.region, m.latency_ms));
    /// ```
    pub fn key_and_value<Q, V, F>(self, split: F) -> KeyedJob<KeyAndValue<R, F, Q, V>>
    where
        Q: GroupKey + ?Sized + 'static,
        V: Send + 'static,
        F: for<'a, 'b> Fn(&'a R::Value<'b>) -> (&'a Q, V) + Send + 'static,
    {
        KeyedJob::new(self.input, KeyAndValue::new(self.reader, split))
    }
}

impl<R: OwnedRecords> DecodedJob<R> {
    /// Groups records by what `key` lends of them: `|m| m.region.as_str()`, `|m| &m.device`. Nothing is copied: the
    /// first record of a key in a window makes the pane's own copy.
    ///
    /// A key that has to be computed is a field of a value made by [`map`](DecodedJob::map).
    pub fn key_by<Q, F>(self, key: F) -> KeyedJob<KeyOf<R, F, Q>>
    where
        Q: GroupKey + ?Sized + 'static,
        F: Fn(&R::Owned) -> &Q + Send + 'static,
    {
        KeyedJob::new(self.input, KeyOf::new(self.reader, key))
    }
}
