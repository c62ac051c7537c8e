//! MurmurHash2 as Kafka's default partitioner uses it: seed `0x9747b28c`, 32 bits, little-endian words.
//!
//! Producers that share a topic must agree on it, or a key's records end up in two partitions.
//!
//! Source: Austin Appleby's public-domain MurmurHash2; vectors from Kafka's Java client.

/// The hash of a key.
#[must_use]
pub fn murmur2(key: &[u8]) -> u32 {
    // The length enters modulo 2^32.
    let [a, b, c, d, ..] = (key.len() as u64).to_le_bytes();
    let mut hash = SEED ^ u32::from_le_bytes([a, b, c, d]);
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// The partition of a key among `partitions`: the hash without its sign bit, modulo their number. `None` if there are none.
///
/// ```
/// use datum_kafka::wire::murmur2::partition_of;
/// assert_eq!(partition_of(b"tenant-00042", 6), Some(2));
/// assert_eq!(partition_of(b"tenant-00042", 0), None);
/// ```
#[must_use]
pub fn partition_of(key: &[u8], partitions: i32) -> Option<i32> {
    (partitions > 0).then(|| (murmur2(key) & 0x7fff_ffff).cast_signed() % partitions)
}

const SEED: u32 = 0x9747_b28c;
const M: u32 = 0x5bd1_e995;

#[cfg(test)]
mod tests {
    use super::{murmur2, partition_of};

    /// Hashes and partitions of six computed by Kafka's Java client 4.4.
    #[test]
    fn agrees_with_kafka() {
        for (key, hash, partition) in [
            ("", 275_646_681, 3),
            ("a", -1_563_381_124, 4),
            ("ab", 316_155_434, 2),
            ("abc", 479_470_107, 3),
            ("abcd", -1_323_649_548, 2),
            ("21", -973_932_308, 0),
            ("foobar", -790_332_482, 0),
            ("tenant-00042", 129_771_632, 2),
            ("a-little-bit-long-string", -985_981_536, 2),
            ("a-little-bit-longer-string", -1_486_304_829, 5),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971, 5),
            ("größe", 588_164_084, 2),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
            assert_eq!(partition_of(key.as_bytes(), 6), Some(partition), "{key}");
        }
        assert_eq!(murmur2(&[0xff, 0x80, 0, 1, 0xfe, 127, 0x90]), 879_434_268);
    }
}
