//! The one switch between the real synchronisation types and the model-checked ones.
//!
//! Built with `RUSTFLAGS="--cfg datum_loom"`, the types come from loom and the models explore every interleaving.
//! (The flag is not plain `loom`: that one takes `tokio::net` away from the whole dependency tree.) Nothing else in
//! this crate names `std::sync` directly.

#[cfg(datum_loom)]
pub use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
#[cfg(not(datum_loom))]
pub use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Locks, also after a holder panicked: no critical section of this crate runs foreign code, so the data is whole.
pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    match m.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
