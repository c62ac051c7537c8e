//! One named output of a pane, as a value that can be written anywhere.

use std::fmt;
use std::sync::Arc;

/// The value of one aggregate or key.
///
/// Whole numbers are exact (128 bits). Floats keep their bits; where a format cannot hold NaN or an infinity (JSON),
/// the writer says what it writes instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value: an aggregate over no measurements.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A float.
    Float(f64),
    /// Text.
    Text(Arc<str>),
}

impl Value {
    /// The value as a float, if it is a number. Whole numbers above 2^53 are rounded.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            Self::Null | Self::Bool(_) | Self::Text(_) => None,
        }
    }

    /// The value as a whole number, if it is one.
    #[must_use]
    pub const fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(n) => Some(*n),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::Text(_) => None,
        }
    }

    /// Whether columns of it read best aligned to the right.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Float(_))
    }
}

/// As a person reads it: floats in the shortest form that gives the same bits back, null as nothing.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x:?}"),
            Self::Text(s) => f.write_str(s),
        }
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Self::Float(x)
    }
}

impl From<f32> for Value {
    fn from(x: f32) -> Self {
        Self::Float(f64::from(x))
    }
}

impl From<i128> for Value {
    fn from(n: i128) -> Self {
        Self::Int(n)
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Self {
        // usize is at most 64 bits on every target Rust has.
        Self::Int(i128::try_from(n).unwrap_or(i128::MAX))
    }
}

macro_rules! from_int {
    ($($t:ty),*) => {$(
        impl From<$t> for Value {
            fn from(n: $t) -> Self {
                Self::Int(i128::from(n))
            }
        }
    )*};
}
from_int!(u8, u16, u32, u64, i8, i16, i32, i64);

impl From<String> for Value {
    fn from(s: String) -> Self {
        Self::Text(s.into())
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Self::Text(s.into())
    }
}

impl From<Arc<str>> for Value {
    fn from(s: Arc<str>) -> Self {
        Self::Text(s)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
