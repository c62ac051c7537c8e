//! JSON records, read by projection.
//!
//! [`Json::projected`] gives a decoder for the fields that a struct names by `#[derive(Projected)]`. It decodes a
//! record in one of two ways, with the same outcome:
//!
//! - *By shape.* A record is cut at its values. What lies between them (brackets, keys, colons, white space) is its
//!   shape. The bytes of a following record are compared with a known shape, and the values in between are read if
//!   wanted and stepped over if not. A number that is stepped over is checked for its grammar, a string for control
//!   characters and malformed escapes; nested values nobody asks for are checked likewise and belong to no shape.
//!   On x86-64 with AVX2, which is found out when the program runs, this goes 32 bytes at a time; and records whose
//!   values are numbers, words and strings without escapes are read at once, not value by value.
//! - *In full.* A record that fits no known shape is parsed from its first byte, and its shape is remembered. Every
//!   record that is refused has been parsed in full, which is what the error's offset and path come from.
//!
//! The outcome is that of serde_json, with its feature `float_roundtrip`, for a struct with the same fields: the
//! same values and the same records refused, those included whose fault lies in a field that nobody wants. The one
//! difference: a borrowed `&str` field accepts a string with escapes, which serde_json refuses.
//!
//! # Cost
//! A record of 465 bytes and 19 fields, nine of them wanted, takes about a fifth of the time that serde_json takes
//! for the same struct, and without AVX2 a third (`cargo run --release -p datum-codec --features sample --example
//! decode_speed` shows all); parsed in full and its shape learnt, it takes half as much again as serde_json. Up to
//! eight shapes are kept, so that alternating ones do not displace each other; each remembers which one followed it,
//! and that one is tried first. A decoder allocates nothing per record, apart from what owned fields need and what a new
//! shape takes; a string with escapes makes it keep a buffer of that string's length, and the first record that is read
//! at once, 72 KiB. Records of more than 16 KiB are not read at once.

#[cfg(test)]
mod agreement;
mod cache;
mod fault;
#[cfg(target_arch = "x86_64")]
mod index;
#[cfg(target_arch = "x86_64")]
mod indexed;
mod number;
#[cfg(target_arch = "x86_64")]
mod number_table;
mod parse;
mod plan;
mod shape;
mod skip;
#[cfg(target_arch = "x86_64")]
mod survey;
mod text;
mod value;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_vector.rs"]
mod vector;
#[cfg(target_arch = "x86_64")]
mod walk;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::DecodeError;
use crate::projected::{Input, OwnedProjected, Projected, Record, Slot, Unescaped};

use self::cache::ShapeCache;
use self::parse::{Form, Parser};
use self::plan::Plan;
use self::shape::Way;
use self::vector::Avx2;
pub(crate) use self::vector::text_of;

/// The JSON format, for records of type `T`. Names decoders; holds nothing.
#[derive(Debug)]
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T: Projected> Json<T> {
    /// A decoder that reads only the fields `T` names.
    ///
    /// # Panics
    /// If [`Projected`] was implemented by hand and one field's path is, or leads through, another's.
    #[must_use]
    pub fn projected() -> ProjectedJson<T> {
        Self::by(Avx2::detect())
    }

    /// The same, without the vector instructions this machine may have: for tests and measurements.
    ///
    /// # Panics
    /// As [`projected`](Self::projected).
    #[cfg(any(test, fuzzing, feature = "sample"))]
    #[must_use]
    pub fn projected_portably() -> ProjectedJson<T> {
        Self::by(None)
    }

    fn by(vectors: Option<Avx2>) -> ProjectedJson<T> {
        ProjectedJson {
            plan: Arc::new(Plan::new(T::FIELDS)),
            shapes: ShapeCache::new(Way::new(vectors)),
            slots: vec![Slot::ABSENT; T::FIELDS.len()],
            unescaped: Unescaped::default(),
            form: Form::default(),
            record: PhantomData,
        }
    }
}

/// Reads the fields `T` names from JSON records; see the [module](self).
///
/// A clone starts with the shapes known so far, and learns on its own.
///
/// # Examples
/// ```
/// use datum_codec::{Json, Projected};
///
/// #[derive(Debug, PartialEq, Projected)]
/// struct Metric {
///     region: String,
///     latency_ms: f64,
/// }
///
/// let mut metrics = Json::<Metric>::projected();
/// let metric = metrics.decode(br#"{"host":"a","region":"eu-west-1","latency_ms":12.5}"#);
/// assert_eq!(metric, Ok(Metric { region: "eu-west-1".into(), latency_ms: 12.5 }));
/// assert_eq!(metrics.decode(br#"{"region":"eu-west-1"}"#).unwrap_err().path(), Some("latency_ms"));
/// ```
pub struct ProjectedJson<T> {
    plan: Arc<Plan>,
    shapes: ShapeCache,
    slots: Vec<Slot>,
    unescaped: Unescaped,
    form: Form,
    record: PhantomData<fn() -> T>,
}

impl<T: Projected> ProjectedJson<T> {
    /// Decodes one record, which may be surrounded by white space.
    ///
    /// # Errors
    /// The record is not JSON, or not what `T` asks for. The decoder is as good as before.
    #[inline]
    pub fn decode<'a>(&mut self, input: impl Into<Input<'a>>) -> Result<T, DecodeError>
    where
        T: OwnedProjected,
    {
        let input = input.into();
        self.find(input)?;
        T::build(&self.found(input))
    }

    /// Decodes one record and lends it to `f`; the way for structs that borrow from their record.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode); `f` is not called then.
    #[inline]
    pub fn decode_with<'a, R>(
        &mut self,
        input: impl Into<Input<'a>>,
        f: impl FnOnce(T::Of<'_>) -> R,
    ) -> Result<R, DecodeError> {
        let input = input.into();
        self.find(input)?;
        match T::build(&self.found(input)) {
            Ok(value) => Ok(f(value)),
            Err(error) => Err(error),
        }
    }

    /// How many records were read by shape, and how many in full, since this decoder or the one it was cloned from
    /// was made.
    ///
    /// Where the second number keeps growing, records come in more forms than are kept, and decoding costs several
    /// times as much.
    #[must_use]
    pub const fn paths_taken(&self) -> PathsTaken {
        self.shapes.paths_taken()
    }

    /// Leaves the wanted values of a record in the slots.
    fn find(&mut self, input: Input<'_>) -> Result<(), DecodeError> {
        let bytes = input.as_slice();
        self.unescaped.clear();
        if !self.shapes.read(bytes, T::FIELDS, &mut self.slots, &mut self.unescaped) {
            self.unescaped.clear();
            Parser::new(bytes, &self.plan, &mut self.slots, &mut self.unescaped, &mut self.form).parse()?;
            self.shapes.learn(bytes, &self.plan, &self.form);
        }
        Ok(())
    }

    /// What [`find`](Self::find) has left. Made where it is used: handed on, its parts would be read back before they have left the
    /// processor.
    #[inline]
    fn found<'b>(&'b self, input: Input<'b>) -> Record<'b> {
        Record { input, unescaped: &self.unescaped, slots: &self.slots, fields: T::FIELDS }
    }
}

impl<T> Clone for ProjectedJson<T> {
    fn clone(&self) -> Self {
        Self {
            plan: Arc::clone(&self.plan),
            shapes: self.shapes.clone(),
            slots: self.slots.clone(),
            unescaped: Unescaped::default(),
            form: Form::default(),
            record: PhantomData,
        }
    }
}

impl<T> fmt::Debug for ProjectedJson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectedJson")
            .field("fields", &self.plan.fields().iter().map(|field| field.name).collect::<Vec<_>>())
            .field("paths_taken", &self.shapes.paths_taken())
            .finish_non_exhaustive()
    }
}

/// How many records a decoder has read in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathsTaken {
    /// Compared with a known shape.
    pub by_shape: u64,
    /// Parsed from the first byte, refused ones included.
    pub in_full: u64,
}
