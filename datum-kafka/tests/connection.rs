//! One connection against a scripted peer: order, limits, deadlines, and every way a peer can misbehave.

mod support;

use std::time::Duration;

use datum_kafka::ClientSettings;
use datum_kafka::cluster::Cluster;
use datum_kafka::connection::Connection;
use datum_kafka::error::{CloseReason, ProtocolFault};
use datum_kafka::{KafkaError, KafkaErrorKind};
use support::{Peer, connected, raw, settings};
use tokio::io::{AsyncWriteExt, duplex};

fn reason(error: &KafkaError) -> CloseReason {
    match error.kind() {
        KafkaErrorKind::Closed { reason, .. } => *reason,
        other => panic!("not a closed connection: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn responses_meet_their_requests_in_order() {
    let (connection, mut peer) = connected(&settings()).await;
    let first = connection.start_raw(raw(b"one")).await.unwrap();
    let second = connection.start_raw(raw(b"two")).await.unwrap();
    let (a, b) = (peer.request().await, peer.request().await);
    assert!(a.body.ends_with(b"one") && b.body.ends_with(b"two"));
    assert_eq!(&a.body[..7], b"\0\x05datum", "the client id stands in the header");
    peer.respond(a.correlation, b"uno").await;
    peer.respond(b.correlation, b"dos").await;
    assert_eq!(second.await.unwrap(), "dos");
    assert_eq!(first.await.unwrap(), "uno");
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_request_does_not_shift_the_others() {
    let (connection, mut peer) = connected(&settings()).await;
    drop(connection.start_raw(raw(b"abandoned")).await.unwrap());
    let kept = connection.start_raw(raw(b"kept")).await.unwrap();
    for answer in [b"a", b"k"] {
        let seen = peer.request().await;
        peer.respond(seen.correlation, answer).await;
    }
    assert_eq!(kept.await.unwrap(), "k");
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_open_than_permitted() {
    let (connection, mut peer) = connected(&settings().max_in_flight(2)).await;
    let started: Vec<_> = {
        let mut started = Vec::new();
        for body in [b"1", b"2", b"3"] {
            started.push(connection.start_raw(raw(body)).await.unwrap());
        }
        started
    };
    let first = peer.request().await;
    peer.request().await;
    // The third is held back until one is answered: its frame is not on the wire.
    let early = tokio::time::timeout(Duration::from_millis(1), peer.request()).await;
    assert!(early.is_err(), "a third request is in flight");
    peer.respond(first.correlation, b"").await;
    assert!(peer.request().await.body.ends_with(b"3"));
    drop(started);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_fails_its_request_by_name_and_closes_the_connection() {
    let (connection, mut peer) = connected(&settings()).await;
    let slow = connection.start_raw(raw(b"slow")).await.unwrap();
    let mut patient = raw(b"patient");
    patient.waits = Duration::from_secs(60);
    let patient = connection.start_raw(patient).await.unwrap();
    let start = tokio::time::Instant::now();
    let error = slow.await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 5);
    assert!(matches!(error.kind(), KafkaErrorKind::Timeout { api: "Metadata", .. }), "{error}");
    assert!(error.to_string().contains("test:9092 did not answer Metadata within 5s"), "{error}");
    assert_eq!(reason(&patient.await.unwrap_err()), CloseReason::Neighbour);
    assert!(connection.is_closed());
    assert_eq!(reason(&connection.send_raw(raw(b"late")).await.unwrap_err()), CloseReason::Neighbour);
    peer.request().await;
}

#[tokio::test(start_paused = true)]
async fn a_wrong_correlation_id_is_never_matched() {
    let (connection, mut peer) = connected(&settings()).await;
    let first = connection.start_raw(raw(b"1")).await.unwrap();
    let second = connection.start_raw(raw(b"2")).await.unwrap();
    peer.request().await;
    let second_id = peer.request().await.correlation;
    peer.respond(second_id, b"?").await;
    let error = first.await.unwrap_err();
    let KafkaErrorKind::Protocol { fault: ProtocolFault::Correlation { expected, got }, .. } = error.kind()
    else {
        panic!("{error}")
    };
    assert_eq!((*expected, *got), (second_id - 1, second_id));
    assert_eq!(reason(&second.await.unwrap_err()), CloseReason::Neighbour);
}

#[tokio::test(start_paused = true)]
async fn a_length_prefix_beyond_the_limit_is_refused() {
    for announced in [(64 << 10) + 1, i32::MAX, -1, i32::MIN] {
        let (connection, mut peer) = connected(&settings()).await;
        let asked = connection.start_raw(raw(b"1")).await.unwrap();
        peer.request().await;
        peer.0.write_i32(announced).await.unwrap();
        let error = asked.await.unwrap_err();
        assert!(
            matches!(error.kind(), KafkaErrorKind::Oversize { announced: a, limit: 65536, .. } if *a == announced),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn closing_within_a_response_is_told_apart_from_closing_between_two() {
    let (connection, mut peer) = connected(&settings()).await;
    let first = connection.start_raw(raw(b"1")).await.unwrap();
    let second = connection.start_raw(raw(b"2")).await.unwrap();
    peer.request().await;
    peer.0.write_all(&[0, 0, 0, 10, 0, 0, 0]).await.unwrap();
    drop(peer);
    assert_eq!(reason(&first.await.unwrap_err()), CloseReason::MidResponse { missing: 7 });
    assert_eq!(reason(&second.await.unwrap_err()), CloseReason::Peer);

    let (connection, mut peer) = connected(&settings()).await;
    let asked = connection.start_raw(raw(b"1")).await.unwrap();
    peer.request().await;
    drop(peer);
    let error = asked.await.unwrap_err();
    assert_eq!(reason(&error), CloseReason::Peer);
    assert!(error.is_retriable());
}

#[tokio::test(start_paused = true)]
async fn frames_too_short_or_unasked_end_the_connection() {
    let (connection, mut peer) = connected(&settings()).await;
    let asked = connection.start_raw(raw(b"1")).await.unwrap();
    peer.request().await;
    peer.0.write_all(&[0, 0, 0, 2, 9, 9]).await.unwrap();
    let error = asked.await.unwrap_err();
    assert!(
        matches!(error.kind(), KafkaErrorKind::Protocol { fault: ProtocolFault::Short { length: 2 }, .. }),
        "{error}"
    );

    let (connection, mut peer) = connected(&settings()).await;
    peer.respond(0, b"unasked").await;
    let error = connection.send_raw(raw(b"1")).await.unwrap_err();
    assert!(
        matches!(error.kind(), KafkaErrorKind::Closed { .. } | KafkaErrorKind::Protocol { .. }),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_response_is_put_together_from_any_pieces() {
    let (connection, mut peer) = connected(&settings()).await;
    let asked = connection.start_raw(raw(b"1")).await.unwrap();
    let id = peer.request().await.correlation;
    let mut frame = 7i32.to_be_bytes().to_vec();
    frame.extend(id.to_be_bytes());
    frame.extend(b"abc");
    for byte in frame {
        peer.0.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.await.unwrap(), "abc");
}

#[tokio::test(start_paused = true)]
async fn falls_back_to_version_0_of_the_version_exchange() {
    let (near, far) = duplex(1 << 16);
    let mut peer = Peer(far);
    let settings = settings();
    let script = async {
        let seen = peer.request().await;
        assert_eq!((seen.key, seen.version), (18, 3));
        peer.respond(seen.correlation, &[0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 2]).await;
        let seen = peer.request().await;
        assert_eq!((seen.key, seen.version), (18, 0));
        assert_eq!(seen.body, b"\0\x05datum", "version 0 has no body");
        peer.respond(seen.correlation, &[0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 2]).await;
    };
    let (connection, ()) = tokio::join!(Connection::open(near, "old:9092", &settings), script);
    let connection = connection.unwrap();
    assert_eq!(connection.versions().range(3), Some((0, 2)));
    let error = connection.version_between(1, "Fetch", 4, 18).unwrap_err();
    assert_eq!(
        error.to_string(),
        "old:9092 speaks Fetch not at all, this client versions 4 to 18; upgrade the older side"
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_no_broker_is_refused_at_the_first_exchange() {
    let (near, far) = duplex(1 << 16);
    let mut peer = Peer(far);
    let settings = settings();
    let script = async {
        peer.request().await;
        peer.0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    };
    let (refused, ()) = tokio::join!(Connection::open(near, "web:80", &settings), script);
    let error = refused.unwrap_err();
    assert!(matches!(error.kind(), KafkaErrorKind::Oversize { .. }), "{error}");
    assert!(error.to_string().contains("plaintext Kafka"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_the_socket_once_nothing_is_in_flight() {
    let (connection, mut peer) = connected(&settings()).await;
    let asked = connection.start_raw(raw(b"1")).await.unwrap();
    drop(connection);
    let id = peer.request().await.correlation;
    peer.respond(id, b"done").await;
    assert_eq!(asked.await.unwrap(), "done");
    let mut end = [0];
    assert_eq!(tokio::io::AsyncReadExt::read(&mut peer.0, &mut end).await.unwrap(), 0);
}

/// A wrong port is told soon, with every address that was tried; silence is another matter and has the whole time.
#[tokio::test]
async fn addresses_at_which_nobody_listens_are_reported_soon() {
    let mut ports = Vec::new();
    for _ in 0..2 {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        ports.push(free.local_addr().expect("its number").port());
    }
    let settings = ClientSettings::new(&format!("127.0.0.1:{},127.0.0.1:{}", ports[0], ports[1]));
    assert_eq!(settings.first_contact_timeout, Duration::from_secs(5));
    let settings = settings.first_contact_timeout(Duration::from_millis(300));
    let begun = std::time::Instant::now();
    let error = Cluster::connect(settings).await.expect_err("nobody is there");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(error.is_refused() && error.is_retriable(), "{error:?}");
    let text = error.to_string();
    assert!(ports.iter().all(|port| text.contains(&format!("127.0.0.1:{port}"))), "{text}");
    assert!(text.contains("check that the service runs"), "{text}");
}
