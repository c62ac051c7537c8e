//! Fetch: asks a broker for the records of many partitions from given offsets on.
//!
//! Written by hand, because it carries the data: the answer's records are slices of the frame, never copies.
//!
//! | version | adds |
//! |---|---|
//! | 4 | isolation level, last stable offset, aborted transactions |
//! | 5 | log start offset |
//! | 7 | fetch sessions (KIP-227) |
//! | 9 | current leader epoch (KIP-320) |
//! | 10 | zstd batches (KIP-110) |
//! | 11 | rack, preferred read replica (KIP-392) |
//! | 12 | flexible; last fetched epoch, diverging epoch (KIP-595) |
//! | 13 | topic ids (KIP-516) |
//! | 15 | the replica id moves to a tagged field, which clients do not send |
//! | 16 | where new leaders are (KIP-951) |
//! | 17 | for followers only |
//!
//! Source: <https://kafka.apache.org/protocol#The_Messages_Fetch> and the KIPs named.

mod request;
mod response;

pub use request::{FetchPartition, FetchRequest, FetchTopic, ForgottenTopic};
pub use response::{DivergingEpoch, FetchResponse, FetchedPartition, FetchedTopic};

/// The API's key.
pub const KEY: i16 = 1;
/// The API's name, for errors.
pub const NAME: &str = "Fetch";
/// Lowest version spoken: the first with record batches and isolation levels.
pub const MIN_VERSION: i16 = 4;
/// Highest version spoken.
pub const MAX_VERSION: i16 = 17;
/// From this version on topics are named by id alone. If one of the topics has no id, stay below it.
pub const FIRST_VERSION_BY_ID: i16 = 13;

/// Whether messages of this version are flexible (KIP-482).
#[must_use]
pub const fn flexible(version: i16) -> bool {
    version >= 12
}

fn check_version(version: i16) -> Result<(), super::WireError> {
    if (MIN_VERSION..=MAX_VERSION).contains(&version) {
        return Ok(());
    }
    Err(super::WireError::UnsupportedVersion { what: NAME, version, min: MIN_VERSION, max: MAX_VERSION })
}

#[cfg(test)]
mod tests;
