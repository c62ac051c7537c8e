//! Subscriptions and assignments of the `consumer` protocol type as bytes.
//!
//! The coordinator passes these blobs on without reading them, so they come from other members, of any client and any age. Reading
//! is therefore lenient in what may be missing (fields of later versions) or follow (fields of versions still to come), and strict in
//! what is there: every count is checked against the bytes that are left.
//!
//! Versions 0 to 3 of `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`: owned partitions came with 1, the generation with 2
//! (KIP-792), the rack with 3 (KIP-881). Written is version 3.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;

use super::{GroupMember, MemberAssignment, membership::Offer};
use crate::{
    TopicPartition,
    wire::{WireError, reader::Reader, writer::Writer},
};

const VERSION: i16 = 3;

/// Writes what a member says of itself.
pub(crate) fn write_subscription(offer: &Offer) -> Result<Bytes, WireError> {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out, false);
    w.i16(VERSION);
    w.array("topics", offer.topics.len())?;
    for topic in &offer.topics {
        w.string("topic", topic)?;
    }
    w.nullable_bytes(
        "user data",
        Some(&offer.user_data).filter(|data| !data.is_empty()).map(|data| &data[..]),
    )?;
    write_partitions(&mut w, &offer.owned)?;
    w.i32(offer.generation);
    w.nullable_string("rack", offer.rack.as_deref())?;
    Ok(out.into())
}

/// Reads what member `id` said of itself.
pub(crate) fn read_subscription(
    id: String,
    instance_id: Option<String>,
    blob: &Bytes,
) -> Result<GroupMember, WireError> {
    let mut r = Reader::new(blob, false);
    let version = r.i16("subscription version")?;
    let mut member = GroupMember { id, instance_id, generation: -1, ..GroupMember::default() };
    for _ in 0..r.array("topics", 2)? {
        member.topics.insert(r.string("topic")?.into());
    }
    member.user_data = Bytes::copy_from_slice(r.nullable_bytes("user data")?.unwrap_or_default());
    if version >= 1 && r.left() > 0 {
        member.owned = read_partitions(&mut r)?;
    }
    if version >= 2 && r.left() > 0 {
        member.generation = r.i32("generation")?;
    }
    if version >= 3 && r.left() > 0 {
        member.rack = r.nullable_string("rack")?.map(str::to_owned);
    }
    Ok(member)
}

/// Writes one member's part of a decision.
pub(crate) fn write_assignment(assignment: &MemberAssignment) -> Result<Bytes, WireError> {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out, false);
    w.i16(VERSION);
    write_partitions(&mut w, &assignment.partitions)?;
    let data = Some(&assignment.user_data).filter(|data| !data.is_empty());
    w.nullable_bytes("user data", data.map(|data| &data[..]))?;
    Ok(out.into())
}

/// Reads this member's part. An empty blob is an assignment of nothing: so answers a coordinator whose leader left this member out.
pub(crate) fn read_assignment(blob: &Bytes) -> Result<MemberAssignment, WireError> {
    if blob.is_empty() {
        return Ok(MemberAssignment::default());
    }
    let mut r = Reader::new(blob, false);
    r.i16("assignment version")?;
    let partitions = read_partitions(&mut r)?.into_iter().collect();
    let user_data = Bytes::copy_from_slice(r.nullable_bytes("user data")?.unwrap_or_default());
    Ok(MemberAssignment { partitions, user_data })
}

fn write_partitions(w: &mut Writer<'_>, partitions: &BTreeSet<TopicPartition>) -> Result<(), WireError> {
    let mut topics: BTreeMap<&Arc<str>, Vec<i32>> = BTreeMap::new();
    for tp in partitions {
        topics.entry(&tp.topic).or_default().push(tp.partition);
    }
    w.array("topics", topics.len())?;
    for (topic, numbers) in topics {
        w.string("topic", topic)?;
        w.array("partitions", numbers.len())?;
        for number in numbers {
            w.i32(number);
        }
    }
    Ok(())
}

fn read_partitions(r: &mut Reader<'_>) -> Result<Vec<TopicPartition>, WireError> {
    let mut partitions = Vec::new();
    for _ in 0..r.nullable_array("topics", 6)?.unwrap_or(0) {
        let topic: Arc<str> = r.string("topic")?.into();
        for _ in 0..r.array("partitions", 4)? {
            partitions.push(TopicPartition::new(topic.clone(), r.i32("partition")?));
        }
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offer() -> Offer {
        Offer {
            protocol: "range".into(),
            topics: ["a".into(), "b".into()].into(),
            owned: [TopicPartition::new("a", 0), TopicPartition::new("a", 2), TopicPartition::new("b", 1)]
                .into(),
            generation: 7,
            user_data: Bytes::from_static(b"owner"),
            rack: Some("r1".into()),
        }
    }

    #[test]
    fn a_subscription_comes_back_as_it_went() {
        let blob = write_subscription(&offer()).unwrap();
        let member = read_subscription("m".into(), None, &blob).unwrap();
        assert_eq!(member.topics, offer().topics);
        assert_eq!(member.owned, offer().owned.into_iter().collect::<Vec<_>>());
        assert_eq!(
            (member.generation, &member.user_data[..], member.rack.as_deref()),
            (7, &b"owner"[..], Some("r1"))
        );
    }

    #[test]
    fn version_0_of_an_old_client_is_read_and_so_is_a_version_to_come() {
        let old = Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff");
        let member = read_subscription("m".into(), None, &old).unwrap();
        assert_eq!((member.topics.len(), member.generation, member.owned.len()), (1, -1, 0));
        let mut newer = write_subscription(&offer()).unwrap().to_vec();
        newer[1] = 9;
        newer.extend_from_slice(b"more");
        assert_eq!(read_subscription("m".into(), None, &newer.into()).unwrap().generation, 7);
    }

    #[test]
    fn an_assignment_comes_back_as_it_went_and_an_empty_one_is_nothing() {
        let assignment = MemberAssignment { partitions: offer().owned, user_data: Bytes::from_static(b"x") };
        assert_eq!(read_assignment(&write_assignment(&assignment).unwrap()).unwrap(), assignment);
        assert_eq!(read_assignment(&Bytes::new()).unwrap(), MemberAssignment::default());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_allocate_by_a_claim(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            let _ = read_assignment(&bytes);
            let _ = read_subscription("m".into(), None, &bytes);
        }

        #[test]
        fn a_cut_or_bent_subscription_never_panics(cut in 0usize..120, at in 0usize..120, with in any::<u8>()) {
            let mut bytes = write_subscription(&offer()).unwrap().to_vec();
            bytes.truncate(cut);
            if let Some(byte) = bytes.get_mut(at) { *byte = with; }
            let _ = read_subscription("m".into(), None, &bytes.into());
        }
    }
}
