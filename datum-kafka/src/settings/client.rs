//! What every client needs: where the cluster is, and how patient to be with it.

use std::sync::Arc;
use std::time::Duration;

use datum_net::{AddressList, BackoffPolicy};

use super::SettingsError;
use super::error::{duration, id, size};

/// Settings shared by consumers, producers and administration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientSettings {
    /// `host:port`, several separated by commas. All are used: the first contact goes to a random one and on to the others,
    /// and when every known broker is gone they are asked again. Three are enough for any cluster.
    pub bootstrap: Arc<str>,
    /// The name brokers show in logs, quotas and metrics. Default `datum`.
    pub client_id: Arc<str>,
    /// How long one connection attempt to one address may take. Default 10 s, as Kafka's.
    pub connect_timeout: Duration,
    /// How long the first contact goes on when every bootstrap address *refuses* the connection, so that nobody listens there. Default 5 s:
    /// long enough for a broker that is just starting, short enough for a wrong port to be noticed. Addresses that are silent
    /// are tried for `request_timeout`, and so is everything once the first contact was made.
    pub first_contact_timeout: Duration,
    /// How long a request may take before its connection is closed and everything in flight on it fails. Requests that wait on
    /// purpose (a long-polling fetch, a join) get their own waiting time on top. Default 30 s, as Kafka's; shorter finds
    /// dead brokers sooner and gives up on slow ones.
    pub request_timeout: Duration,
    /// Delays between attempts of a request that may be retried. Default 100 ms to 1 s.
    pub retry_backoff: BackoffPolicy,
    /// Delays between attempts to connect. Default 50 ms to 1 s.
    pub reconnect_backoff: BackoffPolicy,
    /// How old metadata may get before it is fetched again though nothing failed. Default 5 min, as Kafka's; that is also how
    /// long a new partition of a topic may go unnoticed, so a job that must meet it in time sets 5 s. A refresh costs one
    /// small request.
    pub metadata_max_age: Duration,
    /// How long a subscribed topic may be unknown before that is an error. Default 60 s: a topic just created
    /// is unknown to some brokers for a moment, and a misspelt one should not wait for ever.
    pub unknown_topic_grace: Duration,
    /// The longest response accepted, in bytes; a longer length prefix closes the connection before anything is allocated.
    /// Default 128 MiB. A consumer needs at least its fetch limit plus one batch, since a broker answers with one whole
    /// batch even if that exceeds the limit.
    pub max_response_bytes: usize,
    /// How many requests may be open on one connection; more wait their turn. Default 64. Brokers handle a
    /// connection's requests one after another, so more in flight hides the round trip and nothing else.
    pub max_in_flight: usize,
}

impl ClientSettings {
    /// Settings for the cluster behind `bootstrap`.
    pub fn new(bootstrap: &str) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            client_id: "datum".into(),
            connect_timeout: Duration::from_secs(10),
            first_contact_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            retry_backoff: BackoffPolicy::REQUEST,
            reconnect_backoff: BackoffPolicy::RECONNECT,
            metadata_max_age: Duration::from_secs(300),
            unknown_topic_grace: Duration::from_secs(60),
            max_response_bytes: 128 << 20,
            max_in_flight: 64,
        }
    }

    /// Sets [`client_id`](Self#structfield.client_id).
    pub fn client_id(mut self, id: &str) -> Self {
        self.client_id = id.into();
        self
    }

    /// Sets [`connect_timeout`](Self#structfield.connect_timeout).
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets [`first_contact_timeout`](Self#structfield.first_contact_timeout).
    pub fn first_contact_timeout(mut self, limit: Duration) -> Self {
        self.first_contact_timeout = limit;
        self
    }

    /// Sets [`request_timeout`](Self#structfield.request_timeout).
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Sets [`retry_backoff`](Self#structfield.retry_backoff).
    pub fn retry_backoff(mut self, policy: BackoffPolicy) -> Self {
        self.retry_backoff = policy;
        self
    }

    /// Sets [`reconnect_backoff`](Self#structfield.reconnect_backoff).
    pub fn reconnect_backoff(mut self, policy: BackoffPolicy) -> Self {
        self.reconnect_backoff = policy;
        self
    }

    /// Sets [`metadata_max_age`](Self#structfield.metadata_max_age).
    pub fn metadata_max_age(mut self, age: Duration) -> Self {
        self.metadata_max_age = age;
        self
    }

    /// Sets [`unknown_topic_grace`](Self#structfield.unknown_topic_grace).
    pub fn unknown_topic_grace(mut self, grace: Duration) -> Self {
        self.unknown_topic_grace = grace;
        self
    }

    /// Sets [`max_response_bytes`](Self#structfield.max_response_bytes).
    pub fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.max_response_bytes = bytes;
        self
    }

    /// Sets [`max_in_flight`](Self#structfield.max_in_flight).
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = requests;
        self
    }

    /// Checks every setting and returns the bootstrap addresses.
    ///
    /// # Errors
    /// The first setting that does not hold.
    pub fn validate(&self) -> Result<AddressList, SettingsError> {
        id("client_id", &self.client_id)?;
        duration("connect_timeout", self.connect_timeout)?;
        duration("first_contact_timeout", self.first_contact_timeout)?;
        duration("request_timeout", self.request_timeout)?;
        duration("metadata_max_age", self.metadata_max_age)?;
        duration("unknown_topic_grace", self.unknown_topic_grace)?;
        size("max_response_bytes", self.max_response_bytes, 64 << 10, i32::MAX as usize)?;
        size("max_in_flight", self.max_in_flight, 1, 1 << 16)?;
        Ok(self.bootstrap.parse()?)
    }
}
