//! What becomes of records that cannot be decoded.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use metrics::Counter;

use crate::decoder::Decoder;
use crate::error::DecodeError;

/// What to do with a record that cannot be decoded.
///
/// Each is counted, under `datum_undecodable_total` with the label `policy`: `fail`, `skip` or `dead-letter`.
#[derive(Clone, Debug, Default)]
pub enum DecodePolicy {
    /// Fail. The default, because nothing is lost unnoticed.
    #[default]
    Fail,
    /// Leave the record out, and count it.
    Skip,
    /// Hand the record and the reason to whoever takes dead letters, and leave it out.
    DeadLetter(DeadLetters),
}

impl DecodePolicy {
    /// [`DecodePolicy::DeadLetter`], with `take` called for each dead letter where the record would have been used.
    ///
    /// It runs on the stream's task and must not block. To send dead letters through a stream of their own, with
    /// backpressure, use [`try_decode`](crate::stages::TryDecodeOps::try_decode) instead.
    pub fn dead_letter(take: impl Fn(DeadLetter) + Send + Sync + 'static) -> Self {
        Self::DeadLetter(DeadLetters(Arc::new(take)))
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::DeadLetter(_) => "dead-letter",
        }
    }
}

/// Who takes dead letters; see [`DecodePolicy::dead_letter`].
#[derive(Clone)]
pub struct DeadLetters(Arc<dyn Fn(DeadLetter) + Send + Sync>);

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeadLetters")
    }
}

/// A record that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The record as it came. It shares the memory of the batch it came in, which lives as long as this does.
    pub record: Bytes,
    /// Why it could not be decoded.
    pub error: DecodeError,
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a record of {} bytes could not be decoded: {}", self.record.len(), self.error)
    }
}

impl std::error::Error for DeadLetter {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// A decoder and its policy: what the stages run, and what a loop of one's own can use in their place.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use datum_codec::{DecodePolicy, Decoder, Json, Projected};
///
/// #[derive(Debug, PartialEq, Projected)]
/// struct Reading {
///     celsius: f64,
/// }
///
/// let mut readings = Json::<Reading>::projected().on_error(DecodePolicy::Skip);
/// assert_eq!(readings.decode(&Bytes::from(r#"{"celsius":21.5}"#)), Ok(Some(Reading { celsius: 21.5 })));
/// assert_eq!(readings.decode(&Bytes::from("lost")), Ok(None));
/// assert_eq!(readings.undecodable(), 1);
/// ```
#[derive(Clone)]
pub struct Decoding<D> {
    decoder: D,
    policy: DecodePolicy,
    undecodable: u64,
    counter: Option<Counter>,
}

impl<D: Decoder> Decoding<D> {
    pub(crate) const fn new(decoder: D, policy: DecodePolicy) -> Self {
        Self { decoder, policy, undecodable: 0, counter: None }
    }

    /// Decodes one record. `None` if it cannot be decoded and the policy leaves such records out.
    ///
    /// # Errors
    /// It cannot be decoded and the policy is [`DecodePolicy::Fail`].
    #[inline]
    pub fn decode(&mut self, record: &Bytes) -> Result<Option<D::Out>, DecodeError> {
        match self.decoder.decode_record(record) {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.undecoded(record, error).map(|()| None),
        }
    }

    #[cold]
    fn undecoded(&mut self, record: &Bytes, error: DecodeError) -> Result<(), DecodeError> {
        self.undecodable += 1;
        let policy = self.policy.name();
        // Looked up at the first failure, when the program has installed its recorder if it ever will.
        self.counter
            .get_or_insert_with(|| metrics::counter!("datum_undecodable_total", "policy" => policy))
            .increment(1);
        match &self.policy {
            DecodePolicy::Fail => return Err(error),
            DecodePolicy::Skip => {}
            DecodePolicy::DeadLetter(letters) => (letters.0)(DeadLetter { record: record.clone(), error }),
        }
        Ok(())
    }

    /// How many records this one could not decode.
    #[must_use]
    pub const fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// The decoder.
    pub const fn decoder(&self) -> &D {
        &self.decoder
    }
}

impl<D: Decoder> From<D> for Decoding<D> {
    fn from(decoder: D) -> Self {
        Self::new(decoder, DecodePolicy::Fail)
    }
}

impl<D: fmt::Debug> fmt::Debug for Decoding<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoding")
            .field("decoder", &self.decoder)
            .field("policy", &self.policy)
            .field("undecodable", &self.undecodable)
            .finish_non_exhaustive()
    }
}
