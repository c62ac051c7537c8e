//! The broker without its sockets: topics, groups and transactions, and what passes between them.
//!
//! The same contract as its parts: every call carries the time; answers that had to wait come out of
//! [`Core::effects`] after every call; [`Core::deadline`] tells when [`Core::tick`] has something to do.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::clock::millis;
use crate::code::Code;
use crate::group::{Answer, Groups, Ticket};
use crate::log::partition::Partition;
use crate::log::retention;
use crate::random::Random;
use crate::settings::Settings;
use crate::topics::{TopicConfig, Topics};
use crate::txn::{Marker, Transactions};

/// A node as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub id: i32,
    pub host: String,
    pub port: u16,
}

/// What a call has set off.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Requests that can now be answered.
    pub answers: Vec<(Ticket, Answer)>,
    /// Partitions in which a waiting fetch may now find something.
    pub changed: Vec<(Uuid, i32)>,
    /// Memory may be had again.
    pub freed: bool,
}

/// The broker's state.
#[derive(Debug)]
pub(crate) struct Core {
    pub settings: Settings,
    pub nodes: Vec<Node>,
    pub cluster_id: String,
    pub topics: Topics,
    pub groups: Groups,
    pub txns: Transactions,
    random: Random,
    /// Coordinators that a script has moved, by group or transactional id.
    moved: BTreeMap<String, i32>,
    changed: Vec<(Uuid, i32)>,
    freed: bool,
    next_retention: i64,
}

impl Core {
    pub(crate) fn new(settings: Settings, nodes: Vec<Node>, now: i64) -> Self {
        let mut random = Random::new(settings.seed);
        Self {
            cluster_id: random.uuid().simple().to_string()[..22].to_owned(),
            topics: Topics::default(),
            groups: Groups::new(settings.groups(), Random::new(random.next())),
            txns: Transactions::new(settings.transactions()),
            random,
            moved: BTreeMap::new(),
            changed: Vec::new(),
            freed: false,
            next_retention: now + millis(settings.retention_check),
            nodes,
            settings,
        }
    }

    /// What the calls since the last one have set off.
    pub(crate) fn effects(&mut self) -> Effects {
        Effects {
            answers: self.groups.answers(),
            changed: std::mem::take(&mut self.changed),
            freed: std::mem::take(&mut self.freed),
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn deadline(&self) -> i64 {
        let others = self.groups.deadline().into_iter().chain(self.txns.deadline()).min();
        others.map_or(self.next_retention, |other| other.min(self.next_retention))
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: i64) {
        self.groups.tick(now);
        for marker in self.txns.tick(now) {
            self.write(&marker, now);
        }
        if self.next_retention <= now {
            self.next_retention = now + millis(self.settings.retention_check);
            self.retain(now);
            let before = now - millis(self.settings.producer_expiry);
            for (_, topic) in self.topics.iter_mut() {
                topic.partitions.iter_mut().for_each(|partition| partition.expire_producers(before));
            }
        }
    }

    fn write(&mut self, marker: &Marker, now: i64) {
        for (topic, index) in &marker.partitions {
            if let Ok(partition) = self.topics.partition_mut(topic, *index) {
                partition.end_transaction(marker.producer.id, marker.producer.epoch, marker.commit, now);
                self.touch(topic, *index);
            }
        }
        for group in &marker.groups {
            self.groups.end_transaction(group, marker.producer.id, marker.commit);
        }
        self.freed |= self.settings.delete_consumed;
    }

    /// Drops what the topics' retention no longer keeps.
    fn retain(&mut self, now: i64) {
        let mut freed = 0;
        for (_, topic) in self.topics.iter_mut() {
            for partition in &mut topic.partitions {
                freed += retention::enforce(partition, &topic.config, now);
            }
        }
        self.freed |= freed > 0;
    }

    /// Drops what every group has committed, where that is wished.
    fn drop_consumed(&mut self) {
        let everywhere = self.settings.delete_consumed;
        for (name, topic) in self.topics.iter_mut() {
            if !everywhere && !topic.config.delete_consumed {
                continue;
            }
            for (index, partition) in (0..).zip(&mut topic.partitions) {
                let stable = partition.stable();
                if let Some(consumed) = self.groups.consumed(name, index) {
                    partition.drop_while(|batch, _| batch.last_offset() < consumed.min(stable));
                }
            }
        }
    }

    /// Whether `bytes` more fit into the memory, if need be after dropping what may go.
    pub(crate) fn make_room(&mut self, bytes: u64, now: i64) -> bool {
        if self.topics.bytes() + bytes <= self.settings.memory {
            return true;
        }
        self.retain(now);
        self.drop_consumed();
        self.topics.bytes() + bytes <= self.settings.memory
    }

    /// Notes that offsets were committed, so that memory may be had.
    pub(crate) fn note_commit(&mut self) {
        self.freed = true;
    }

    /// Notes that memory was freed.
    pub(crate) fn note_freed(&mut self) {
        self.freed = true;
    }

    /// Notes that a waiting fetch may find something in this partition.
    pub(crate) fn touch(&mut self, topic: &str, index: i32) {
        if let Some(topic) = self.topics.get(topic) {
            self.changed.push((topic.id, index));
        }
    }

    /// Creates a topic with a fresh id.
    ///
    /// # Errors
    /// Those of [`Topics::create`].
    pub(crate) fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        config: TopicConfig,
    ) -> Result<Uuid, Code> {
        let id = self.random.uuid();
        let nodes: Vec<_> = self.nodes.iter().map(|node| node.id).collect();
        self.topics.create(name, id, partitions, config, &nodes)?;
        Ok(id)
    }

    /// Creates a topic that somebody asked for, where the settings allow it.
    pub(crate) fn auto_create(&mut self, name: &str, asked: bool) {
        if let (Some(partitions), true, None) = (self.settings.auto_create, asked, self.topics.get(name)) {
            let config = TopicConfig::new(BTreeMap::new()).expect("the defaults are valid");
            // A name that is not legal stays unknown, and the answer says so.
            let _ = self.create_topic(name, partitions, config);
        }
    }

    /// Deletes a topic, its offsets with it.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`.
    pub(crate) fn delete_topic(&mut self, name: &str) -> Result<(), Code> {
        let topic = self.topics.delete(name).ok_or(Code::UnknownTopicOrPartition)?;
        for (index, _) in (0..).zip(&topic.partitions) {
            self.changed.push((topic.id, index));
        }
        self.groups.forget_topic(name);
        self.freed = true;
        Ok(())
    }

    /// The partition, if `node` leads it.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`, `NotLeaderOrFollower`.
    pub(crate) fn led(&self, topic: &str, index: i32, node: i32) -> Result<&Partition, Code> {
        let partition = self.topics.partition(topic, index)?;
        if partition.leader == node { Ok(partition) } else { Err(Code::NotLeaderOrFollower) }
    }

    /// The partition, if `node` leads it.
    ///
    /// # Errors
    /// As [`Self::led`].
    pub(crate) fn led_mut(&mut self, topic: &str, index: i32, node: i32) -> Result<&mut Partition, Code> {
        let partition = self.topics.partition_mut(topic, index)?;
        if partition.leader == node { Ok(partition) } else { Err(Code::NotLeaderOrFollower) }
    }

    /// The node that coordinates a group or a transactional id.
    pub(crate) fn coordinator(&self, key: &str) -> &Node {
        let moved = self.moved.get(key).and_then(|id| self.nodes.iter().find(|node| node.id == *id));
        moved.unwrap_or_else(|| {
            let hash = key.bytes().fold(0usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
            &self.nodes[hash % self.nodes.len()]
        })
    }

    /// # Errors
    /// `NotCoordinator` when another node coordinates `key`.
    pub(crate) fn coordinates(&self, key: &str, node: i32) -> Result<(), Code> {
        if self.coordinator(key).id == node { Ok(()) } else { Err(Code::NotCoordinator) }
    }

    /// Moves the coordinator of a group or transactional id.
    pub(crate) fn move_coordinator(&mut self, key: &str, node: i32) {
        self.moved.insert(key.to_owned(), node);
    }
}

/// Checks the leader epoch that a client believes in.
///
/// # Errors
/// `FencedLeaderEpoch` for an older one, `UnknownLeaderEpoch` for a newer.
pub(crate) fn check_epoch(partition: &Partition, believed: i32) -> Result<(), Code> {
    match believed {
        -1 => Ok(()),
        epoch if epoch < partition.leader_epoch => Err(Code::FencedLeaderEpoch),
        epoch if epoch > partition.leader_epoch => Err(Code::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}
