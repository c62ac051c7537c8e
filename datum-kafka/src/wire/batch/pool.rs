//! Buffers that come back: decompressed bodies and record indexes, reused from batch to batch.

use super::record::Entry;
use bytes::Bytes;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps returned buffers, up to a number and a sum of bytes; what is above is freed.
///
/// Buffers may return from any thread (when a consumer drops the last view), so the lists are behind a lock that is held
/// for a push or pop.
#[derive(Debug, Default)]
pub(super) struct Pool {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bodies: Vec<Vec<u8>>,
    body_bytes: usize,
    indexes: Vec<Vec<Entry>>,
}

impl Pool {
    const MAX_BUFFERS: usize = 8;
    const MAX_BODY_BYTES: usize = 32 << 20;
    const MAX_INDEX_ENTRIES: usize = 1 << 18;

    /// An initialised buffer of any length; its content is garbage.
    pub(super) fn take_body(&self) -> Vec<u8> {
        let mut kept = self.lock();
        let body = kept.bodies.pop().unwrap_or_default();
        kept.body_bytes -= body.len();
        body
    }

    /// An empty index.
    pub(super) fn take_index(pool: &Arc<Self>) -> PooledIndex {
        let entries = pool.lock().indexes.pop().unwrap_or_default();
        PooledIndex { entries, pool: Arc::clone(pool) }
    }

    /// Shares the first `len` bytes of `buffer`; the buffer returns when the last share is dropped.
    pub(super) fn share(pool: &Arc<Self>, buffer: Vec<u8>, len: usize) -> Bytes {
        Bytes::from_owner(PooledBody { buffer, len, pool: Arc::clone(pool) })
    }

    pub(super) fn give_body(&self, body: Vec<u8>) {
        let mut kept = self.lock();
        if kept.bodies.len() < Self::MAX_BUFFERS && kept.body_bytes + body.len() <= Self::MAX_BODY_BYTES {
            kept.body_bytes += body.len();
            kept.bodies.push(body);
        }
    }

    fn give_index(&self, mut entries: Vec<Entry>) {
        entries.clear();
        let mut kept = self.lock();
        if kept.indexes.len() < Self::MAX_BUFFERS && entries.capacity() <= Self::MAX_INDEX_ENTRIES {
            kept.indexes.push(entries);
        }
    }

    /// A panic while the lock is held cannot leave the lists half changed.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body on loan.
struct PooledBody {
    buffer: Vec<u8>,
    len: usize,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for PooledBody {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for PooledBody {
    fn drop(&mut self) {
        self.pool.give_body(std::mem::take(&mut self.buffer));
    }
}

/// An index on loan.
#[derive(Debug)]
pub(super) struct PooledIndex {
    pub(super) entries: Vec<Entry>,
    pool: Arc<Pool>,
}

impl Deref for PooledIndex {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.entries
    }
}

impl Drop for PooledIndex {
    fn drop(&mut self) {
        self.pool.give_index(std::mem::take(&mut self.entries));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_back_when_the_last_share_is_dropped() {
        let pool = Arc::new(Pool::default());
        let shared = Pool::share(&pool, vec![7; 100], 40);
        let part = shared.slice(10..20);
        drop(shared);
        assert_eq!((part.as_ref(), pool.take_body().len()), (&[7; 10][..], 0));
        drop(part);
        assert_eq!(pool.take_body().len(), 100);
        assert_eq!(pool.lock().body_bytes, 0);
    }

    #[test]
    fn what_exceeds_the_bounds_is_freed() {
        let pool = Pool::default();
        pool.give_body(vec![0; Pool::MAX_BODY_BYTES + 1]);
        assert!(pool.lock().bodies.is_empty());
        for _ in 0..20 {
            pool.give_body(vec![0; 10]);
        }
        assert_eq!(pool.lock().bodies.len(), Pool::MAX_BUFFERS);
    }
}
