//! Why a broker did not start.

use std::io;
use std::net::SocketAddr;

/// A broker could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A node could not listen.
    #[error(
        "the embedded broker cannot listen on {address}: {source}; choose another port, or 0 for any free one"
    )]
    Listen {
        /// Where it should have listened.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A setting makes no sense.
    #[error("the embedded broker cannot start: {0}")]
    Setting(SettingError),
}

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// There must be between one and a hundred nodes.
    #[error("nodes must be between 1 and 100, not {0}")]
    Nodes(usize),
    /// The ports of the nodes go beyond the last one.
    #[error(
        "port {0} leaves no room for the ports of the other nodes; choose a lower one, or 0 for any free ones"
    )]
    Port(u16),
    /// There are transactions of version 0, 1 and 2.
    #[error("transaction_version must be 0, 1 or 2, not {0}")]
    TransactionVersion(i16),
}

/// Why a call on a running broker was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The broker refuses as it would refuse a client.
    #[error("the embedded broker refuses: {} ({})", .0.name(), .0.meaning())]
    Refused(datum_kafka::wire::ErrorCode),
    /// A setting of a topic is unknown or impossible.
    #[error("the embedded broker refuses the topic's settings: {0}")]
    Config(String),
    /// The bytes do not begin with the header of a record batch.
    #[error("the bytes are not a record batch: {0}")]
    Batch(#[from] datum_kafka::wire::batch::BatchError),
    /// There is no such node.
    #[error("there is no node {0}; nodes are numbered from 1")]
    Node(i32),
}
