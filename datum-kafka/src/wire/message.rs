//! Control-plane messages: the structs of the `kafka-protocol` crate, decoded only after their counts are checked.
//!
//! That crate's decoders reserve memory by the counts on the wire; [`decode`] walks the bytes first
//! ([`crate::wire::shape`]). Encoding goes through the crate directly.

use crate::wire::WireError;
use crate::wire::shape::Shaped;
use bytes::Bytes;
use kafka_protocol::protocol::{Decodable, Encodable};

/// Reads a body, without header; strings and blobs are slices of it.
///
/// # Errors
/// [`WireError`]: the field that is cut short or claims more than there is; [`WireError::UnsupportedVersion`];
/// [`WireError::NotExpressible`] if the bytes have the right layout and a value the message does not allow, for instance
/// null.
///
/// ```
/// use datum_kafka::wire::{WireError, message};
/// use kafka_protocol::messages::HeartbeatResponse;
///
/// let answer: HeartbeatResponse = message::decode(0, vec![0, 27].into())?;
/// assert_eq!(answer.error_code, 27);
/// # Ok::<(), WireError>(())
/// ```
pub fn decode<M: Decodable + Shaped>(version: i16, mut body: Bytes) -> Result<M, WireError> {
    check_version::<M>(version)?;
    M::SHAPE.check(version, &body)?;
    let what = M::SHAPE.name();
    let message = M::decode(&mut body, version).map_err(|_| WireError::NotExpressible { what, version })?;
    if body.is_empty() { Ok(message) } else { Err(WireError::TrailingBytes { what, left: body.len() }) }
}

/// Appends a body, without header.
///
/// # Errors
/// [`WireError::UnsupportedVersion`], or [`WireError::NotExpressible`] if a field is set that the version cannot carry.
/// `out` may then hold part of the message.
pub fn encode<M: Encodable + Shaped>(message: &M, version: i16, out: &mut Vec<u8>) -> Result<(), WireError> {
    check_version::<M>(version)?;
    message.encode(out, version).map_err(|_| WireError::NotExpressible { what: M::SHAPE.name(), version })
}

fn check_version<M: Shaped>(version: i16) -> Result<(), WireError> {
    let range = M::VERSIONS;
    if (range.min..=range.max).contains(&version) {
        return Ok(());
    }
    Err(WireError::UnsupportedVersion { what: M::SHAPE.name(), version, min: range.min, max: range.max })
}
