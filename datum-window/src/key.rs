//! Keys of panes, and how to look one up without making it.
//!
//! A record usually carries its key borrowed (`&str`, `&[u8]`), while a pane owns it. [`KeyRef`] joins the two: the
//! lookup hashes and compares the borrowed form, and only the first record of a key in a window makes the owned one.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::Equivalent;

use crate::Value;

/// What panes can be grouped by. Panes of one window are published in the order of their keys.
pub trait Key: Eq + Hash + Ord + Clone + Send + 'static {
    /// The key as an output value.
    fn to_value(&self) -> Value;
}

/// A form of `K` that can be looked up and, when it is new, made into `K`. Every key is a form of itself; `str` is
/// one of `String` and `Arc<str>`, `[u8]` one of `Vec<u8>` and `Arc<[u8]>`.
///
/// Equal forms must hash as the key does, as with `Borrow`.
pub trait KeyRef<K>: Hash + Equivalent<K> {
    /// The owned key.
    fn to_key(&self) -> K;
}

impl<K: Key> KeyRef<K> for K {
    fn to_key(&self) -> K {
        self.clone()
    }
}

impl KeyRef<Arc<Self>> for str {
    fn to_key(&self) -> Arc<Self> {
        self.into()
    }
}

impl KeyRef<String> for str {
    fn to_key(&self) -> String {
        self.to_owned()
    }
}

impl KeyRef<Arc<Self>> for [u8] {
    fn to_key(&self) -> Arc<Self> {
        self.into()
    }
}

impl KeyRef<Vec<u8>> for [u8] {
    fn to_key(&self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Key for Arc<str> {
    fn to_value(&self) -> Value {
        Value::Text(Self::clone(self))
    }
}

impl Key for String {
    fn to_value(&self) -> Value {
        Value::from(self.as_str())
    }
}

/// Bytes that are not UTF-8 are shown with replacement characters.
impl Key for Arc<[u8]> {
    fn to_value(&self) -> Value {
        Value::from(&*String::from_utf8_lossy(self))
    }
}

/// Bytes that are not UTF-8 are shown with replacement characters.
impl Key for Vec<u8> {
    fn to_value(&self) -> Value {
        Value::from(&*String::from_utf8_lossy(self))
    }
}

/// The one key of windows that are not grouped.
impl Key for () {
    fn to_value(&self) -> Value {
        Value::Null
    }
}

macro_rules! plain_keys {
    ($($t:ty),*) => {$(
        impl Key for $t {
            fn to_value(&self) -> Value {
                Value::from(*self)
            }
        }
    )*};
}
plain_keys!(bool, u8, u16, u32, u64, i8, i16, i32, i64);
