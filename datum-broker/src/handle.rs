//! A running broker, in the hands of whoever started it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use datum_kafka::wire::ErrorCode;
use datum_kafka::wire::batch::BatchHeader;
use tokio::task::JoinHandle;

use crate::clock::{BrokerClock, millis};
use crate::core::{Core, Node};
use crate::error::AdminError;
use crate::faults::Faults;
use crate::server::Shared;
use crate::topics::TopicConfig;

/// A running broker. Dropping it stops the broker without waiting; [`Self::stop`] waits.
///
/// Its calls do at once what a client or a second node would do over the wire; waiting requests are woken by them.
#[derive(Debug)]
pub struct BrokerHandle {
    shared: Arc<Shared>,
    nodes: Vec<Node>,
    tasks: Vec<JoinHandle<()>>,
}

/// Offsets and leadership of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionState {
    /// Node that leads it.
    pub leader: i32,
    /// Rises with every election.
    pub leader_epoch: i32,
    /// First offset that can be read.
    pub log_start: i64,
    /// Offset of the next record.
    pub high_watermark: i64,
    /// First offset of the oldest open transaction, else the high watermark.
    pub last_stable: i64,
    /// Bytes of its record batches.
    pub bytes: u64,
}

impl BrokerHandle {
    pub(crate) fn new(shared: Arc<Shared>, nodes: Vec<Node>, tasks: Vec<JoinHandle<()>>) -> Self {
        Self { shared, nodes, tasks }
    }

    /// Addresses of all nodes, `host:port` separated by commas: what clients call bootstrap servers.
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<_> = self.nodes.iter().map(address).collect();
        addresses.join(",")
    }

    /// Address of one node, `host:port`.
    ///
    /// # Errors
    /// [`AdminError::Node`].
    pub fn address(&self, node: i32) -> Result<String, AdminError> {
        self.nodes.iter().find(|known| known.id == node).map(address).ok_or(AdminError::Node(node))
    }

    /// The script of faults.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// The broker's clock.
    pub fn clock(&self) -> &BrokerClock {
        &self.shared.clock
    }

    /// Creates a topic with settings such as `("retention.ms", "-1")`.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it exists, or its name or number of partitions is not possible;
    /// [`AdminError::Config`].
    pub fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        config: &[(&str, &str)],
    ) -> Result<(), AdminError> {
        let overrides: BTreeMap<_, _> = config.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let config = TopicConfig::new(overrides).map_err(AdminError::Config)?;
        self.core(|core, _| core.create_topic(name, partitions, config).map(|_| ()))
    }

    /// Deletes a topic with everything in it.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it does not exist.
    pub fn delete_topic(&self, name: &str) -> Result<(), AdminError> {
        self.core(|core, _| core.delete_topic(name))
    }

    /// Offsets and leadership of a partition.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it does not exist.
    pub fn partition(&self, topic: &str, index: i32) -> Result<PartitionState, AdminError> {
        self.core(|core, _| {
            core.topics.partition(topic, index).map(|partition| PartitionState {
                leader: partition.leader,
                leader_epoch: partition.leader_epoch,
                log_start: partition.start(),
                high_watermark: partition.end(),
                last_stable: partition.stable(),
                bytes: partition.bytes(),
            })
        })
    }

    /// Bytes that the record batches of all topics take.
    pub fn memory_used(&self) -> u64 {
        self.shared.with(|locked, _| locked.core.topics.bytes())
    }

    /// The offset that a group has committed for a partition, with its metadata.
    pub fn committed(&self, group: &str, topic: &str, index: i32) -> Option<(i64, String)> {
        self.shared.with(|locked, _| {
            let group = locked.core.groups.get(group)?;
            let found = group.offsets.committed.get(&(topic.to_owned(), index))?;
            Some((found.offset, found.metadata.clone()))
        })
    }

    /// Appends a record batch as it is, whatever its content: its header must be readable, its checksum, records and
    /// codec need not be right. Offsets and leader epoch are set. Answers with its base offset.
    ///
    /// For what no client would send and a log may hold: damaged batches, codecs of the future, the gaps that compaction
    /// leaves (a last offset delta above the records).
    ///
    /// # Errors
    /// [`AdminError::Batch`]; [`AdminError::Refused`] when the partition does not exist.
    pub fn append_raw(&self, topic: &str, index: i32, batch: &[u8]) -> Result<i64, AdminError> {
        let header = BatchHeader::read(batch)?;
        if batch.len() != header.size() {
            let (needed, available) = (header.size(), batch.len());
            return Err(datum_kafka::wire::batch::BatchError::Truncated { needed, available }.into());
        }
        self.core(|core, now| {
            let offset = core.topics.partition_mut(topic, index)?.append_raw(batch, now);
            core.touch(topic, index);
            Ok(offset)
        })
    }

    /// Makes a node the leader of a partition, under a new leader epoch. Clients that still ask the old one are told.
    ///
    /// # Errors
    /// [`AdminError::Node`]; [`AdminError::Refused`] when the partition does not exist.
    pub fn move_leader(&self, topic: &str, index: i32, node: i32) -> Result<(), AdminError> {
        self.address(node)?;
        self.elect(topic, index, node)
    }

    fn elect(&self, topic: &str, index: i32, node: i32) -> Result<(), AdminError> {
        self.core(|core, _| {
            core.topics.partition_mut(topic, index)?.elect(node);
            core.touch(topic, index);
            Ok(())
        })
    }

    /// Makes a node the coordinator of a group or a transactional id; its state moves along.
    ///
    /// # Errors
    /// [`AdminError::Node`].
    pub fn move_coordinator(&self, key: &str, node: i32) -> Result<(), AdminError> {
        self.address(node)?;
        self.core(|core, _| {
            core.move_coordinator(key, node);
            Ok(())
        })
    }

    /// Closes every connection of a node; new ones are accepted.
    ///
    /// # Errors
    /// [`AdminError::Node`].
    pub fn close_connections(&self, node: i32) -> Result<(), AdminError> {
        self.address(node)?;
        self.shared.closed.send_modify(|counts| {
            counts.iter_mut().filter(|(id, _)| *id == node).for_each(|(_, count)| *count += 1);
        });
        Ok(())
    }

    /// Takes the leader of a partition away: clients are told that there is none until [`Self::move_leader`] names one.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the partition does not exist.
    pub fn remove_leader(&self, topic: &str, index: i32) -> Result<(), AdminError> {
        self.elect(topic, index, NOBODY)
    }

    /// An unclean election: `node` leads from now on, and its log ends before the first batch that reaches `end` or beyond. What stood
    /// there is lost, and so is what was known of its producers. Answers with the new end.
    ///
    /// # Errors
    /// [`AdminError::Node`]; [`AdminError::Refused`] when the partition does not exist.
    pub fn elect_uncleanly(&self, topic: &str, index: i32, node: i32, end: i64) -> Result<i64, AdminError> {
        self.address(node)?;
        let end = self.core(|core, _| Ok(core.topics.partition_mut(topic, index)?.truncate(end)))?;
        self.elect(topic, index, node)?;
        Ok(end)
    }

    /// Makes this the epoch of a transactional id, as if it had been raised so often, so that the end of the epochs can be met.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the id is not known.
    pub fn set_producer_epoch(&self, transactional_id: &str, epoch: i16) -> Result<(), AdminError> {
        self.core(|core, _| core.txns.set_epoch(transactional_id, epoch))
    }

    /// How many connections are open, over all nodes.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }

    /// Changes how long after the answer to EndTxn the markers of transactions decided from now on are written.
    pub fn set_marker_delay(&self, delay: Duration) {
        self.shared.with(|locked, _| locked.core.txns.set_marker_delay(millis(delay)));
    }

    /// Stops the broker: closes its ports and connections and waits for its tasks. What it held is gone.
    ///
    /// Cancel safe: a broker that is being stopped goes on stopping.
    pub async fn stop(mut self) {
        self.shared.stopping.send_replace(true);
        for task in std::mem::take(&mut self.tasks) {
            // A task that panicked has stopped as well.
            let _ = task.await;
        }
    }

    fn core<T>(&self, call: impl FnOnce(&mut Core, i64) -> Result<T, ErrorCode>) -> Result<T, AdminError> {
        self.shared.with(|locked, now| call(&mut locked.core, now)).map_err(AdminError::Refused)
    }
}

impl Drop for BrokerHandle {
    fn drop(&mut self) {
        self.shared.stopping.send_replace(true);
    }
}

/// The leader of a partition that has none.
const NOBODY: i32 = -1;

fn address(node: &Node) -> String {
    if node.host.contains(':') {
        format!("[{}]:{}", node.host, node.port)
    } else {
        format!("{}:{}", node.host, node.port)
    }
}
