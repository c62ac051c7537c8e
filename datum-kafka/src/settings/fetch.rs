//! How much a consumer asks for at once, how long it waits, and how much it holds.

use std::time::Duration;

use super::SettingsError;
use super::error::{duration, size};

/// Settings of the fetcher.
///
/// The defaults are right for draining a topic and for tailing it: a long poll returns as soon as there is one byte, so the
/// waiting time costs no latency, and responses of a few megabytes amortise the round trip without falling out of the
/// caches (responses of 250 MB doubled the CPU per record when measured).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchSettings {
    /// Bytes per partition and request. Default 4 MiB. A broker returns one whole batch even if that is more.
    pub partition_max_bytes: usize,
    /// Bytes per request over all its partitions. Default 16 MiB.
    pub max_bytes: usize,
    /// The broker answers when it has this many bytes, or after `max_wait`. Default 1: latency first.
    pub min_bytes: usize,
    /// How long the broker may hold a fetch that has nothing to return. Default 500 ms; it is no delay, since new data ends
    /// the wait. Shorter notices revoked and new partitions a little sooner at the price of idle requests.
    pub max_wait: Duration,
    /// Fetched bytes (as sent, compressed) that may wait for the consumer, over all partitions. When they do, no
    /// further fetch is sent: that is the backpressure. Default 32 MiB. One response per broker may come on top, since a
    /// fetch in flight cannot be recalled.
    pub buffer_bytes: usize,
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self {
            partition_max_bytes: 4 << 20,
            max_bytes: 16 << 20,
            min_bytes: 1,
            max_wait: Duration::from_millis(500),
            buffer_bytes: 32 << 20,
        }
    }
}

impl FetchSettings {
    /// Sets [`partition_max_bytes`](Self#structfield.partition_max_bytes).
    pub fn partition_max_bytes(mut self, bytes: usize) -> Self {
        self.partition_max_bytes = bytes;
        self
    }

    /// Sets [`max_bytes`](Self#structfield.max_bytes).
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets [`min_bytes`](Self#structfield.min_bytes).
    pub fn min_bytes(mut self, bytes: usize) -> Self {
        self.min_bytes = bytes;
        self
    }

    /// Sets [`max_wait`](Self#structfield.max_wait).
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets [`buffer_bytes`](Self#structfield.buffer_bytes).
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    pub(super) fn validate(&self, max_response_bytes: usize) -> Result<(), SettingsError> {
        let most = i32::MAX as usize;
        size("fetch.partition_max_bytes", self.partition_max_bytes, 1, most)?;
        size("fetch.max_bytes", self.max_bytes, 1, most)?;
        size("fetch.min_bytes", self.min_bytes, 0, self.max_bytes)?;
        size("fetch.buffer_bytes", self.buffer_bytes, 1, most)?;
        duration("fetch.max_wait", self.max_wait)?;
        if self.max_bytes > max_response_bytes {
            return Err(SettingsError::Conflict {
                first: "fetch.max_bytes",
                second: "max_response_bytes",
                remedy: "a fetch may be answered with max_bytes and one batch more; raise max_response_bytes above both",
            });
        }
        Ok(())
    }
}
