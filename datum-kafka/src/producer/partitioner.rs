//! Which partition a record goes to. Decided once, before its first sending, and never again.
//!
//! A key decides by its hash, the same 32-bit murmur2 as the Java client's, so that producers of both kinds agree. Records without a key
//! stick to one partition until a batch's worth of bytes has gone there, then to another one at random (KIP-794): batches fill, and
//! no partition gets more than its share of the bytes.

use datum_net::Rng;

/// The partition of a key among `count`.
///
/// ```
/// use datum_kafka::producer::partition_of_key;
/// assert_eq!(partition_of_key(b"eu-west-1", 6), partition_of_key(b"eu-west-1", 6));
/// ```
pub fn partition_of_key(key: &[u8], count: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % count.max(1)
}

/// 32-bit MurmurHash2 by Austin Appleby (public domain), with the seed Kafka uses.
pub fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ u32::try_from(data.len()).unwrap_or(u32::MAX);
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// Where records of one topic without a key go.
#[derive(Debug)]
pub(crate) struct Sticky {
    partition: u32,
    bytes: usize,
}

impl Sticky {
    pub(crate) fn new(rng: &mut Rng, count: u32) -> Self {
        Self { partition: draw(rng, count), bytes: 0 }
    }

    /// The partition for a record of `size` bytes, and whether the one before is left for good by it.
    pub(crate) fn choose(&mut self, rng: &mut Rng, count: u32, size: usize, batch_bytes: usize) -> u32 {
        if self.partition >= count || self.bytes >= batch_bytes {
            self.partition = draw(rng, count);
            self.bytes = 0;
        }
        self.bytes += size;
        self.partition
    }
}

fn draw(rng: &mut Rng, count: u32) -> u32 {
    u32::try_from(rng.below(count.max(1) as usize)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes as Kafka's own tests have them.
    #[test]
    fn hashes_as_the_java_client() {
        let known: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key).cast_signed(), hash, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn records_without_key_stick_for_a_batch_and_share_evenly() {
        let mut rng = Rng::seeded(3);
        let mut sticky = Sticky::new(&mut rng, 4);
        let mut bytes = [0usize; 4];
        let mut moves = 0;
        let mut before = None;
        for _ in 0..100_000 {
            let chosen = sticky.choose(&mut rng, 4, 100, 1000);
            moves += usize::from(before.replace(chosen).is_some_and(|before| before != chosen));
            bytes[chosen as usize] += 100;
        }
        assert!(moves <= 10_000, "{moves} moves");
        assert!(bytes.iter().all(|bytes| (2_000_000..3_000_000).contains(bytes)), "{bytes:?}");
    }
}
