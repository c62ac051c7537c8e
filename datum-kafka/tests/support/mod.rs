//! A scripted peer: the other end of a connection, under the test's control byte by byte.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "test code: a failed step fails the test"
)]

pub mod embedded;
pub mod produce;

use std::time::Duration;

use bytes::Bytes;
use datum_kafka::ClientSettings;
use datum_kafka::connection::{Connection, RawRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// The far end of a connection.
pub struct Peer(pub DuplexStream);

/// A request as the peer saw it.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub key: i16,
    pub version: i16,
    pub correlation: i32,
    pub body: Vec<u8>,
}

impl Peer {
    /// The next request; its body with the rest of the header (client id, tags) still in front.
    pub async fn request(&mut self) -> Seen {
        let length = self.0.read_i32().await.unwrap();
        let mut frame = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut frame).await.unwrap();
        let i16_at = |at: usize| i16::from_be_bytes(frame[at..at + 2].try_into().unwrap());
        Seen {
            key: i16_at(0),
            version: i16_at(2),
            correlation: i32::from_be_bytes(frame[4..8].try_into().unwrap()),
            body: frame[8..].to_vec(),
        }
    }

    /// A whole response.
    pub async fn respond(&mut self, correlation: i32, body: &[u8]) {
        self.0.write_i32(i32::try_from(body.len() + 4).unwrap()).await.unwrap();
        self.0.write_i32(correlation).await.unwrap();
        self.0.write_all(body).await.unwrap();
    }

    /// Answers the version exchange: the broker speaks `ranges` (key, lowest, highest).
    pub async fn greet(&mut self, ranges: &[(i16, i16, i16)]) {
        let seen = self.request().await;
        assert_eq!((seen.key, seen.version), (18, 3));
        self.respond(seen.correlation, &versions_v3(ranges)).await;
    }
}

/// Body of an `ApiVersions` response of version 3.
pub fn versions_v3(ranges: &[(i16, i16, i16)]) -> Vec<u8> {
    let mut body = vec![0, 0, u8::try_from(ranges.len() + 1).unwrap()];
    for (key, min, max) in ranges {
        for number in [key, min, max] {
            body.extend(number.to_be_bytes());
        }
        body.push(0);
    }
    body.extend([0, 0, 0, 0, 0]);
    body
}

/// Settings with short names for tests.
pub fn settings() -> ClientSettings {
    ClientSettings::new("test:9092").request_timeout(Duration::from_secs(5)).max_response_bytes(64 << 10)
}

/// A connection past its version exchange, and its peer.
pub async fn connected(settings: &ClientSettings) -> (Connection, Peer) {
    let (near, far) = duplex(1 << 16);
    let mut peer = Peer(far);
    let (connection, ()) =
        tokio::join!(Connection::open(near, "test:9092", settings), peer.greet(&[(3, 0, 12), (1, 4, 17)]));
    (connection.unwrap(), peer)
}

/// A request with this body, in the classic encoding.
pub fn raw(body: &'static [u8]) -> RawRequest {
    RawRequest {
        key: 3,
        name: "Metadata",
        version: 1,
        flexible: false,
        body: vec![Bytes::from_static(body)],
        waits: Duration::ZERO,
    }
}
