//! How the bytes of a record become what a job works on.
//!
//! Readers nest as iterators do: a projection or a parser inside, filters and maps around it. A value may borrow from its
//! record, so it is lent to whoever comes next instead of being returned.

use std::error::Error;
use std::marker::PhantomData;

use datum_codec::{Projected, ProjectedJson};

/// Why a record cannot be decoded.
pub type Undecodable = Box<dyn Error + Send + Sync>;

/// Reads one record at a time. Made by [`KafkaJob::decode`](super::KafkaJob::decode) and the verbs after it.
pub trait ReadRecord: Send + 'static {
    /// What a record becomes; may borrow from the record.
    type Value<'a>;

    /// Reads `bytes` and gives the value to `then`. `None` if the record is not wanted.
    ///
    /// # Errors
    /// The record cannot be decoded. The reader is as good as before.
    fn read<U>(
        &mut self,
        bytes: &[u8],
        then: impl for<'a> FnOnce(Self::Value<'a>) -> U,
    ) -> Result<Option<U>, Undecodable>;
}

/// A reader whose values borrow nothing from their record, so that they can be keyed and aggregated.
#[diagnostic::on_unimplemented(
    message = "the decoded values borrow from their records, and an aggregate cannot keep them",
    note = "give the struct owned fields (`CompactString` for short texts), or `.map(..)` it to an owned value first"
)]
pub trait OwnedRecords: ReadRecord {
    /// What a record becomes.
    type Owned: Send + 'static;

    /// Reads `bytes` and lends the value to `then`, without moving it on the way. `None` if the record is not wanted.
    ///
    /// # Errors
    /// The record cannot be decoded. The reader is as good as before.
    fn lend<U>(
        &mut self,
        bytes: &[u8],
        then: impl FnOnce(&Self::Owned) -> U,
    ) -> Result<Option<U>, Undecodable>;
}

impl<R, V> OwnedRecords for R
where
    R: for<'a> ReadRecord<Value<'a> = V>,
    V: Send + 'static,
{
    type Owned = V;

    #[inline]
    fn lend<U>(&mut self, bytes: &[u8], then: impl FnOnce(&V) -> U) -> Result<Option<U>, Undecodable> {
        self.read(bytes, |value| then(&value))
    }
}

/// What [`KafkaJob::decode`](super::KafkaJob::decode) takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not decode records",
    note = "give a projection, `Json::<T>::projected()`, or a closure whose argument's type is written out: \
            `|bytes: &[u8]| ..`, with a `Result` as its answer"
)]
pub trait IntoReader {
    /// The reader it becomes.
    type Reader: ReadRecord;

    /// Makes the reader.
    fn into_reader(self) -> Self::Reader;
}

impl<T: Projected + 'static> IntoReader for ProjectedJson<T> {
    type Reader = ProjectedRecords<T>;

    fn into_reader(self) -> ProjectedRecords<T> {
        ProjectedRecords(self)
    }
}

impl<F, T, E> IntoReader for F
where
    F: FnMut(&[u8]) -> Result<T, E> + Send + 'static,
    T: 'static,
    E: Into<Undecodable> + 'static,
{
    type Reader = ParsedRecords<F, T, E>;

    fn into_reader(self) -> ParsedRecords<F, T, E> {
        ParsedRecords { parse: self, makes: PhantomData }
    }
}

/// Reads the named fields of JSON records.
#[derive(Clone, Debug)]
pub struct ProjectedRecords<T>(ProjectedJson<T>);

impl<T: Projected + 'static> ReadRecord for ProjectedRecords<T> {
    type Value<'a> = T::Of<'a>;

    #[inline]
    fn read<U>(
        &mut self,
        bytes: &[u8],
        then: impl for<'a> FnOnce(T::Of<'a>) -> U,
    ) -> Result<Option<U>, Undecodable> {
        match self.0.decode_with(bytes, then) {
            Ok(made) => Ok(Some(made)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads records with a function.
#[derive(Clone)]
pub struct ParsedRecords<F, T, E> {
    parse: F,
    makes: PhantomData<fn() -> Result<T, E>>,
}

impl<F, T, E> ReadRecord for ParsedRecords<F, T, E>
where
    F: FnMut(&[u8]) -> Result<T, E> + Send + 'static,
    T: 'static,
    E: Into<Undecodable> + 'static,
{
    type Value<'a> = T;

    #[inline]
    fn read<U>(&mut self, bytes: &[u8], then: impl FnOnce(T) -> U) -> Result<Option<U>, Undecodable> {
        match (self.parse)(bytes) {
            Ok(value) => Ok(Some(then(value))),
            Err(error) => Err(error.into()),
        }
    }
}

/// Leaves records out; see [`DecodedJob::filter`](super::DecodedJob::filter).
#[derive(Clone, Debug)]
pub struct FilterRecords<R, F> {
    reader: R,
    wanted: F,
}

impl<R, F> FilterRecords<R, F> {
    pub(super) const fn new(reader: R, wanted: F) -> Self {
        Self { reader, wanted }
    }
}

impl<R, F> ReadRecord for FilterRecords<R, F>
where
    R: ReadRecord,
    F: for<'a> FnMut(&R::Value<'a>) -> bool + Send + 'static,
{
    type Value<'a> = R::Value<'a>;

    #[inline]
    fn read<U>(
        &mut self,
        bytes: &[u8],
        then: impl for<'a> FnOnce(R::Value<'a>) -> U,
    ) -> Result<Option<U>, Undecodable> {
        let wanted = &mut self.wanted;
        let read = self.reader.read(bytes, |value| if wanted(&value) { Some(then(value)) } else { None });
        read.map(Option::flatten)
    }
}

/// Makes other values; see [`DecodedJob::map`](super::DecodedJob::map).
#[derive(Clone, Debug)]
pub struct MapRecords<R, F, V> {
    reader: R,
    make: F,
    makes: PhantomData<fn() -> V>,
}

impl<R, F, V> MapRecords<R, F, V> {
    pub(super) const fn new(reader: R, make: F) -> Self {
        Self { reader, make, makes: PhantomData }
    }
}

impl<R, F, V> ReadRecord for MapRecords<R, F, V>
where
    R: ReadRecord,
    F: for<'a> FnMut(R::Value<'a>) -> V + Send + 'static,
    V: 'static,
{
    type Value<'a> = V;

    #[inline]
    fn read<U>(&mut self, bytes: &[u8], then: impl FnOnce(V) -> U) -> Result<Option<U>, Undecodable> {
        let make = &mut self.make;
        self.reader.read(bytes, |value| then(make(value)))
    }
}
