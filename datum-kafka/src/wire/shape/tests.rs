//! The tables against the generated decoders: bytes made from a table must be what the decoder expects, to the last one,
//! and damaged bytes that pass the table must not surprise it.

use super::{Field, Kind, Shape, Shaped};
use crate::wire::WireError;
use crate::wire::message;
use crate::wire::writer::Writer;
use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use std::fmt::Debug;

/// A small generator of our own, so that a failure names its seed.
struct Rng(u64);

impl Rng {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn byte(&mut self) -> u8 {
        self.next(256).to_le_bytes()[0]
    }
}

fn sample(shape: &'static Shape, version: i16, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out, version >= shape.flexible_from);
    sample_struct(shape.fields, version, rng, &mut w);
    out
}

fn sample_struct(fields: &'static [Field], version: i16, rng: &mut Rng, w: &mut Writer<'_>) {
    for field in fields.iter().filter(|f| f.tag.is_none() && f.is_in(version)) {
        sample_field(&field.kind, version, rng, w);
    }
    let mut tagged: Vec<(u32, Vec<u8>)> = Vec::new();
    for field in fields.iter().filter(|f| f.is_in(version)) {
        let Some(tag) = field.tag else { continue };
        if rng.next(4) > 0 {
            let mut content = Vec::new();
            sample_field(&field.kind, version, rng, &mut Writer::new(&mut content, true));
            tagged.push((tag, content));
        }
    }
    if rng.next(3) == 0 {
        tagged.push((40, vec![1, 2, 3]));
    }
    tagged.sort();
    let tagged: Vec<(u32, &[u8])> = tagged.iter().map(|(tag, content)| (*tag, &content[..])).collect();
    w.tagged_fields("sample", &tagged).unwrap();
}

fn sample_field(kind: &'static Kind, version: i16, rng: &mut Rng, w: &mut Writer<'_>) {
    match *kind {
        // Small positive numbers: a few fields are enumerations or booleans.
        Kind::Fixed(1) => w.bool(rng.next(2) == 1),
        Kind::Fixed(len) => (0..len).for_each(|_| w.raw(&[rng.byte()])),
        Kind::String => {
            let len = usize::try_from(rng.next(12)).unwrap();
            w.string("sample", &"abcdefghijkl"[..len]).unwrap();
        }
        Kind::Blob => {
            let blob: Vec<u8> = (0..rng.next(20)).map(|_| rng.byte()).collect();
            w.bytes("sample", &blob).unwrap();
        }
        Kind::Array(element) => {
            let count = rng.next(4);
            w.array("sample", usize::try_from(count).unwrap()).unwrap();
            (0..count).for_each(|_| sample_field(element, version, rng, w));
        }
        Kind::Struct(fields) => sample_struct(fields, version, rng, w),
        Kind::Optional(fields) => {
            let there = rng.next(3) > 0;
            w.i8(if there { 1 } else { -1 });
            if there {
                sample_struct(fields, version, rng, w);
            }
        }
    }
}

fn tables_match_decoders<M: Decodable + Encodable + Message + Shaped + PartialEq + Debug>() {
    let name = M::SHAPE.name();
    for version in M::VERSIONS.min..=M::VERSIONS.max {
        for seed in 1..10u64 {
            let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let bytes = sample(M::SHAPE, version, &mut rng);
            assert_eq!(M::SHAPE.check(version, &bytes), Ok(()), "{name} version {version} seed {seed}");
            let mut rest = Bytes::from(bytes.clone());
            let decoded = M::decode(&mut rest, version)
                .unwrap_or_else(|error| panic!("{name} version {version} seed {seed}: {error}"));
            assert!(rest.is_empty(), "{name} version {version} seed {seed}: {} bytes left", rest.len());

            let mut again = Vec::new();
            decoded.encode(&mut again, version).unwrap();
            let back: M = message::decode(version, again.into()).unwrap();
            assert_eq!(back, decoded, "{name} version {version} seed {seed}");

            for cut in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
                assert!(
                    M::SHAPE.check(version, &bytes[..cut]).is_err(),
                    "{name} {version} {seed} cut at {cut}"
                );
            }
            damage::<M>(version, &bytes, &mut rng);
        }
    }
}

/// Damaged bytes either fail the table, or the decoder, or are read to the end: the two never see different layouts.
fn damage<M: Decodable + Shaped>(version: i16, bytes: &[u8], rng: &mut Rng) {
    for _ in 0..20 {
        let mut bytes = bytes.to_vec();
        for _ in 0..=rng.next(3) {
            let Some(last) = (bytes.len() as u64).checked_sub(1) else { return };
            let at = usize::try_from(rng.next(last + 1)).unwrap();
            bytes[at] = if rng.next(3) == 0 { 0xff } else { rng.byte() };
        }
        if M::SHAPE.check(version, &bytes).is_ok() {
            let mut rest = Bytes::from(bytes);
            let read = M::decode(&mut rest, version);
            assert!(read.is_err() || rest.is_empty(), "{} version {version}", M::SHAPE.name());
        } else {
            assert!(message::decode::<M>(version, bytes.into()).is_err());
        }
    }
}

macro_rules! check {
    ($message:ident) => {
        tables_match_decoders::<m::$message>();
    };
}

#[test]
fn every_table_is_its_decoders_layout() {
    for_each_message!(check);
}

/// A count of two billion in a few bytes is refused before anything is reserved, in the classic and the compact encoding,
/// at the top, nested, and in a tagged field.
#[test]
fn count_bombs_are_refused() {
    let refused = |shape: &'static Shape, version, bytes: &[u8]| {
        let result = shape.check(version, bytes);
        assert!(matches!(result, Err(WireError::CountExceedsBytes { .. })), "{}: {result:?}", shape.name());
    };
    let huge = [0x7f, 0xff, 0xff, 0xff];
    refused(m::MetadataRequest::SHAPE, 1, &huge);
    refused(m::LeaveGroupResponse::SHAPE, 3, &[&[0; 6][..], &huge].concat());
    refused(m::MetadataRequest::SHAPE, 9, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0]);
    // One topic, then partitions.
    refused(
        m::OffsetForLeaderEpochResponse::SHAPE,
        2,
        &[&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0][..], &huge].concat(),
    );
    // ApiVersions 3: no keys, throttle time, one tagged field with supported features.
    refused(m::ApiVersionsResponse::SHAPE, 3, &[0, 0, 1, 0, 0, 0, 0, 1, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]);
}

#[test]
fn versions_outside_the_message_are_refused() {
    let read = message::decode::<m::HeartbeatResponse>(99, Bytes::new());
    assert_eq!(
        read,
        Err(WireError::UnsupportedVersion { what: "Heartbeat response", version: 99, min: 0, max: 4 })
    );
}
