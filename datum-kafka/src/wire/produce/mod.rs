//! Produce: hands record batches to the leaders of their partitions.
//!
//! Written by hand, because it carries the data: the request is a list of slices, of which the batches are the caller's
//! own, so nothing is joined or copied before the socket.
//!
//! | version | adds |
//! |---|---|
//! | 3 | transactional id, record batches of format 2 |
//! | 5 | log start offset |
//! | 7 | zstd batches (KIP-110) |
//! | 8 | errors of single records, error messages (KIP-467) |
//! | 9 | flexible |
//! | 10 | where new leaders are (KIP-951) |
//! | 12 | adds the partition to the transaction by writing to it (KIP-890) |
//!
//! Version 12 has the bytes of 11 and another meaning, see [`FIRST_VERSION_IMPLICIT_TRANSACTION`].
//!
//! Source: <https://kafka.apache.org/protocol#The_Messages_Produce> and the KIPs named.

mod request;
mod response;

pub use request::{ProducePartition, ProduceRequest, ProduceTopic};
pub use response::{BatchIndexError, ProduceResponse, ProducedPartition, ProducedTopic};

/// The API's key.
pub const KEY: i16 = 0;
/// The API's name, for errors.
pub const NAME: &str = "Produce";
/// Lowest version spoken: the first with record batches of format 2.
pub const MIN_VERSION: i16 = 3;
/// Highest version spoken; later ones name topics by id.
pub const MAX_VERSION: i16 = 12;
/// From this version on a transactional batch adds its partition to the transaction (KIP-890); only for a transaction that
/// was begun under `transaction.version` 2. Below it AddPartitionsToTxn has to come first.
pub const FIRST_VERSION_IMPLICIT_TRANSACTION: i16 = 12;

/// Whether messages of this version are flexible (KIP-482).
#[must_use]
pub const fn flexible(version: i16) -> bool {
    version >= 9
}

fn check_version(version: i16) -> Result<(), super::WireError> {
    if (MIN_VERSION..=MAX_VERSION).contains(&version) {
        return Ok(());
    }
    Err(super::WireError::UnsupportedVersion { what: NAME, version, min: MIN_VERSION, max: MAX_VERSION })
}

#[cfg(test)]
mod tests;
