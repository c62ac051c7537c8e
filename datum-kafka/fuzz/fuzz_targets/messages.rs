//! Every control-plane message, requests and answers; the first byte chooses the message, the second the version.
#![no_main]

use bytes::Bytes;
use datum_kafka::wire::message;
use datum_kafka::wire::shape::Shaped;
use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [choice, version, body @ ..] = input else { return };
    let body = Bytes::copy_from_slice(body);
    let read = MESSAGES[usize::from(*choice) % MESSAGES.len()];
    read(*version, body);
});

/// Reads a body in one of the message's versions; what is read can be written again.
fn read<M>(version: u8, body: Bytes)
where
    M: Decodable + Encodable + Message + Shaped,
{
    let range = M::VERSIONS;
    let version = range.min + i16::from(version) % (range.max - range.min + 1);
    if let Ok(read) = message::decode::<M>(version, body) {
        let _ = message::encode(&read, version, &mut Vec::new());
    }
}

const MESSAGES: &[fn(u8, Bytes)] = &[
    read::<m::ApiVersionsRequest>,
    read::<m::ApiVersionsResponse>,
    read::<m::MetadataRequest>,
    read::<m::MetadataResponse>,
    read::<m::FindCoordinatorRequest>,
    read::<m::FindCoordinatorResponse>,
    read::<m::DescribeClusterRequest>,
    read::<m::DescribeClusterResponse>,
    read::<m::SaslHandshakeRequest>,
    read::<m::SaslHandshakeResponse>,
    read::<m::SaslAuthenticateRequest>,
    read::<m::SaslAuthenticateResponse>,
    read::<m::ProduceRequest>,
    read::<m::ProduceResponse>,
    read::<m::FetchRequest>,
    read::<m::FetchResponse>,
    read::<m::ListOffsetsRequest>,
    read::<m::ListOffsetsResponse>,
    read::<m::OffsetForLeaderEpochRequest>,
    read::<m::OffsetForLeaderEpochResponse>,
    read::<m::DeleteRecordsRequest>,
    read::<m::DeleteRecordsResponse>,
    read::<m::JoinGroupRequest>,
    read::<m::JoinGroupResponse>,
    read::<m::SyncGroupRequest>,
    read::<m::SyncGroupResponse>,
    read::<m::HeartbeatRequest>,
    read::<m::HeartbeatResponse>,
    read::<m::LeaveGroupRequest>,
    read::<m::LeaveGroupResponse>,
    read::<m::ConsumerGroupHeartbeatRequest>,
    read::<m::ConsumerGroupHeartbeatResponse>,
    read::<m::DescribeGroupsRequest>,
    read::<m::DescribeGroupsResponse>,
    read::<m::ListGroupsRequest>,
    read::<m::ListGroupsResponse>,
    read::<m::DeleteGroupsRequest>,
    read::<m::DeleteGroupsResponse>,
    read::<m::ConsumerGroupDescribeRequest>,
    read::<m::ConsumerGroupDescribeResponse>,
    read::<m::OffsetCommitRequest>,
    read::<m::OffsetCommitResponse>,
    read::<m::OffsetFetchRequest>,
    read::<m::OffsetFetchResponse>,
    read::<m::OffsetDeleteRequest>,
    read::<m::OffsetDeleteResponse>,
    read::<m::TxnOffsetCommitRequest>,
    read::<m::TxnOffsetCommitResponse>,
    read::<m::InitProducerIdRequest>,
    read::<m::InitProducerIdResponse>,
    read::<m::AddPartitionsToTxnRequest>,
    read::<m::AddPartitionsToTxnResponse>,
    read::<m::AddOffsetsToTxnRequest>,
    read::<m::AddOffsetsToTxnResponse>,
    read::<m::EndTxnRequest>,
    read::<m::EndTxnResponse>,
    read::<m::CreateTopicsRequest>,
    read::<m::CreateTopicsResponse>,
    read::<m::DeleteTopicsRequest>,
    read::<m::DeleteTopicsResponse>,
    read::<m::CreatePartitionsRequest>,
    read::<m::CreatePartitionsResponse>,
    read::<m::DescribeConfigsRequest>,
    read::<m::DescribeConfigsResponse>,
    read::<m::AlterConfigsRequest>,
    read::<m::AlterConfigsResponse>,
    read::<m::IncrementalAlterConfigsRequest>,
    read::<m::IncrementalAlterConfigsResponse>,
];
