//! What turns the bytes of a record into a value.

use std::fmt;

use bytes::Bytes;

use crate::error::DecodeError;
use crate::json::ProjectedJson;
use crate::policy::{DecodePolicy, Decoding};
use crate::projected::{OwnedProjected, Projected};

/// Turns the bytes of one record into one value.
///
/// A decoder may learn from the records it has seen, but what it returns depends on the record alone. For a format of
/// your own, implement this and use the stages of [`stages`](crate::stages).
pub trait Decoder: Send + 'static {
    /// The value of a record.
    type Out: Send + 'static;

    /// Decodes one record.
    ///
    /// # Errors
    /// What is wrong with the record. The decoder is as good as before.
    fn decode_record(&mut self, record: &Bytes) -> Result<Self::Out, DecodeError>;

    /// This decoder, with a policy other than to fail at the first record that cannot be decoded.
    fn on_error(self, policy: DecodePolicy) -> Decoding<Self>
    where
        Self: Sized,
    {
        Decoding::new(self, policy)
    }
}

impl<T: OwnedProjected> Decoder for ProjectedJson<T> {
    type Out = T;

    #[inline]
    fn decode_record(&mut self, record: &Bytes) -> Result<T, DecodeError> {
        self.decode(record)
    }
}

/// A decoder that lends each record to a closure and returns what the closure makes of it; see
/// [`ProjectedJson::with`].
pub struct DecodeWith<T, F> {
    json: ProjectedJson<T>,
    f: F,
}

impl<T: Projected> ProjectedJson<T> {
    /// A [`Decoder`] that returns what `f` makes of each record: the way for records that borrow.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use datum_codec::{Decoder, Json, Projected};
    ///
    /// #[derive(Projected)]
    /// struct Line<'a> {
    ///     text: &'a str,
    /// }
    ///
    /// let mut lengths = Json::<Line<'_>>::projected().with(|line: Line<'_>| line.text.len());
    /// assert_eq!(lengths.decode_record(&Bytes::from(r#"{"text":"four"}"#)), Ok(4));
    /// ```
    pub fn with<R, F>(self, f: F) -> DecodeWith<T, F>
    where
        F: for<'b> FnMut(T::Of<'b>) -> R,
    {
        DecodeWith { json: self, f }
    }
}

impl<T, R, F> Decoder for DecodeWith<T, F>
where
    T: Projected + 'static,
    R: Send + 'static,
    F: for<'b> FnMut(T::Of<'b>) -> R + Send + 'static,
{
    type Out = R;

    #[inline]
    fn decode_record(&mut self, record: &Bytes) -> Result<R, DecodeError> {
        self.json.decode_with(record, &mut self.f)
    }
}

impl<T, F: Clone> Clone for DecodeWith<T, F> {
    fn clone(&self) -> Self {
        Self { json: self.json.clone(), f: self.f.clone() }
    }
}

impl<T, F> fmt::Debug for DecodeWith<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodeWith").field("json", &self.json).finish_non_exhaustive()
    }
}
