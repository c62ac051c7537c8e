//! The cluster as a client sees it: who leads what, who coordinates whom, and a connection to each.
//!
//! A [`Cluster`] is a cheap handle shared by everything one client does. It has no task of its own: metadata is fetched by
//! whoever finds that it needs fresher, and callers that want it at the same time share one request
//! ([`Cluster::refresh`]), no more often than the retry backoff permits.
//!
//! # Errors
//! [`Cluster::connect`] fails when no bootstrap address answers, so that a wrong address is noticed at the start. Later, a cluster
//! that is gone makes calls fail with retriable errors while each new call tries every known broker and then the
//! bootstrap addresses again (KIP-899).
//!
//! # Costs
//! A metadata snapshot is shared, not copied. Two connections per broker at most, see [`Purpose`].

mod connections;
mod coordinator;
mod metadata;
mod refresh;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use datum_net::{Backoff, Rng};
use tokio::sync::watch;
use tokio::time::Instant;

use connections::Connections;
pub use connections::Purpose;
pub use coordinator::CoordinatorKind;
pub use metadata::{Broker, Leadership, Metadata, Topic, TopicId};

use crate::TopicPartition;
use crate::connection::{Call, Connection};
use crate::error::{KafkaErrorKind, Result};
use crate::settings::ClientSettings;

/// A handle to a cluster. Clones share everything.
#[derive(Clone, Debug)]
pub struct Cluster(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: ClientSettings,
    connections: Connections,
    metadata: watch::Sender<Arc<Metadata>>,
    /// Held while metadata is being fetched; when the last fetch ended, and how many failed in a row.
    refreshing: tokio::sync::Mutex<refresh::Pace>,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The topics that metadata is kept of, and since when each of them has been unknown.
    topics: BTreeSet<Arc<str>>,
    unknown_since: HashMap<Arc<str>, Instant>,
    coordinators: HashMap<(CoordinatorKind, Arc<str>), i32>,
    fetched_at: Option<Instant>,
}

impl Cluster {
    /// Connects to the cluster behind the settings' bootstrap addresses and learns its brokers.
    ///
    /// # Errors
    /// [`Settings`](KafkaErrorKind::Settings), or what befell the bootstrap addresses when none of them answered: after
    /// `first_contact_timeout` if all refuse the connection, else after `request_timeout`.
    ///
    /// # Cancel safety
    /// Dropping the future closes what it had opened.
    pub async fn connect(settings: ClientSettings) -> Result<Self> {
        let cluster = Self(Arc::new(Inner {
            connections: Connections::new(&settings)?,
            metadata: watch::Sender::new(Arc::default()),
            refreshing: tokio::sync::Mutex::new(refresh::Pace::new(&settings)),
            shared: Mutex::default(),
            settings,
        }));
        cluster.first_contact().await?;
        Ok(cluster)
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &ClientSettings {
        &self.0.settings
    }

    /// What is known at this moment.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.0.metadata.borrow().clone()
    }

    /// Tells of every change of [`metadata`](Self::metadata).
    pub fn watch_metadata(&self) -> watch::Receiver<Arc<Metadata>> {
        self.0.metadata.subscribe()
    }

    /// An open connection to this broker.
    ///
    /// # Errors
    /// [`UnknownBroker`](KafkaErrorKind::UnknownBroker) if metadata does not know it (a refresh may help), or the dial fails.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the connections as they are.
    pub async fn connection(&self, broker: i32, purpose: Purpose) -> Result<Connection> {
        let address = match self.0.metadata.borrow().brokers.get(&broker) {
            Some(broker) => broker.address.clone(),
            None => return Err(KafkaErrorKind::UnknownBroker { broker }.into()),
        };
        self.0.connections.to(broker, purpose, &address).await
    }

    /// Who leads a partition, refreshing metadata until it is known or `unknown_topic_grace` is over.
    ///
    /// # Errors
    /// [`UnknownTopic`](KafkaErrorKind::UnknownTopic), [`NoLeader`](KafkaErrorKind::NoLeader), or no broker answers.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn leader(&self, partition: &TopicPartition) -> Result<(i32, i32)> {
        self.require_topics([partition.topic.clone()]).await?;
        let deadline = Instant::now() + self.settings().request_timeout;
        loop {
            if let Some(Leadership { leader: Some(leader), epoch }) = self.metadata().leadership(partition) {
                return Ok((leader, epoch));
            }
            if Instant::now() >= deadline {
                return Err(KafkaErrorKind::NoLeader { partition: partition.clone() }.into());
            }
            self.refresh().await?;
        }
    }

    /// Sends a request to any broker, trying the next after a broken connection.
    ///
    /// # Errors
    /// What befell the last broker, once `request_timeout` is over.
    ///
    /// # Cancel safety
    /// As [`Connection::send`].
    pub async fn send_to_any<C: Call>(&self, call: &C) -> Result<C::Answer> {
        let mut retry = self.retry();
        loop {
            let answer = async { self.any_connection().await?.send(call).await };
            match answer.await {
                Err(error) if error.is_connection() => retry.wait(error).await?,
                done => return done,
            }
        }
    }

    /// A series of attempts under this cluster's backoff, for `request_timeout`.
    pub fn retry(&self) -> Retry {
        let settings = self.settings();
        Retry {
            deadline: Instant::now() + settings.request_timeout,
            refused: None,
            backoff: Backoff::new(settings.retry_backoff),
            rng: Rng::seeded(self.0.connections.rng().bits()),
        }
    }

    /// A connection to any broker: a known one, at random and on to the others, else a bootstrap address.
    pub(crate) async fn any_connection(&self) -> Result<Connection> {
        let metadata = self.metadata();
        let brokers: Vec<&Broker> = metadata.brokers.values().collect();
        let start = self.0.connections.rng().below(brokers.len());
        for broker in brokers[start..].iter().chain(&brokers[..start]) {
            match self.0.connections.to(broker.id, Purpose::Data, &broker.address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => tracing::debug!(broker = broker.id, %error, "broker does not answer"),
            }
        }
        self.0.connections.to_bootstrap().await
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A series of attempts: waits between them, gives up at a deadline.
#[derive(Debug)]
pub struct Retry {
    deadline: Instant,
    /// An earlier end where nobody listens at any address.
    refused: Option<Instant>,
    backoff: Backoff,
    rng: Rng,
}

impl Retry {
    /// Gives up this long from now instead.
    pub fn within(mut self, limit: Duration) -> Self {
        self.deadline = Instant::now() + limit;
        self
    }

    /// Gives up this long from now already if nobody listens at any address.
    pub(crate) fn refused_within(mut self, limit: Duration) -> Self {
        self.refused = Some(Instant::now() + limit);
        self
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The error given, if it cannot be retried or the deadline would pass.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait<E: Into<crate::KafkaError>>(&mut self, error: E) -> Result<()> {
        let error = error.into();
        let until = Instant::now() + self.backoff.next_delay(&mut self.rng);
        let deadline =
            self.refused.filter(|_| error.is_refused()).map_or(self.deadline, |at| at.min(self.deadline));
        if !error.is_retriable() || until >= deadline {
            return Err(error);
        }
        tracing::debug!(%error, attempt = self.backoff.attempts(), "will be tried again");
        tokio::time::sleep_until(until).await;
        Ok(())
    }
}
