//! A scratch buffer that grows with what was produced, up to a limit.

use super::{Codec, DecompressError};

/// Output under construction. The buffer is always initialised to its length, so growing zeroes only what is new, and a
/// buffer that is reused costs nothing.
pub(super) struct Output<'a> {
    codec: Codec,
    buffer: &'a mut Vec<u8>,
    written: usize,
    limit: usize,
}

impl<'a> Output<'a> {
    pub(super) fn new(codec: Codec, buffer: &'a mut Vec<u8>, limit: usize) -> Self {
        Self { codec, buffer, written: 0, limit }
    }

    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// What may still be written before the limit.
    pub(super) fn left(&self) -> usize {
        self.limit - self.written
    }

    /// How much is writable without growing.
    pub(super) fn ready(&self) -> usize {
        self.buffer.len().min(self.limit) - self.written
    }

    /// Room for `wanted` bytes, or for all that the limit leaves; the whole buffer with the position where room begins.
    ///
    /// Fails if the limit leaves nothing, unless nothing is wanted.
    pub(super) fn room(&mut self, wanted: usize) -> Result<(&mut [u8], usize), DecompressError> {
        if self.left() == 0 && wanted > 0 {
            return Err(self.too_large());
        }
        let end = self.written + wanted.min(self.left());
        if self.buffer.len() < end {
            // Doubling keeps the copies of a growing buffer linear; the limit caps the last step.
            let len = end.max((self.buffer.len() * 2).min(self.limit));
            self.buffer.resize(len, 0);
        }
        Ok((&mut self.buffer[..end], self.written))
    }

    /// Counts `produced` bytes, written at the start of the room, as output.
    pub(super) fn advance(&mut self, produced: usize) {
        self.written += produced;
        debug_assert!(
            self.written <= self.limit.min(self.buffer.len()),
            "more was produced than there was room for"
        );
    }

    /// Appends bytes as they are.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), DecompressError> {
        if bytes.len() > self.left() {
            return Err(self.too_large());
        }
        let (buffer, at) = self.room(bytes.len())?;
        buffer[at..].copy_from_slice(bytes);
        self.advance(bytes.len());
        Ok(())
    }

    /// What was produced from `start` on.
    pub(super) fn since(&self, start: usize) -> &[u8] {
        &self.buffer[start..self.written]
    }

    pub(super) fn too_large(&self) -> DecompressError {
        DecompressError::TooLarge { codec: self.codec, limit: self.limit }
    }
}
