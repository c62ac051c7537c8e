//! From a frame to the handler of its API, and back to a frame.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use datum_kafka::wire::shape::Shaped;
use datum_kafka::wire::{ErrorCode, message};
use kafka_protocol::messages::{ApiKey, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable};

use crate::api::{
    Api, Call, add_offsets_to_txn, add_partitions_to_txn, alter_configs, api_versions, create_partitions,
    create_topics, delete_groups, delete_records, delete_topics, describe_cluster, describe_configs,
    describe_groups, end_txn, fetch, find_coordinator, heartbeat, incremental_alter_configs,
    init_producer_id, join_group, leave_group, list_groups, list_offsets, metadata, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, produce, sync_group, txn_offset_commit,
};
use crate::core::Core;
use crate::server::{Shared, frame};

/// A request whose header has been read.
#[derive(Debug)]
pub(crate) struct Request {
    pub api: Api,
    version: i16,
    correlation: i32,
    client_id: String,
    body: Bytes,
}

impl Request {
    /// Reads the header of a frame.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for an API that is not served, or a header that cannot be read: Kafka closes the
    /// connection then, and so do we.
    pub(crate) fn read(mut frame: Bytes) -> io::Result<Self> {
        let [a, b, c, d, e, f, g, h] = frame
            .first_chunk::<8>()
            .copied()
            .ok_or_else(|| invalid("a request is shorter than its header"))?;
        let key = i16::from_be_bytes([a, b]);
        let version = i16::from_be_bytes([c, d]);
        let correlation = i32::from_be_bytes([e, f, g, h]);
        let api = Api::from_key(key).ok_or_else(|| invalid(&format!("API {key} is not served")))?;
        let (lowest, highest) = api.versions();
        if !(lowest..=highest).contains(&version) {
            // Only ApiVersions is answered in a version that is not spoken; its body is not read.
            if api == Api::ApiVersions {
                return Ok(Self { api, version, correlation, client_id: String::new(), body: Bytes::new() });
            }
            return Err(invalid(&format!(
                "{api} is served in versions {lowest} to {highest}, not {version}"
            )));
        }
        let header = RequestHeader::decode(&mut frame, wire_key(api)?.request_header_version(version))
            .map_err(|error| invalid(&format!("the header of a {api} request cannot be read: {error}")))?;
        let client_id = header.client_id.map(|id| id.to_string()).unwrap_or_default();
        Ok(Self { api, version, correlation, client_id, body: frame })
    }
}

fn wire_key(api: Api) -> io::Result<ApiKey> {
    ApiKey::try_from(api.key()).map_err(|()| invalid(&format!("{api} has no messages")))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Answers a request; `None` where the client wants no answer.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] when the body cannot be read, or an answer cannot be written in the version asked for.
pub(crate) async fn answer(
    shared: &Shared,
    request: Request,
    node: i32,
    host: String,
    forced: Option<ErrorCode>,
) -> io::Result<Option<BytesMut>> {
    let Request { api, version, correlation, client_id, body } = request;
    let (lowest, highest) = api.versions();
    let out = Out { api, version, correlation };
    if !(lowest..=highest).contains(&version) {
        return Out { version: 0, ..out }.frame(&api_versions::unsupported()).map(Some);
    }
    let call = Call { node, version, client_id, host, forced };
    let quick = Quick { shared, call: &call, body: body.clone(), out };
    match api {
        Api::Produce => {
            let response = produce::handle(shared, &call, decode(api, body, version)?).await;
            return response.map(|response| out.frame(&response)).transpose();
        }
        Api::Fetch => out.frame(&fetch::handle(shared, &call, decode(api, body, version)?).await),
        Api::JoinGroup => out.frame(&join_group::handle(shared, &call, decode(api, body, version)?).await),
        Api::SyncGroup => out.frame(&sync_group::handle(shared, &call, decode(api, body, version)?).await),
        Api::ListOffsets => quick.run(list_offsets::handle),
        Api::Metadata => quick.run(metadata::handle),
        Api::OffsetCommit => quick.run_at(offset_commit::handle),
        Api::OffsetFetch => quick.run(offset_fetch::handle),
        Api::FindCoordinator => quick.run(find_coordinator::handle),
        Api::Heartbeat => quick.run_at(heartbeat::handle),
        Api::LeaveGroup => quick.run_at(leave_group::handle),
        Api::DescribeGroups => quick.run(describe_groups::handle),
        Api::ListGroups => quick.run(list_groups::handle),
        Api::ApiVersions => quick.run(api_versions::handle),
        Api::CreateTopics => quick.run(create_topics::handle),
        Api::DeleteTopics => quick.run(delete_topics::handle),
        Api::DeleteRecords => quick.run(delete_records::handle),
        Api::InitProducerId => quick.run_at(init_producer_id::handle),
        Api::OffsetForLeaderEpoch => quick.run(offset_for_leader_epoch::handle),
        Api::AddPartitionsToTxn => quick.run_at(add_partitions_to_txn::handle),
        Api::AddOffsetsToTxn => quick.run_at(add_offsets_to_txn::handle),
        Api::EndTxn => quick.run_at(end_txn::handle),
        Api::TxnOffsetCommit => quick.run_at(txn_offset_commit::handle),
        Api::DescribeConfigs => quick.run(describe_configs::handle),
        Api::AlterConfigs => quick.run(alter_configs::handle),
        Api::CreatePartitions => quick.run(create_partitions::handle),
        Api::DeleteGroups => quick.run(delete_groups::handle),
        Api::IncrementalAlterConfigs => quick.run(incremental_alter_configs::handle),
        Api::OffsetDelete => quick.run(offset_delete::handle),
        Api::DescribeCluster => quick.run(describe_cluster::handle),
    }
    .map(Some)
}

/// A request whose answer is there at once.
struct Quick<'a> {
    shared: &'a Shared,
    call: &'a Call,
    body: Bytes,
    out: Out,
}

impl Quick<'_> {
    fn run<Q: Decodable + Shaped, R: Encodable>(
        self,
        handle: impl FnOnce(&mut Core, &Call, Q) -> R,
    ) -> io::Result<BytesMut> {
        self.run_at(|core, call, _, request| handle(core, call, request))
    }

    fn run_at<Q: Decodable + Shaped, R: Encodable>(
        self,
        handle: impl FnOnce(&mut Core, &Call, i64, Q) -> R,
    ) -> io::Result<BytesMut> {
        let request = decode(self.out.api, self.body, self.out.version)?;
        let response = self.shared.with(|locked, now| handle(&mut locked.core, self.call, now, request));
        self.out.frame(&response)
    }
}

/// Counts are checked against the bytes before anything is allocated by them.
fn decode<Q: Decodable + Shaped>(api: Api, body: Bytes, version: i16) -> io::Result<Q> {
    message::decode(version, body)
        .map_err(|error| invalid(&format!("a {api} request of version {version} cannot be read: {error}")))
}

/// How an answer is framed.
#[derive(Clone, Copy)]
struct Out {
    api: Api,
    version: i16,
    correlation: i32,
}

impl Out {
    fn frame<R: Encodable>(self, response: &R) -> io::Result<BytesMut> {
        let Self { api, version, correlation } = self;
        let refuse =
            |error| invalid(&format!("an answer to {api} cannot be written in version {version}: {error}"));
        let header = ResponseHeader::default().with_correlation_id(correlation);
        let header_version = wire_key(api)?.response_header_version(version);
        let mut answer = BytesMut::new();
        answer.put_i32(0);
        header.encode(&mut answer, header_version).map_err(refuse)?;
        response.encode(&mut answer, version).map_err(refuse)?;
        let length =
            i32::try_from(answer.len() - frame::LENGTH).map_err(|_| invalid("an answer is too long"))?;
        answer[..frame::LENGTH].copy_from_slice(&length.to_be_bytes());
        Ok(answer)
    }
}
