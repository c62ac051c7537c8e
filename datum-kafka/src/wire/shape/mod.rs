//! The layout of control-plane messages as tables, to check a message's counts and lengths before it is decoded.
//!
//! The generated decoders of the `kafka-protocol` crate reserve memory by the array counts on the wire. So every message is
//! walked first: each length and count must be covered by bytes that are really there, tagged fields must ascend and fill
//! their stated size, and the message must end where its bytes do. Afterwards a count is what it says, and decoding costs
//! memory in proportion to the message. The walk itself allocates nothing.
//!
//! One table per message, fields in wire order: name, type, versions. The tables are compared in tests with the generated
//! decoders, in every version.

mod admin;
mod cluster;
mod data;
mod group;
mod offsets;
mod transaction;

use crate::wire::WireError;
use crate::wire::reader::Reader;

/// A message's layout in all its versions.
#[derive(Debug)]
pub struct Shape {
    name: &'static str,
    flexible_from: i16,
    fields: &'static [Field],
}

/// A field of a message or structure.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    kind: Kind,
    first: i16,
    last: i16,
    tag: Option<u32>,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// So many bytes.
    Fixed(usize),
    String,
    /// Bytes with a length: blobs and records.
    Blob,
    Array(&'static Kind),
    /// The fields of a structure, then its tagged fields.
    Struct(&'static [Field]),
    /// A structure behind a byte that says whether it is there.
    Optional(&'static [Field]),
}

const BOOL: Kind = Kind::Fixed(1);
const I8: Kind = Kind::Fixed(1);
const I16: Kind = Kind::Fixed(2);
const I32: Kind = Kind::Fixed(4);
const I64: Kind = Kind::Fixed(8);
const UUID: Kind = Kind::Fixed(16);
const STRING: Kind = Kind::String;
const BLOB: Kind = Kind::Blob;
/// For messages that have no flexible version.
const NEVER: i16 = i16::MAX;

const fn shape(name: &'static str, flexible_from: i16, fields: &'static [Field]) -> Shape {
    Shape { name, flexible_from, fields }
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, first: 0, last: i16::MAX, tag: None }
}

const fn array(element: &'static Kind) -> Kind {
    Kind::Array(element)
}

/// An array of structures.
macro_rules! rows {
    ($($field:expr),* $(,)?) => { $crate::wire::shape::Kind::Array(&$crate::wire::shape::Kind::Struct(&[$($field),*])) };
}
use rows;

const fn one(fields: &'static [Field]) -> Kind {
    Kind::Struct(fields)
}

const fn optional(fields: &'static [Field]) -> Kind {
    Kind::Optional(fields)
}

impl Field {
    /// In this version and later ones.
    const fn since(self, first: i16) -> Self {
        Self { first, ..self }
    }

    /// In this version and earlier ones.
    const fn until(self, last: i16) -> Self {
        Self { last, ..self }
    }

    /// Among the tagged fields.
    const fn tag(self, tag: u32) -> Self {
        Self { tag: Some(tag), ..self }
    }

    const fn is_in(&self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }
}

impl Shape {
    /// The message's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Walks a body of this version.
    ///
    /// # Errors
    /// [`WireError`], naming the field that does not fit.
    pub fn check(&self, version: i16, body: &[u8]) -> Result<(), WireError> {
        let mut r = Reader::new(body, version >= self.flexible_from);
        walk_struct(self.name, self.fields, version, &mut r)?;
        r.finish(self.name)
    }
}

fn walk_struct(
    name: &'static str,
    fields: &'static [Field],
    version: i16,
    r: &mut Reader<'_>,
) -> Result<(), WireError> {
    for field in fields.iter().filter(|field| field.tag.is_none() && field.is_in(version)) {
        walk(field.name, &field.kind, version, r)?;
    }
    r.tagged_fields(name, |tag, content| {
        let Some(field) = fields.iter().find(|field| field.tag == Some(tag) && field.is_in(version)) else {
            return Ok(false);
        };
        walk(field.name, &field.kind, version, content)?;
        Ok(true)
    })
}

/// Recursion is as deep as the tables are nested.
fn walk(name: &'static str, kind: &'static Kind, version: i16, r: &mut Reader<'_>) -> Result<(), WireError> {
    match *kind {
        Kind::Fixed(len) => r.skip(name, len),
        Kind::String => r.nullable_string(name).map(|_| ()),
        Kind::Blob => r.nullable_bytes(name).map(|_| ()),
        Kind::Array(element) => {
            let count = r.nullable_array(name, 1)?.unwrap_or_default();
            for _ in 0..count {
                walk(name, element, version, r)?;
            }
            Ok(())
        }
        Kind::Struct(fields) => walk_struct(name, fields, version, r),
        Kind::Optional(fields) => match r.i8(name)? {
            1 => walk_struct(name, fields, version, r),
            _ => Ok(()),
        },
    }
}

/// A message of the `kafka-protocol` crate whose layout is known.
pub trait Shaped: kafka_protocol::protocol::Message {
    /// The layout.
    const SHAPE: &'static Shape;
}

/// Gives each message its shape, and the tests the list of them.
macro_rules! shaped {
    ($($message:ident $module:ident::$shape:ident;)*) => {
        $(impl Shaped for kafka_protocol::messages::$message {
            const SHAPE: &'static Shape = &$module::$shape;
        })*

        /// Calls a macro for every message.
        #[cfg(test)]
        macro_rules! for_each_message {
            ($call:ident) => { $($call!($message);)* };
        }
    };
}

shaped! {
    ApiVersionsRequest cluster::API_VERSIONS_REQUEST;
    ApiVersionsResponse cluster::API_VERSIONS_RESPONSE;
    MetadataRequest cluster::METADATA_REQUEST;
    MetadataResponse cluster::METADATA_RESPONSE;
    FindCoordinatorRequest cluster::FIND_COORDINATOR_REQUEST;
    FindCoordinatorResponse cluster::FIND_COORDINATOR_RESPONSE;
    DescribeClusterRequest cluster::DESCRIBE_CLUSTER_REQUEST;
    DescribeClusterResponse cluster::DESCRIBE_CLUSTER_RESPONSE;
    SaslHandshakeRequest cluster::SASL_HANDSHAKE_REQUEST;
    SaslHandshakeResponse cluster::SASL_HANDSHAKE_RESPONSE;
    SaslAuthenticateRequest cluster::SASL_AUTHENTICATE_REQUEST;
    SaslAuthenticateResponse cluster::SASL_AUTHENTICATE_RESPONSE;
    ProduceRequest data::PRODUCE_REQUEST;
    ProduceResponse data::PRODUCE_RESPONSE;
    FetchRequest data::FETCH_REQUEST;
    FetchResponse data::FETCH_RESPONSE;
    ListOffsetsRequest data::LIST_OFFSETS_REQUEST;
    ListOffsetsResponse data::LIST_OFFSETS_RESPONSE;
    OffsetForLeaderEpochRequest data::OFFSET_FOR_LEADER_EPOCH_REQUEST;
    OffsetForLeaderEpochResponse data::OFFSET_FOR_LEADER_EPOCH_RESPONSE;
    DeleteRecordsRequest data::DELETE_RECORDS_REQUEST;
    DeleteRecordsResponse data::DELETE_RECORDS_RESPONSE;
    JoinGroupRequest group::JOIN_GROUP_REQUEST;
    JoinGroupResponse group::JOIN_GROUP_RESPONSE;
    SyncGroupRequest group::SYNC_GROUP_REQUEST;
    SyncGroupResponse group::SYNC_GROUP_RESPONSE;
    HeartbeatRequest group::HEARTBEAT_REQUEST;
    HeartbeatResponse group::HEARTBEAT_RESPONSE;
    LeaveGroupRequest group::LEAVE_GROUP_REQUEST;
    LeaveGroupResponse group::LEAVE_GROUP_RESPONSE;
    ConsumerGroupHeartbeatRequest group::CONSUMER_GROUP_HEARTBEAT_REQUEST;
    ConsumerGroupHeartbeatResponse group::CONSUMER_GROUP_HEARTBEAT_RESPONSE;
    DescribeGroupsRequest group::DESCRIBE_GROUPS_REQUEST;
    DescribeGroupsResponse group::DESCRIBE_GROUPS_RESPONSE;
    ListGroupsRequest group::LIST_GROUPS_REQUEST;
    ListGroupsResponse group::LIST_GROUPS_RESPONSE;
    DeleteGroupsRequest group::DELETE_GROUPS_REQUEST;
    DeleteGroupsResponse group::DELETE_GROUPS_RESPONSE;
    ConsumerGroupDescribeRequest group::CONSUMER_GROUP_DESCRIBE_REQUEST;
    ConsumerGroupDescribeResponse group::CONSUMER_GROUP_DESCRIBE_RESPONSE;
    OffsetCommitRequest offsets::OFFSET_COMMIT_REQUEST;
    OffsetCommitResponse offsets::OFFSET_COMMIT_RESPONSE;
    OffsetFetchRequest offsets::OFFSET_FETCH_REQUEST;
    OffsetFetchResponse offsets::OFFSET_FETCH_RESPONSE;
    OffsetDeleteRequest offsets::OFFSET_DELETE_REQUEST;
    OffsetDeleteResponse offsets::OFFSET_DELETE_RESPONSE;
    TxnOffsetCommitRequest offsets::TXN_OFFSET_COMMIT_REQUEST;
    TxnOffsetCommitResponse offsets::TXN_OFFSET_COMMIT_RESPONSE;
    InitProducerIdRequest transaction::INIT_PRODUCER_ID_REQUEST;
    InitProducerIdResponse transaction::INIT_PRODUCER_ID_RESPONSE;
    AddPartitionsToTxnRequest transaction::ADD_PARTITIONS_TO_TXN_REQUEST;
    AddPartitionsToTxnResponse transaction::ADD_PARTITIONS_TO_TXN_RESPONSE;
    AddOffsetsToTxnRequest transaction::ADD_OFFSETS_TO_TXN_REQUEST;
    AddOffsetsToTxnResponse transaction::ADD_OFFSETS_TO_TXN_RESPONSE;
    EndTxnRequest transaction::END_TXN_REQUEST;
    EndTxnResponse transaction::END_TXN_RESPONSE;
    CreateTopicsRequest admin::CREATE_TOPICS_REQUEST;
    CreateTopicsResponse admin::CREATE_TOPICS_RESPONSE;
    DeleteTopicsRequest admin::DELETE_TOPICS_REQUEST;
    DeleteTopicsResponse admin::DELETE_TOPICS_RESPONSE;
    CreatePartitionsRequest admin::CREATE_PARTITIONS_REQUEST;
    CreatePartitionsResponse admin::CREATE_PARTITIONS_RESPONSE;
    DescribeConfigsRequest admin::DESCRIBE_CONFIGS_REQUEST;
    DescribeConfigsResponse admin::DESCRIBE_CONFIGS_RESPONSE;
    AlterConfigsRequest admin::ALTER_CONFIGS_REQUEST;
    AlterConfigsResponse admin::ALTER_CONFIGS_RESPONSE;
    IncrementalAlterConfigsRequest admin::INCREMENTAL_ALTER_CONFIGS_REQUEST;
    IncrementalAlterConfigsResponse admin::INCREMENTAL_ALTER_CONFIGS_RESPONSE;
}

#[cfg(test)]
mod tests;
