//! Asking about and changing a cluster: topics, partitions, configuration, offsets.
//!
//! An [`Admin`] is a cheap handle over a [`Cluster`]. Every call is one request, tried again within `request_timeout`
//! while the failure is one that passes; refusals come back as typed errors that name the topic or group.
//!
//! Requests that change the cluster go to any broker, which hands them to the controller.

mod committed;
mod configs;
mod members;
mod offsets;
mod topics;

use std::sync::Arc;
use std::time::Duration;

pub use committed::Committed;
use kafka_protocol::messages::TopicName;
use kafka_protocol::protocol::StrBytes;
pub use offsets::{FoundOffset, OffsetSpec};
pub use topics::NewTopic;

use crate::cluster::{Cluster, Metadata};
use crate::error::Result;
use crate::settings::ClientSettings;

/// How long a topic's creation may take to reach every broker.
const SPREAD: Duration = Duration::from_secs(3);

/// A handle for administration. Clones share the cluster's connections.
#[derive(Clone, Debug)]
pub struct Admin {
    cluster: Cluster,
}

impl Admin {
    /// Connects to a cluster.
    ///
    /// # Errors
    /// As [`Cluster::connect`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connect(settings: ClientSettings) -> Result<Self> {
        Ok(Self::new(Cluster::connect(settings).await?))
    }

    /// Administers a cluster that is already connected.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster }
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Metadata in which this topic is known. The topic must be there: it is looked for for 3 s (`unknown_topic_grace`, if that is
    /// less), since some brokers learn of a new topic a moment later. To wait longer use [`Cluster::require_topics`].
    ///
    /// # Errors
    /// [`UnknownTopic`](crate::KafkaErrorKind::UnknownTopic) after that time,
    /// [`Unauthorized`](crate::KafkaErrorKind::Unauthorized) at once, or no broker answers.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn describe_topic(&self, topic: &str) -> Result<Arc<Metadata>> {
        let grace = self.cluster.settings().unknown_topic_grace.min(SPREAD);
        self.cluster.expect_topic(&topic.into(), grace).await?;
        Ok(self.cluster.metadata())
    }
}

fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// The request timeout as the brokers are told it.
fn timeout_ms(cluster: &Cluster) -> i32 {
    i32::try_from(cluster.settings().request_timeout.as_millis()).unwrap_or(i32::MAX)
}
