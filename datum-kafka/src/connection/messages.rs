//! The control-plane requests: generated messages of the `kafka-protocol` crate as [`Call`]s.
//!
//! The version ranges are the ones this client means: where the highest version changes what a request does
//! (transactions of KIP-890), the range stops below it, and who wants it asks for it by number
//! ([`Connection::start_in_version`](super::Connection::start_in_version)).

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Encodable, HeaderVersion};

use super::Call;
use crate::wire::{WireError, message};

/// `Request Response key min..=max`, and optionally how long the broker may hold it.
macro_rules! calls {
    ($($request:ident $response:ident $name:literal $key:literal $min:literal ..= $max:literal $(waits $waits:expr)?;)*) => {$(
        impl Call for m::$request {
            const KEY: i16 = $key;
            const NAME: &'static str = $name;
            const VERSIONS: (i16, i16) = ($min, $max);
            type Answer = m::$response;

            fn flexible(version: i16) -> bool {
                Self::header_version(version) >= 2
            }

            $(fn waits(&self) -> Duration {
                let held: fn(&Self) -> i32 = $waits;
                Duration::from_millis(u64::try_from(held(self)).unwrap_or(0))
            })?

            fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), WireError> {
                Encodable::encode(self, out, version)
                    .map_err(|_| WireError::NotExpressible { what: $name, version })
            }

            fn decode(version: i16, body: Bytes) -> Result<m::$response, WireError> {
                message::decode(version, body)
            }
        }
    )*};
}

calls! {
    MetadataRequest MetadataResponse "Metadata" 3 1 ..= 12;
    FindCoordinatorRequest FindCoordinatorResponse "FindCoordinator" 10 0 ..= 5;
    ListOffsetsRequest ListOffsetsResponse "ListOffsets" 2 1 ..= 8;
    OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse "OffsetForLeaderEpoch" 23 2 ..= 4;
    CreateTopicsRequest CreateTopicsResponse "CreateTopics" 19 2 ..= 7 waits |call| call.timeout_ms;
    DeleteTopicsRequest DeleteTopicsResponse "DeleteTopics" 20 1 ..= 5 waits |call| call.timeout_ms;
    CreatePartitionsRequest CreatePartitionsResponse "CreatePartitions" 37 0 ..= 3 waits |call| call.timeout_ms;
    DeleteRecordsRequest DeleteRecordsResponse "DeleteRecords" 21 0 ..= 2 waits |call| call.timeout_ms;
    DescribeConfigsRequest DescribeConfigsResponse "DescribeConfigs" 32 1 ..= 4;
    OffsetFetchRequest OffsetFetchResponse "OffsetFetch" 9 1 ..= 9;
    OffsetCommitRequest OffsetCommitResponse "OffsetCommit" 8 2 ..= 9;
    JoinGroupRequest JoinGroupResponse "JoinGroup" 11 0 ..= 9 waits |call| call.rebalance_timeout_ms.max(call.session_timeout_ms);
    SyncGroupRequest SyncGroupResponse "SyncGroup" 14 0 ..= 5;
    HeartbeatRequest HeartbeatResponse "Heartbeat" 12 0 ..= 4;
    LeaveGroupRequest LeaveGroupResponse "LeaveGroup" 13 0 ..= 5;
    DescribeGroupsRequest DescribeGroupsResponse "DescribeGroups" 15 0 ..= 5;
    ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse "ConsumerGroupDescribe" 69 0 ..= 1;
    ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse "ConsumerGroupHeartbeat" 68 0 ..= 1;
    InitProducerIdRequest InitProducerIdResponse "InitProducerId" 22 0 ..= 5;
    AddPartitionsToTxnRequest AddPartitionsToTxnResponse "AddPartitionsToTxn" 24 0 ..= 3;
    AddOffsetsToTxnRequest AddOffsetsToTxnResponse "AddOffsetsToTxn" 25 0 ..= 4;
    EndTxnRequest EndTxnResponse "EndTxn" 26 0 ..= 4;
    TxnOffsetCommitRequest TxnOffsetCommitResponse "TxnOffsetCommit" 28 0 ..= 4;
}
