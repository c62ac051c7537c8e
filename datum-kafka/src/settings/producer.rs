//! Settings of a producer.

use std::sync::Arc;
use std::time::Duration;

use super::error::{duration, id, size};
use super::{ClientSettings, SettingsError};
use crate::wire::batch::Codec;

/// When a write counts as acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Acks {
    /// When all in-sync replicas have it. The default, and the only one that idempotent and transactional producers may use.
    #[default]
    All,
    /// When the leader has it: lost if the leader fails before a follower has copied it.
    Leader,
}

/// Settings of a producer.
///
/// The defaults suit a stream that is either busy or wants its records out soon: batches fill to 256 KiB or leave after 5 ms,
/// whichever is first, and nothing is written twice or out of order by a retry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProducerSettings {
    /// Connections and metadata.
    pub client: ClientSettings,
    /// Default [`Acks::All`].
    pub acks: Acks,
    /// Whether the broker removes duplicates that retries cause and keeps the order (KIP-98). Default true; it costs one request
    /// at the start.
    pub idempotent: bool,
    /// How batches are compressed. Default [`Codec::Lz4`]: a third of the bytes for a few hundred nanoseconds per record.
    pub compression: Codec,
    /// The codec's level; none for its own default.
    pub compression_level: Option<i32>,
    /// How long a batch may wait for company. Default 5 ms (KIP-1030): fuller batches compress better and cost the broker less.
    pub linger: Duration,
    /// A batch is sent when it holds this many bytes before compression. Default 256 KiB. Topics refuse batches over their
    /// `max.message.bytes` (1 MiB by default) after compression.
    pub batch_bytes: usize,
    /// The largest single record, and the largest request, in bytes before compression. Default 1 MiB.
    pub max_request_bytes: usize,
    /// Bytes of records accepted and not yet acknowledged; sending waits when they are used up. Default 32 MiB.
    pub buffer_bytes: usize,
    /// Requests in flight per broker. Default 5, which is also the most an idempotent producer may have.
    pub max_in_flight: usize,
    /// From accepting a record to its fate: lingering, retries and all (KIP-91). Default 120 s. A record that was in
    /// flight when it passed may or may not have been written.
    pub delivery_timeout: Duration,
    /// The identity under which a restarted process fences its predecessor. Default none: not transactional.
    pub transactional_id: Option<Arc<str>>,
    /// After this long the coordinator aborts an open transaction by itself. Default 60 s, as Kafka's. Must be shorter than
    /// the group's session timeout where offsets go into the transaction, so that a stuck one ends before its
    /// partitions move.
    pub transaction_timeout: Duration,
    /// How long the transactional sink gathers records before it ends their transaction. Default 100 ms, Kafka Streams' `commit.interval.ms`
    /// under exactly-once. It is what a reader of committed records waits longest beyond the writing itself; each transaction costs a few
    /// round trips and a marker in every partition written to, so shorter is dearer. Must be shorter than
    /// [`transaction_timeout`](Self#structfield.transaction_timeout).
    pub transaction_interval: Duration,
}

impl ProducerSettings {
    /// Settings for the cluster behind `bootstrap` (`host:port`, several separated by commas).
    pub fn new(bootstrap: &str) -> Self {
        Self {
            client: ClientSettings::new(bootstrap),
            acks: Acks::default(),
            idempotent: true,
            compression: Codec::Lz4,
            compression_level: None,
            linger: Duration::from_millis(5),
            batch_bytes: 256 << 10,
            max_request_bytes: 1 << 20,
            buffer_bytes: 32 << 20,
            max_in_flight: 5,
            delivery_timeout: Duration::from_secs(120),
            transactional_id: None,
            transaction_timeout: Duration::from_secs(60),
            transaction_interval: Duration::from_millis(100),
        }
    }

    /// Sets [`acks`](Self#structfield.acks).
    pub fn acks(mut self, acks: Acks) -> Self {
        self.acks = acks;
        self
    }

    /// Sets [`idempotent`](Self#structfield.idempotent).
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets [`compression`](Self#structfield.compression), at the codec's own level.
    pub fn compression(mut self, codec: Codec) -> Self {
        self.compression = codec;
        self.compression_level = None;
        self
    }

    /// Sets [`linger`](Self#structfield.linger); zero sends each batch as soon as a request may be sent.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Sets [`batch_bytes`](Self#structfield.batch_bytes).
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// Sets [`max_request_bytes`](Self#structfield.max_request_bytes).
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.max_request_bytes = bytes;
        self
    }

    /// Sets [`buffer_bytes`](Self#structfield.buffer_bytes).
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Sets [`max_in_flight`](Self#structfield.max_in_flight).
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = requests;
        self
    }

    /// Sets [`delivery_timeout`](Self#structfield.delivery_timeout).
    pub fn delivery_timeout(mut self, limit: Duration) -> Self {
        self.delivery_timeout = limit;
        self
    }

    /// Makes the producer transactional under this identity.
    pub fn transactional_id(mut self, id: &str) -> Self {
        self.transactional_id = Some(id.into());
        self
    }

    /// Sets [`transaction_timeout`](Self#structfield.transaction_timeout).
    pub fn transaction_timeout(mut self, limit: Duration) -> Self {
        self.transaction_timeout = limit;
        self
    }

    /// Sets [`transaction_interval`](Self#structfield.transaction_interval).
    pub fn transaction_interval(mut self, interval: Duration) -> Self {
        self.transaction_interval = interval;
        self
    }

    /// Changes the client settings.
    pub fn with_client(mut self, change: impl FnOnce(ClientSettings) -> ClientSettings) -> Self {
        self.client = change(self.client);
        self
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that does not hold.
    pub fn validate(&self) -> Result<(), SettingsError> {
        self.client.validate()?;
        size("max_request_bytes", self.max_request_bytes, 1 << 10, i32::MAX as usize)?;
        size("batch_bytes", self.batch_bytes, 1, self.max_request_bytes)?;
        size("buffer_bytes", self.buffer_bytes, self.batch_bytes, usize::MAX)?;
        duration("delivery_timeout", self.delivery_timeout)?;
        duration("transaction_timeout", self.transaction_timeout)?;
        duration("transaction_interval", self.transaction_interval)?;
        let most = if self.idempotent { 5 } else { 1 << 10 };
        size("max_in_flight", self.max_in_flight, 1, most)?;
        if self.idempotent && self.acks != Acks::All {
            return Err(SettingsError::Conflict {
                first: "idempotent",
                second: "acks",
                remedy: "an idempotent producer needs Acks::All",
            });
        }
        if let Some(name) = &self.transactional_id {
            id("transactional_id", name)?;
            if self.transaction_interval >= self.transaction_timeout {
                return Err(SettingsError::Conflict {
                    first: "transaction_interval",
                    second: "transaction_timeout",
                    remedy: "a transaction must be ended before the coordinator gives it up",
                });
            }
            if !self.idempotent {
                return Err(SettingsError::Conflict {
                    first: "transactional_id",
                    second: "idempotent",
                    remedy: "a transactional producer is always idempotent",
                });
            }
        }
        if self.delivery_timeout < self.linger + self.client.request_timeout {
            return Err(SettingsError::Conflict {
                first: "delivery_timeout",
                second: "request_timeout",
                remedy: "delivery_timeout must be at least linger plus request_timeout, or no request could time out first",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_contradictions_and_names_the_setting() {
        let base = || ProducerSettings::new("localhost:9092");
        let err = |settings: ProducerSettings| settings.validate().unwrap_err().to_string();
        assert!(err(base().acks(Acks::Leader)).starts_with("idempotent and acks"));
        assert!(err(base().max_in_flight(6)).starts_with("max_in_flight is 6"));
        assert!(
            err(base().idempotent(false).transactional_id("t"))
                .starts_with("transactional_id and idempotent")
        );
        assert!(err(base().delivery_timeout(Duration::from_secs(1))).starts_with("delivery_timeout and"));
        let patient = base().transactional_id("t").transaction_interval(Duration::from_secs(60));
        assert!(err(patient).starts_with("transaction_interval and"));
        base().transactional_id("t").validate().unwrap();
    }
}
