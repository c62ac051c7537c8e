//! CRC-32C (Castagnoli), which covers a batch from its attributes on.

use crc_fast::CrcAlgorithm;

/// The checksum of some bytes.
#[inline]
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    // The crate answers every width in 64 bits; this one's upper half is empty.
    let [_, _, _, _, crc @ ..] = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes).to_be_bytes();
    u32::from_be_bytes(crc)
}

#[cfg(test)]
mod tests {
    use super::checksum;

    /// RFC 3720, appendix B.4.
    #[test]
    fn gives_the_published_values() {
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(checksum(&rising), 0x46dd_794e);
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
    }

    /// Whichever way is chosen for a length and an alignment, it is that of another crate.
    #[test]
    #[allow(clippy::cast_possible_truncation, reason = "only the top byte is left")]
    fn agrees_with_another_crate_at_every_length() {
        let bytes: Vec<u8> = (0..5_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for length in (0..700).chain((700..5_000).step_by(97)) {
            for from in 0..5_usize.min(bytes.len() - length + 1) {
                let part = &bytes[from..(from + length).min(bytes.len())];
                assert_eq!(checksum(part), crc32c::crc32c(part), "{from} to {length}");
            }
        }
    }
}
