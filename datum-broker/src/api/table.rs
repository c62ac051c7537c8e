//! The APIs that the broker serves, with their numbers and versions.

use std::fmt;

use crate::api::{
    Range, add_offsets_to_txn, add_partitions_to_txn, alter_configs, api_versions, create_partitions,
    create_topics, delete_groups, delete_records, delete_topics, describe_cluster, describe_configs,
    describe_groups, end_txn, fetch, find_coordinator, heartbeat, incremental_alter_configs,
    init_producer_id, join_group, leave_group, list_groups, list_offsets, metadata, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, produce, sync_group, txn_offset_commit,
};

macro_rules! apis {
    ($($name:ident = $key:literal, $module:ident;)*) => {
        /// An API of the protocol that the broker serves; the number is the protocol's key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Api {
            $(#[doc = concat!("API key ", stringify!($key), ".")] $name = $key,)*
        }

        impl Api {
            /// The API with a protocol key, if the broker serves it.
            pub fn from_key(key: i16) -> Option<Self> {
                match key {
                    $($key => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The protocol's key.
            pub fn key(self) -> i16 {
                self as i16
            }
        }

        /// Versions of every API served.
        pub(crate) const TABLE: &[Versions] = &[
            $(Versions { api: Api::$name, handled: $module::VERSIONS },)*
        ];
    };
}

apis! {
    Produce = 0, produce;
    Fetch = 1, fetch;
    ListOffsets = 2, list_offsets;
    Metadata = 3, metadata;
    OffsetCommit = 8, offset_commit;
    OffsetFetch = 9, offset_fetch;
    FindCoordinator = 10, find_coordinator;
    JoinGroup = 11, join_group;
    Heartbeat = 12, heartbeat;
    LeaveGroup = 13, leave_group;
    SyncGroup = 14, sync_group;
    DescribeGroups = 15, describe_groups;
    ListGroups = 16, list_groups;
    ApiVersions = 18, api_versions;
    CreateTopics = 19, create_topics;
    DeleteTopics = 20, delete_topics;
    DeleteRecords = 21, delete_records;
    InitProducerId = 22, init_producer_id;
    OffsetForLeaderEpoch = 23, offset_for_leader_epoch;
    AddPartitionsToTxn = 24, add_partitions_to_txn;
    AddOffsetsToTxn = 25, add_offsets_to_txn;
    EndTxn = 26, end_txn;
    TxnOffsetCommit = 28, txn_offset_commit;
    DescribeConfigs = 32, describe_configs;
    AlterConfigs = 33, alter_configs;
    CreatePartitions = 37, create_partitions;
    DeleteGroups = 42, delete_groups;
    IncrementalAlterConfigs = 44, incremental_alter_configs;
    OffsetDelete = 47, offset_delete;
    DescribeCluster = 60, describe_cluster;
}

/// The versions of one API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Versions {
    pub api: Api,
    pub handled: Range,
}

impl Versions {
    /// The versions that ApiVersions tells. Produce is said to begin at 0, as Apache Kafka 4 does, since librdkafka
    /// otherwise takes the broker for an old one that knows no record batches.
    pub(crate) fn told(&self) -> Range {
        match self.api {
            Api::Produce => (0, self.handled.1),
            _ => self.handled,
        }
    }
}

impl Api {
    /// The versions handled.
    pub(crate) fn versions(self) -> Range {
        TABLE.iter().find(|row| row.api == self).map_or((0, -1), |row| row.handled)
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
