//! Requests as a connection needs them: the typed [`Call`] and the encoded [`RawRequest`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{KafkaErrorKind, Result};
use crate::wire::WireError;
use crate::wire::reader::Reader;
use crate::wire::writer::Writer;

/// A request message that knows how to be written, and how its response is read.
pub trait Call {
    /// The api key.
    const KEY: i16;
    /// The api's name, for errors.
    const NAME: &'static str;
    /// The lowest and highest version this client writes and reads.
    const VERSIONS: (i16, i16);
    /// The response.
    type Answer;

    /// Whether headers and messages of this version have tagged fields (KIP-482).
    fn flexible(version: i16) -> bool;

    /// How long the broker may hold the request on purpose; added to its deadline.
    fn waits(&self) -> Duration {
        Duration::ZERO
    }

    /// Appends the body, without header.
    ///
    /// # Errors
    /// A value that does not fit into the protocol at this version.
    fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), WireError>;

    /// Reads the body of a response, without header. Counts and lengths are checked before anything is allocated for them.
    ///
    /// # Errors
    /// A body that is not of this version.
    fn decode(version: i16, body: Bytes) -> Result<Self::Answer, WireError>;
}

/// An encoded request.
#[derive(Debug)]
pub struct RawRequest {
    /// The api key.
    pub key: i16,
    /// The api's name, for errors.
    pub name: &'static str,
    /// The version the body is in.
    pub version: i16,
    /// Whether headers of this version have tagged fields.
    pub flexible: bool,
    /// The body in pieces, written one after another without being joined.
    pub body: Vec<Bytes>,
    /// How long the broker may hold the request on purpose; added to its deadline.
    pub waits: Duration,
}

impl RawRequest {
    /// Header and body without the length prefix and without the correlation id, which the driver puts behind key and version.
    pub(super) fn into_frame(self, client_id: &Arc<str>) -> Result<Vec<Bytes>> {
        let encode = |reason: &str| KafkaErrorKind::Encode { api: self.name, reason: reason.into() };
        let mut head = Vec::with_capacity(64);
        let mut w = Writer::new(&mut head, false);
        w.i16(self.key);
        w.i16(self.version);
        w.nullable_string("client id", Some(client_id)).map_err(|error| encode(&error.to_string()))?;
        Writer::new(&mut head, self.flexible).no_tagged_fields();
        let length = head.len() + 4 + self.body.iter().map(Bytes::len).sum::<usize>();
        if i32::try_from(length).is_err() {
            return Err(encode("the request is longer than 2 GiB").into());
        }
        let mut pieces = Vec::with_capacity(self.body.len() + 1);
        pieces.push(head.into());
        pieces.extend(self.body);
        Ok(pieces)
    }
}

/// The body behind what is left of the response header, once its correlation id is read.
pub(super) fn skip_response_header(frame: Bytes, tags: bool) -> Result<Bytes, WireError> {
    if !tags {
        return Ok(frame);
    }
    let mut r = Reader::new(&frame, true);
    r.skip_tagged_fields("response header")?;
    let start = r.position();
    Ok(frame.slice(start..))
}
