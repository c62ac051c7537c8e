//! Consuming: partitions in, decoded batches out.
//!
//! - [`Consumer`]: partitions assigned by hand, a plain async API without the stream engine.
//! - [`GroupConsumer`]: a member of a group, with acknowledgements that become commits.
//! - [`Fetcher`] and [`Batches`]: its two halves, for what assigns partitions itself (group membership) or polls (stages).
//! - [`PartitionHandle`]: a partition under one assignment; decides what may be emitted and committed.
//! - [`RecordsBatch`]: what comes out.
//!
//! ```no_run
//! use datum_kafka::consumer::Consumer;
//! use datum_kafka::{ConsumerSettings, StartAt, TopicPartition};
//! # async fn run() -> datum_kafka::Result<()> {
//! let settings = ConsumerSettings::new("localhost:9092").assign(TopicPartition::new("bench-input", 0), StartAt::Beginning);
//! let mut consumer = Consumer::connect(&settings).await?;
//! loop {
//!     let batch = consumer.next().await?;
//!     for record in batch.records() {
//!         let _ = (record.offset(), record.key(), record.value());
//!     }
//! }
//! # }
//! ```

mod batches;
mod fetcher;
mod handle;
mod member;
mod meter;
mod records;

use std::task::{Context, Poll};

pub use batches::Batches;
pub use fetcher::Fetcher;
pub use handle::{FetchAnswer, PartitionHandle, PartitionState};
pub(crate) use member::Member;
pub use member::{Acknowledgement, GroupConsumer};
pub use records::{BatchRecords, RecordsBatch};

use crate::TopicPartition;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::settings::{ConsumerSettings, StartAt};

/// A consumer of partitions assigned by hand. Commits nothing.
///
/// Dropping it ends its fetching.
#[derive(Debug)]
pub struct Consumer {
    cluster: Cluster,
    fetcher: Fetcher,
    batches: Batches,
    handles: Vec<PartitionHandle>,
}

impl Consumer {
    /// Connects, and assigns the partitions of the settings.
    ///
    /// # Errors
    /// [`Settings`](crate::KafkaErrorKind::Settings), or no bootstrap address answers. A partition that does not exist is reported by
    /// [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connect(settings: &ConsumerSettings) -> Result<Self> {
        settings.validate()?;
        let cluster = Cluster::connect(settings.client.clone()).await?;
        Self::on(cluster, settings)
    }

    /// A consumer on a cluster that is already connected.
    ///
    /// # Errors
    /// [`Settings`](crate::KafkaErrorKind::Settings).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn on(cluster: Cluster, settings: &ConsumerSettings) -> Result<Self> {
        let (fetcher, batches) = Fetcher::start(cluster.clone(), settings)?;
        let mut consumer = Self { cluster, fetcher, batches, handles: Vec::new() };
        for (partition, start) in &settings.assignment {
            consumer.assign(partition.clone(), *start);
        }
        Ok(consumer)
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The half that assigns.
    pub fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    /// The partitions assigned, in the order they were.
    pub fn handles(&self) -> &[PartitionHandle] {
        &self.handles
    }

    /// Assigns one more partition; again, if it was assigned before.
    pub fn assign(&mut self, partition: TopicPartition, start: StartAt) -> PartitionHandle {
        self.unassign(&partition);
        let handle = PartitionHandle::new(partition);
        self.fetcher.assign(&handle, start);
        self.handles.push(handle.clone());
        handle
    }

    /// Takes a partition away: nothing of it is emitted any more. Returns the offset after the last emitted record, if there was one.
    pub fn unassign(&mut self, partition: &TopicPartition) -> Option<i64> {
        let at = self.handles.iter().position(|handle| handle.partition() == partition)?;
        let handle = self.handles.remove(at);
        let emitted = handle.revoke();
        self.fetcher.release(&handle);
        emitted
    }

    /// The next batch, or what befell a partition; after an error the other partitions go on, and a [seek](Fetcher::seek) brings the failed one
    /// back.
    ///
    /// # Errors
    /// What befell a partition.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost by dropping the future.
    pub async fn next(&mut self) -> Result<RecordsBatch> {
        self.batches.next().await
    }

    /// As [`next`](Self::next), for stages.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecordsBatch>> {
        self.batches.poll_next(cx)
    }
}
