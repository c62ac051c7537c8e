//! Against the `kafka-protocol` crate's own messages, in every version, and against damage.

use super::{
    BatchIndexError, MAX_VERSION, MIN_VERSION, ProducePartition, ProduceRequest, ProduceResponse,
    ProduceTopic,
};
use crate::wire::leader::CurrentLeader;
use crate::wire::{ErrorCode, WireError};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint as PeerEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceRequest as PeerRequest, ProduceResponse as PeerResponse, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use proptest::prelude::*;

#[test]
fn requests_are_read_by_the_peer_in_every_version_and_batches_are_shared() {
    let batch = Bytes::from_static(b"a whole batch");
    let partition = |partition| ProducePartition { partition, batch: batch.clone() };
    let request = ProduceRequest {
        transactional_id: Some("tx".into()),
        acks: -1,
        timeout_ms: 30_000,
        topics: vec![
            ProduceTopic { name: "orders".into(), partitions: vec![partition(0), partition(3)] },
            ProduceTopic { name: "audit".into(), partitions: vec![partition(1)] },
        ],
    };
    for version in MIN_VERSION..=MAX_VERSION {
        let pieces = request.encode(version).unwrap();
        let shared = pieces.iter().filter(|piece| piece.as_ptr() == batch.as_ptr()).count();
        assert_eq!(shared, 3, "version {version}");
        let mut bytes = Bytes::from(pieces.concat());
        let peer = PeerRequest::decode(&mut bytes, version).unwrap();
        assert!(bytes.is_empty(), "version {version}");
        assert_eq!(peer.transactional_id.as_deref().map(|id| &**id), Some("tx"));
        assert_eq!((peer.acks, peer.timeout_ms), (-1, 30_000));
        let seen: Vec<_> = peer
            .topic_data
            .iter()
            .flat_map(|t| t.partition_data.iter().map(|p| (t.name.to_string(), p.index, p.records.clone())))
            .collect();
        let expected = [("orders", 0), ("orders", 3), ("audit", 1)]
            .map(|(name, partition)| (name.to_owned(), partition, Some(batch.clone())));
        assert_eq!(seen, expected);
    }
    assert!(matches!(request.encode(13), Err(WireError::UnsupportedVersion { version: 13, .. })));
}

fn answer(version: i16) -> Vec<u8> {
    let mut partition = PartitionProduceResponse::default()
        .with_index(4)
        .with_error_code(6)
        .with_base_offset(1_000)
        .with_log_append_time_ms(77);
    if version >= 5 {
        partition = partition.with_log_start_offset(9);
    }
    if version >= 8 {
        let error = BatchIndexAndErrorMessage::default()
            .with_batch_index(2)
            .with_batch_index_error_message(Some(StrBytes::from_static_str("null key")));
        partition = partition
            .with_record_errors(vec![error])
            .with_error_message(Some(StrBytes::from_static_str("compacted")));
    }
    if version >= 10 {
        let leader = LeaderIdAndEpoch::default().with_leader_id(1.into()).with_leader_epoch(12);
        partition = partition.with_current_leader(leader);
    }
    let topic = TopicProduceResponse::default()
        .with_name(TopicName(StrBytes::from_static_str("orders")))
        .with_partition_responses(vec![partition]);
    let mut peer = PeerResponse::default().with_throttle_time_ms(11).with_responses(vec![topic]);
    if version >= 10 {
        let host = StrBytes::from_static_str("b1");
        let endpoint = PeerEndpoint::default().with_node_id(1.into()).with_host(host).with_port(9_092);
        peer = peer.with_node_endpoints(vec![endpoint]);
    }
    let mut out = BytesMut::new();
    peer.encode(&mut out, version).unwrap();
    out.to_vec()
}

#[test]
fn answers_of_the_peer_are_read_in_every_version() {
    for version in MIN_VERSION..=MAX_VERSION {
        let read = ProduceResponse::decode(version, &answer(version)).unwrap();
        assert_eq!((read.throttle_ms, read.topics.len(), &*read.topics[0].name), (11, 1, "orders"));
        let partition = &read.topics[0].partitions[0];
        assert_eq!((partition.partition, partition.error), (4, ErrorCode::NotLeaderOrFollower));
        assert_eq!((partition.base_offset, partition.append_time), (1_000, 77));
        assert_eq!(partition.log_start_offset, if version >= 5 { 9 } else { -1 });
        let told = BatchIndexError { position: 2, message: Some("null key".into()) };
        assert_eq!(partition.record_errors, if version >= 8 { vec![told] } else { vec![] });
        assert_eq!(partition.error_message.as_deref(), (version >= 8).then_some("compacted"));
        assert_eq!(
            partition.current_leader,
            (version >= 10).then_some(CurrentLeader { leader: 1, epoch: 12 })
        );
        let endpoints: Vec<_> = read.endpoints.iter().map(|e| (e.node, &*e.host, e.port)).collect();
        assert_eq!(endpoints, if version >= 10 { vec![(1, "b1", 9_092)] } else { vec![] });
    }
}

#[test]
fn every_cut_is_an_error() {
    for version in MIN_VERSION..=MAX_VERSION {
        let body = answer(version);
        for cut in 0..body.len() {
            assert!(
                ProduceResponse::decode(version, &body[..cut]).is_err(),
                "version {version} cut at {cut}"
            );
        }
    }
}

proptest! {
    #[test]
    fn damage_never_panics(
        version in MIN_VERSION..=MAX_VERSION,
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = answer(version);
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = ProduceResponse::decode(version, &bytes);
    }

    #[test]
    fn noise_never_panics(version in MIN_VERSION..=MAX_VERSION, bytes: Vec<u8>) {
        let _ = ProduceResponse::decode(version, &bytes);
    }
}
