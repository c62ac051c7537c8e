//! How the bytes of a record become its group key and what is aggregated.

use std::marker::PhantomData;

use super::{GroupKey, OwnedRecords, ReadRecord, Undecodable};

/// Reads one record at a time and lends its key and its value. Made by [`key_by`](super::DecodedJob::key_by) and
/// [`key_and_value`](super::DecodedJob::key_and_value).
pub trait KeyedRecords: Send + 'static {
    /// The form in which the key is lent.
    type Key: GroupKey + ?Sized + 'static;
    /// What is aggregated.
    type Value: Send + 'static;

    /// Reads `bytes` and lends key and value to `then`. `None` if the record is not wanted.
    ///
    /// # Errors
    /// The record cannot be decoded. The reader is as good as before.
    fn lend<U>(
        &mut self,
        bytes: &[u8],
        then: impl FnOnce(&Self::Key, &Self::Value) -> U,
    ) -> Result<Option<U>, Undecodable>;
}

/// Records keyed by what they lend; see [`key_by`](super::DecodedJob::key_by).
#[derive(Clone, Debug)]
pub struct KeyOf<R, F, Q: ?Sized> {
    reader: R,
    key: F,
    lends: PhantomData<fn(&Q)>,
}

impl<R, F, Q: ?Sized> KeyOf<R, F, Q> {
    pub(super) const fn new(reader: R, key: F) -> Self {
        Self { reader, key, lends: PhantomData }
    }
}

impl<R, F, Q> KeyedRecords for KeyOf<R, F, Q>
where
    R: OwnedRecords,
    Q: GroupKey + ?Sized + 'static,
    F: Fn(&R::Owned) -> &Q + Send + 'static,
{
    type Key = Q;
    type Value = R::Owned;

    #[inline]
    fn lend<U>(
        &mut self,
        bytes: &[u8],
        then: impl FnOnce(&Q, &R::Owned) -> U,
    ) -> Result<Option<U>, Undecodable> {
        let key = &self.key;
        self.reader.lend(bytes, |value| then(key(value), value))
    }
}

/// Records taken apart into key and value; see [`key_and_value`](super::DecodedJob::key_and_value).
#[derive(Clone, Debug)]
pub struct KeyAndValue<R, F, Q: ?Sized, V> {
    reader: R,
    split: F,
    lends: PhantomData<fn(&Q) -> V>,
}

impl<R, F, Q: ?Sized, V> KeyAndValue<R, F, Q, V> {
    pub(super) const fn new(reader: R, split: F) -> Self {
        Self { reader, split, lends: PhantomData }
    }
}

impl<R, F, Q, V> KeyedRecords for KeyAndValue<R, F, Q, V>
where
    R: ReadRecord,
    Q: GroupKey + ?Sized + 'static,
    V: Send + 'static,
    F: for<'a, 'b> Fn(&'a R::Value<'b>) -> (&'a Q, V) + Send + 'static,
{
    type Key = Q;
    type Value = V;

    #[inline]
    fn lend<U>(&mut self, bytes: &[u8], then: impl FnOnce(&Q, &V) -> U) -> Result<Option<U>, Undecodable> {
        let split = &self.split;
        self.reader.read(bytes, |value| {
            let (key, value) = split(&value);
            then(key, &value)
        })
    }
}
