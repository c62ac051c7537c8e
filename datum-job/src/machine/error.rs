//! What the machine refuses.

use datum_window::RecordPosition;

/// Why the machine cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A partition that was never added.
    #[error("partition {partition} is not one of this job's; add it first")]
    UnknownPartition {
        /// The partition.
        partition: u32,
    },
    /// A record below the position.
    #[error(
        "partition {} offset {} comes after offset {position} was expected; records must come in offset order",
        at.partition, at.offset
    )]
    OutOfOrder {
        /// The record.
        at: RecordPosition,
        /// The position.
        position: i64,
    },
    /// The log begins after the position.
    #[error(
        "partition {partition}: offset {position} is to be read next, the log begins at {log_start}; join the group again \
         and restore"
    )]
    BelowLogStart {
        /// The partition.
        partition: u32,
        /// The position.
        position: i64,
        /// The log's first offset.
        log_start: i64,
    },
    /// The topic has grown under a co-partitioned job.
    #[error(
        "partition {partition} has appeared in a topic of {count}; keys have moved, so a co-partitioned job ends: let it \
         drain the old topic with --stop-at-end --flush and start on a new one"
    )]
    CountChanged {
        /// The new partition.
        partition: u32,
        /// How many there were.
        count: u32,
    },
}
