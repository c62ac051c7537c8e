//! The random numbers behind the sample records: small, quick, the same everywhere.

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Debug)]
pub(super) struct SplitMix64(pub(super) u64);

impl SplitMix64 {
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform below `bound`, which is far below 2³²; the bias is below one in 2³² / `bound`.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }

    /// Uniform in `[0, 1)`, a multiple of 2⁻⁵³.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(super) const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[expect(clippy::cast_possible_truncation, reason = "an index below the number of choices")]
    pub(super) const fn pick<T: Copy, const N: usize>(&mut self, choices: &[T; N]) -> T {
        choices[self.below(N as u64) as usize]
    }
}
