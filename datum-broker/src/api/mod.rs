//! One file per API, each with its versions on top.
//!
//! A handler turns a decoded request into a response: it names the answer of every part and leaves the rules to the
//! machines. Handlers never wait, but for the four whose answers may have to: Produce (for memory), Fetch (for data),
//! JoinGroup and SyncGroup (for the other members).

pub(crate) mod add_offsets_to_txn;
pub(crate) mod add_partitions_to_txn;
pub(crate) mod alter_configs;
pub(crate) mod api_versions;
pub(crate) mod create_partitions;
pub(crate) mod create_topics;
pub(crate) mod delete_groups;
pub(crate) mod delete_records;
pub(crate) mod delete_topics;
pub(crate) mod describe_cluster;
pub(crate) mod describe_configs;
pub(crate) mod describe_groups;
pub(crate) mod end_txn;
pub(crate) mod fetch;
pub(crate) mod find_coordinator;
pub(crate) mod heartbeat;
pub(crate) mod incremental_alter_configs;
pub(crate) mod init_producer_id;
pub(crate) mod join_group;
pub(crate) mod leave_group;
pub(crate) mod list_groups;
pub(crate) mod list_offsets;
pub(crate) mod metadata;
pub(crate) mod offset_commit;
pub(crate) mod offset_delete;
pub(crate) mod offset_fetch;
pub(crate) mod offset_for_leader_epoch;
pub(crate) mod produce;
pub(crate) mod sync_group;
pub(crate) mod txn_offset_commit;

mod table;

use datum_kafka::wire::ErrorCode;

pub use table::Api;
pub(crate) use table::{TABLE, Versions};

use crate::code::Code;

/// Versions served: the lowest and the highest.
pub(crate) type Range = (i16, i16);

/// What a handler must know of a request beside its body.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The node that was asked.
    pub node: i32,
    pub version: i16,
    pub client_id: String,
    pub host: String,
    /// An error that a script wants answered instead.
    pub forced: Option<Code>,
}

impl Call {
    /// # Errors
    /// What the script says.
    pub(crate) fn forced(&self) -> Result<(), Code> {
        match self.forced {
            Some(ErrorCode::None) | None => Ok(()),
            Some(code) => Err(code),
        }
    }
}
