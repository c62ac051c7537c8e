//! Where a partition's new leader is, told by the answer that says the old one is not (KIP-951).

use crate::wire::WireError;
use crate::wire::reader::Reader;

/// A partition's leader as the answering broker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentLeader {
    /// The leader's node id, -1 if there is none.
    pub leader: i32,
    /// Its epoch, -1 if it is not known.
    pub epoch: i32,
}

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// The node's id.
    pub node: i32,
    /// Its host.
    pub host: Box<str>,
    /// Its port.
    pub port: i32,
    /// Its rack.
    pub rack: Option<Box<str>>,
}

impl CurrentLeader {
    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let leader = Self { leader: r.i32("leader id")?, epoch: r.i32("leader epoch")? };
        r.skip_tagged_fields("current leader")?;
        Ok(leader)
    }
}

impl NodeEndpoint {
    pub(super) fn read_all(r: &mut Reader<'_>) -> Result<Vec<Self>, WireError> {
        let count = r.array("node endpoints", MIN_ENDPOINT)?;
        let mut endpoints = Vec::with_capacity(count);
        for _ in 0..count {
            let endpoint = Self {
                node: r.i32("node id")?,
                host: r.string("host")?.into(),
                port: r.i32("port")?,
                rack: r.nullable_string("rack")?.map(Into::into),
            };
            r.skip_tagged_fields("node endpoint")?;
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }
}

/// Id, port, and one byte each for host, rack and tagged fields.
const MIN_ENDPOINT: usize = 11;
