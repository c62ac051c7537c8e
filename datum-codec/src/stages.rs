//! `decode`, `decode_with` and `try_decode`: records into values, as operators.
//!
//! They follow any stream whose elements have a [`Payload`]: [`Bytes`], or a connector's record, of which the rest is
//! kept beside the decoded value. What becomes of a record that cannot be decoded is the [`DecodePolicy`]'s business.
//!
//! ```
//! use bytes::Bytes;
//! use datum_codec::prelude::*;
//! use datum_core::prelude::*;
//!
//! #[derive(Projected)]
//! struct Reading {
//!     celsius: f64,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StreamError> {
//! let lines = [r#"{"celsius":20.5}"#, "not JSON", r#"{"sensor":7,"celsius":21.5}"#];
//! let warmest = Source::from_iter(lines.map(Bytes::from))
//!     .decode(Json::<Reading>::projected().on_error(DecodePolicy::Skip))
//!     .run_with(Sink::fold(0.0, |warmest: f64, reading: Reading| warmest.max(reading.celsius)))?
//!     .await?;
//! assert_eq!(warmest, 21.5);
//! # Ok(())
//! # }
//! ```

use bytes::Bytes;
use datum_core::blueprint::{KeepLeft, StreamOps};
use datum_core::error::StreamError;
use datum_core::stage::{Driven, Judge, Push, Stage, StageCx, Supervision, Up, guard};
use datum_core::{forward, linear_operator};

#[cfg(doc)]
use crate::DecodePolicy;
use crate::decoder::{DecodeWith, Decoder};
use crate::json::ProjectedJson;
use crate::policy::{DeadLetter, Decoding};
use crate::projected::Projected;

/// An element that carries the bytes of a record, perhaps among other things.
pub trait Payload: Send + 'static {
    /// The element with a `T` in place of the bytes.
    type With<T: Send + 'static>: Send + 'static;

    /// The record.
    fn payload(&self) -> &Bytes;

    /// The element with `value` in place of the bytes.
    fn with<T: Send + 'static>(self, value: T) -> Self::With<T>;

    /// A policy has left the element out, so nothing follows of it: a connector's record is done with. Not called when the
    /// stream fails at it. Does nothing by default.
    fn left_out(self)
    where
        Self: Sized,
    {
    }
}

impl Payload for Bytes {
    type With<T: Send + 'static> = T;

    fn payload(&self) -> &Bytes {
        self
    }

    fn with<T: Send + 'static>(self, value: T) -> T {
        value
    }
}

/// Adds [`decode`](DecodeOps::decode) and [`decode_with`](DecodeOps::decode_with).
pub trait DecodeOps: StreamOps<Item: Payload> {
    /// Decodes each record.
    ///
    /// Takes a decoder, which fails the stream at the first record that cannot be decoded, or one with another policy:
    /// `decoder.on_error(DecodePolicy::Skip)`. The failure is supervised, as is a panic in code of the caller's that
    /// the decoder runs: `Resume` and `Restart` drop the record. [`StreamError::downcast_ref`] finds the
    /// [`DecodeError`](crate::DecodeError).
    ///
    /// - **Emits** when a record has been decoded.
    /// - **Backpressures** when downstream does; a record is decoded when it is demanded, never ahead.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    fn decode<D: Decoder>(self, decoder: impl Into<Decoding<D>>) -> Self::Then<Decode<D>, KeepLeft> {
        self.then(Decode(decoder.into()))
    }

    /// Lends each record to `f`, fields borrowed from its bytes, and emits what `f` makes of it.
    ///
    /// Fails at the first record that cannot be decoded; for another policy, use
    /// `.decode(json.with(f).on_error(policy))`. Emits, backpressures, completes and cancels as
    /// [`decode`](DecodeOps::decode) does.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use datum_codec::prelude::*;
    /// use datum_core::prelude::*;
    ///
    /// #[derive(Projected)]
    /// struct Line<'a> {
    ///     text: &'a str,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let lengths = Source::single(Bytes::from(r#"{"text":"four"}"#))
    ///     .decode_with(Json::<Line<'_>>::projected(), |line: Line<'_>| line.text.len())
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(lengths, [4]);
    /// # Ok(())
    /// # }
    /// ```
    fn decode_with<T, R, F>(
        self,
        json: ProjectedJson<T>,
        f: F,
    ) -> Self::Then<Decode<DecodeWith<T, F>>, KeepLeft>
    where
        T: Projected + 'static,
        R: Send + 'static,
        F: for<'b> FnMut(T::Of<'b>) -> R + Send + 'static,
    {
        self.then(Decode(json.with(f).into()))
    }
}

impl<S: StreamOps<Item: Payload>> DecodeOps for S {}

/// The operator of [`decode`](DecodeOps::decode) and [`decode_with`](DecodeOps::decode_with).
#[derive(Clone, Debug)]
pub struct Decode<D>(Decoding<D>);

/// The stage of [`decode`](DecodeOps::decode).
#[derive(Debug)]
pub struct DecodeStage<U, D> {
    up: Up<U>,
    decoding: Decoding<D>,
    supervision: Supervision,
}

linear_operator!([In: Payload, D: Decoder] Decode<D>, In => In::With<D::Out>, DecodeStage<D>,
    |op, up, m| DecodeStage { up: Up::new(up), decoding: op.0, supervision: m.supervision() });

impl<U: Stage<Out: Payload>, D: Decoder> Stage for DecodeStage<U, D> {
    type Out = <U::Out as Payload>::With<D::Out>;

    #[inline]
    fn drive<P: FnMut(Self::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (decoding, mut judge) = (&mut self.decoding, Judge::new(&self.supervision));
        let answer =
            self.up.drive(cx, |record| match guard("decode", || decoding.decode(record.payload())) {
                Ok(Ok(Some(value))) => push(record.with(value)),
                Ok(Ok(None)) => {
                    record.left_out();
                    Push::Continue(())
                }
                Ok(Err(error)) => judge.element_failed(StreamError::failed("decode", error)),
                Err(error) => judge.element_failed(error),
            });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}

/// Adds [`try_decode`](TryDecodeOps::try_decode).
pub trait TryDecodeOps: StreamOps<Item: Payload> {
    /// Decodes each record, and emits a [`DeadLetter`] for each that cannot be decoded, in its place.
    ///
    /// So dead letters can be sent on within the stream, with backpressure and beside the offset they came from.
    /// Nothing is counted. A panic in code of the caller's that the decoder runs is supervised: `Resume` and
    /// `Restart` drop the record.
    ///
    /// - **Emits** for each record.
    /// - **Backpressures** when downstream does; a record is decoded when it is demanded, never ahead.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    fn try_decode<D: Decoder>(self, decoder: D) -> Self::Then<TryDecode<D>, KeepLeft> {
        self.then(TryDecode(decoder))
    }
}

impl<S: StreamOps<Item: Payload>> TryDecodeOps for S {}

/// The operator of [`try_decode`](TryDecodeOps::try_decode).
#[derive(Clone, Debug)]
pub struct TryDecode<D>(D);

/// The stage of [`try_decode`](TryDecodeOps::try_decode).
#[derive(Debug)]
pub struct TryDecodeStage<U, D> {
    up: Up<U>,
    decoder: D,
    supervision: Supervision,
}

linear_operator!([In: Payload, D: Decoder] TryDecode<D>, In => In::With<Result<D::Out, DeadLetter>>,
    TryDecodeStage<D>,
    |op, up, m| TryDecodeStage { up: Up::new(up), decoder: op.0, supervision: m.supervision() });

impl<U: Stage<Out: Payload>, D: Decoder> Stage for TryDecodeStage<U, D> {
    type Out = <U::Out as Payload>::With<Result<D::Out, DeadLetter>>;

    #[inline]
    fn drive<P: FnMut(Self::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (decoder, mut judge) = (&mut self.decoder, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |element| {
            match guard("try_decode", || decoder.decode_record(element.payload())) {
                Ok(Ok(value)) => push(element.with(Ok(value))),
                Ok(Err(error)) => {
                    let record = element.payload().clone();
                    push(element.with(Err(DeadLetter { record, error })))
                }
                Err(error) => judge.element_failed(error),
            }
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}
