//! Against the `kafka-protocol` crate's own messages, in every version, and against damage.

use super::{
    DivergingEpoch, FIRST_VERSION_BY_ID, FetchPartition, FetchRequest, FetchResponse, FetchTopic,
    ForgottenTopic,
};
use super::{MAX_VERSION, MIN_VERSION};
use crate::wire::batch::AbortedTransaction;
use crate::wire::leader::CurrentLeader;
use crate::wire::topic::{TopicKey, TopicRef};
use crate::wire::{ErrorCode, WireError};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction as PeerAborted, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch,
    NodeEndpoint as PeerEndpoint, PartitionData,
};
use kafka_protocol::messages::{FetchRequest as PeerRequest, FetchResponse as PeerResponse, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use proptest::prelude::*;

const ID: [u8; 16] = *b"0123456789abcdef";
const ID_TEXT: &str = "30313233-3435-3637-3839-616263646566";

fn request() -> FetchRequest {
    let topic = TopicRef::new("orders", ID);
    let partition = |partition| FetchPartition {
        partition,
        current_leader_epoch: 3,
        fetch_offset: 1_000 + i64::from(partition),
        last_fetched_epoch: 2,
        max_bytes: 77,
    };
    FetchRequest {
        session_id: 5,
        session_epoch: 6,
        topics: vec![FetchTopic { topic: topic.clone(), partitions: vec![partition(0), partition(4)] }],
        forgotten: vec![ForgottenTopic { topic, partitions: vec![9] }],
        rack: "r1".into(),
        ..FetchRequest::default()
    }
}

#[test]
fn requests_are_read_by_the_peer_in_every_version() {
    for version in MIN_VERSION..=MAX_VERSION {
        let mut out = Vec::new();
        request().encode(version, &mut out).unwrap();
        let mut bytes = Bytes::from(out);
        let peer = PeerRequest::decode(&mut bytes, version).unwrap();
        assert!(bytes.is_empty(), "version {version}");
        assert_eq!(
            (peer.max_wait_ms, peer.min_bytes, peer.max_bytes, peer.isolation_level),
            (500, 1, 50 << 20, 1)
        );
        let topic = &peer.topics[0];
        if version < FIRST_VERSION_BY_ID {
            assert_eq!(topic.topic.as_str(), "orders");
        } else {
            assert_eq!(topic.topic_id.into_bytes(), ID);
        }
        let second = &topic.partitions[1];
        assert_eq!((second.partition, second.fetch_offset, second.partition_max_bytes), (4, 1_004, 77));
        assert_eq!(second.current_leader_epoch, if version >= 9 { 3 } else { -1 });
        assert_eq!(second.last_fetched_epoch, if version >= 12 { 2 } else { -1 });
        if version >= 7 {
            assert_eq!((peer.session_id, peer.session_epoch), (5, 6));
            assert_eq!(peer.forgotten_topics_data[0].partitions, [9]);
        }
        assert_eq!(peer.rack_id.as_str(), if version >= 11 { "r1" } else { "" });
    }
}

#[test]
fn a_topic_without_id_cannot_be_named_by_id() {
    let mut request = request();
    request.topics[0].topic.id = [0; 16];
    assert!(request.encode(12, &mut Vec::new()).is_ok());
    assert_eq!(
        request.encode(13, &mut Vec::new()),
        Err(WireError::NotExpressible { what: "Fetch", version: 13 })
    );
    assert!(matches!(request.encode(18, &mut Vec::new()), Err(WireError::UnsupportedVersion { .. })));
}

fn answer(version: i16) -> Vec<u8> {
    let mut partition = PartitionData::default()
        .with_partition_index(4)
        .with_error_code(6)
        .with_high_watermark(500)
        .with_last_stable_offset(400)
        .with_aborted_transactions(Some(vec![
            PeerAborted::default().with_producer_id(8.into()).with_first_offset(321),
        ]))
        .with_records(Some(Bytes::from_static(b"batches")));
    if version >= 5 {
        partition = partition.with_log_start_offset(7);
    }
    if version >= 11 {
        partition = partition.with_preferred_read_replica(2.into());
    }
    if version >= 12 {
        partition = partition
            .with_diverging_epoch(EpochEndOffset::default().with_epoch(3).with_end_offset(99))
            .with_current_leader(LeaderIdAndEpoch::default().with_leader_id(1.into()).with_leader_epoch(12));
    }
    let empty =
        PartitionData::default().with_partition_index(5).with_aborted_transactions(None).with_records(None);
    let mut topic = FetchableTopicResponse::default().with_partitions(vec![partition, empty]);
    if version < FIRST_VERSION_BY_ID {
        topic = topic.with_topic(TopicName(StrBytes::from_static_str("orders")));
    } else {
        topic = topic.with_topic_id(ID_TEXT.parse().unwrap());
    }
    let mut peer = PeerResponse::default().with_throttle_time_ms(11).with_responses(vec![topic]);
    if version >= 7 {
        peer = peer.with_error_code(70).with_session_id(13);
    }
    if version >= 16 {
        let endpoint = PeerEndpoint::default()
            .with_node_id(1.into())
            .with_host(StrBytes::from_static_str("b1"))
            .with_port(9_092)
            .with_rack(Some(StrBytes::from_static_str("r")));
        peer = peer.with_node_endpoints(vec![endpoint]);
    }
    let mut out = BytesMut::new();
    peer.encode(&mut out, version).unwrap();
    out.to_vec()
}

#[test]
fn answers_of_the_peer_are_read_in_every_version() {
    for version in MIN_VERSION..=MAX_VERSION {
        let body = Bytes::from(answer(version));
        let read = FetchResponse::decode(version, &body).unwrap();
        assert_eq!(read.throttle_ms, 11);
        let session =
            if version >= 7 { (ErrorCode::FetchSessionIdNotFound, 13) } else { (ErrorCode::None, 0) };
        assert_eq!((read.error, read.session_id), session);
        let topic = &read.topics[0];
        assert!(topic.topic.is(&TopicRef::new("orders", ID)));
        assert_eq!(matches!(topic.topic, TopicKey::Id(_)), version >= FIRST_VERSION_BY_ID);
        let [full, empty] = &topic.partitions[..] else { panic!("two partitions") };
        assert_eq!((full.partition, full.error), (4, ErrorCode::NotLeaderOrFollower));
        assert_eq!((full.high_watermark, full.last_stable_offset), (500, 400));
        assert_eq!(full.log_start_offset, if version >= 5 { 7 } else { -1 });
        assert_eq!(full.aborted, [AbortedTransaction { producer_id: 8, first_offset: 321 }]);
        assert_eq!(full.preferred_read_replica, if version >= 11 { 2 } else { -1 });
        assert_eq!(full.records, &b"batches"[..]);
        assert!(body.as_ptr_range().contains(&full.records.as_ptr()), "a slice of the frame");
        assert_eq!(full.diverging, (version >= 12).then_some(DivergingEpoch { epoch: 3, end_offset: 99 }));
        assert_eq!(full.current_leader, (version >= 12).then_some(CurrentLeader { leader: 1, epoch: 12 }));
        assert_eq!((empty.records.len(), empty.aborted.len(), empty.diverging), (0, 0, None));
        let endpoints: Vec<_> =
            read.endpoints.iter().map(|e| (e.node, &*e.host, e.port, e.rack.as_deref())).collect();
        assert_eq!(endpoints, if version >= 16 { vec![(1, "b1", 9_092, Some("r"))] } else { vec![] });
    }
}

#[test]
fn every_cut_is_an_error() {
    for version in MIN_VERSION..=MAX_VERSION {
        let body = Bytes::from(answer(version));
        for cut in 0..body.len() {
            assert!(
                FetchResponse::decode(version, &body.slice(..cut)).is_err(),
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
        let _ = FetchResponse::decode(version, &bytes.into());
    }

    #[test]
    fn noise_never_panics(version in MIN_VERSION..=MAX_VERSION, bytes: Vec<u8>) {
        let _ = FetchResponse::decode(version, &bytes.into());
    }
}
