//! What to do with a number of up to sixteen characters, by where its point is and how long it is.

/// What to do with one.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Cell {
    /// The shuffle that moves the digits to the end of the lanes, leaves out the point, and clears the lanes before. Of
    /// a number that cannot be one, whose point has no digit before or behind it, it keeps the point.
    pub(super) to_the_end: [u8; 16],
    /// Ten to the power of the number of digits behind the point.
    pub(super) divisor: f64,
    /// The least integer these digits make, if none is missing before the point and the first one is no needless zero.
    pub(super) least: u64,
}

/// A point that is not there, or not within the number, counts as the first character. A number of no characters is
/// taken for one of sixteen; it is followed by what is not a digit.
#[inline(always)]
pub(super) fn cell(point: usize, length: usize) -> &'static Cell {
    &CELLS[point % 16 * 16 + length.wrapping_sub(1) % 16]
}

static CELLS: [Cell; 256] = {
    let mut cells = [Cell { to_the_end: [0x80; 16], divisor: 1.0, least: 0 }; 256];
    let mut i = 0;
    while i < 256 {
        cells[i] = Cell::new(i / 16, i % 16 + 1);
        i += 1;
    }
    cells
};

impl Cell {
    #[expect(clippy::cast_possible_truncation, reason = "fifteen digits at most")]
    const fn new(point: usize, length: usize) -> Self {
        let has_point = point > 0 && point + 1 < length;
        let digits = if has_point { length - 1 } else { length };
        let whole = if has_point { point } else { length };
        let mut cell = Self { to_the_end: [0x80; 16], divisor: 1.0, least: if whole > 1 { 1 } else { 0 } };
        let mut digit = 0;
        while digit < digits {
            let behind = has_point && digit >= point;
            cell.to_the_end[16 - digits + digit] = digit as u8 + behind as u8;
            if behind {
                cell.divisor *= 10.0;
            }
            if digit > 0 {
                cell.least *= 10;
            }
            digit += 1;
        }
        cell
    }
}

/// All powers of ten of 64 bits.
pub(super) const WIDE_POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1; 20];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};
