//! What records can be grouped by.

use std::sync::Arc;

use crate::{Key, KeyRef};

/// A form in which a record lends its group key, and the key that a pane owns: `str` becomes `Arc<str>`, numbers are
/// their own.
///
/// For a key type of your own, implement [`Key`] and this:
///
/// ```
/// use datum_window::{GroupKey, Key, Value};
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// struct Device(u32);
///
/// impl Key for Device {
///     fn to_value(&self) -> Value {
///         Value::from(self.0)
///     }
/// }
///
/// impl GroupKey for Device {
///     type Owned = Self;
///
///     fn key_bytes(&self) -> Option<&[u8]> {
///         None
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "records cannot be grouped by `{Self}`",
    note = "lend a `str`, `[u8]`, number, bool or `String` of the record, or implement `GroupKey` for a key of your own"
)]
pub trait GroupKey
where
    Self: KeyRef<<Self as GroupKey>::Owned>,
{
    /// The key that panes own.
    type Owned: Key + GroupKey;

    /// The key as bytes, as producers of the input hash it. Published as the key of a pane, and checked in co-partitioned mode.
    /// `None` where that is not known, as for numbers: then panes carry the key as text, and co-partitioned mode relies
    /// on the promise alone.
    fn key_bytes(&self) -> Option<&[u8]>;
}

macro_rules! keys_of_bytes {
    ($($form:ty => $owned:ty, $bytes:expr;)*) => {$(
        impl GroupKey for $form {
            type Owned = $owned;

            #[inline]
            fn key_bytes(&self) -> Option<&[u8]> {
                let bytes: fn(&Self) -> &[u8] = $bytes;
                Some(bytes(self))
            }
        }
    )*};
}

keys_of_bytes! {
    str => Arc<str>, |key| key.as_bytes();
    [u8] => Arc<[u8]>, |key| key;
    String => String, |key| key.as_bytes();
    Arc<str> => Self, |key| key.as_bytes();
    Vec<u8> => Self, |key| key;
    Arc<[u8]> => Self, |key| key;
}

macro_rules! plain_keys {
    ($($key:ty),*) => {$(
        impl GroupKey for $key {
            type Owned = Self;

            #[inline]
            fn key_bytes(&self) -> Option<&[u8]> {
                None
            }
        }
    )*};
}

plain_keys!((), bool, u8, u16, u32, u64, i8, i16, i32, i64);
