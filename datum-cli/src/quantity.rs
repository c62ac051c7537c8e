//! Quantities as a person types them: `30s`, `256MB`.

use std::time::Duration;

/// A duration: a whole number and `ms`, `s`, `m`, `h` or `d`.
pub(crate) fn duration(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = split(text);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(QuantityError::Duration),
    };
    let number: u64 = number.parse().map_err(|_| QuantityError::Duration)?;
    number.checked_mul(millis).map(Duration::from_millis).ok_or(QuantityError::TooLarge)
}

/// A number of bytes: a whole number and `B`, `kB`, `MB`, `GB` (powers of ten) or `KiB`, `MiB`, `GiB` (of two);
/// without a unit it is bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text);
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(QuantityError::Bytes),
    };
    let number: u64 = number.parse().map_err(|_| QuantityError::Bytes)?;
    number.checked_mul(factor).ok_or(QuantityError::TooLarge)
}

/// A count, with `_` allowed between digits and `k` or `M` behind them.
pub(crate) fn count(text: &str) -> Result<u64, QuantityError> {
    let plain = text.replace('_', "");
    let (number, unit) = split(&plain);
    let factor: u64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        _ => return Err(QuantityError::Count),
    };
    let number: u64 = number.parse().map_err(|_| QuantityError::Count)?;
    number.checked_mul(factor).ok_or(QuantityError::TooLarge)
}

/// Why a quantity was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityError {
    /// Not a duration.
    #[error("write a whole number and a unit: 500ms, 30s, 5m, 2h or 1d")]
    Duration,
    /// Not a size.
    #[error("write a whole number and a unit: 512kB, 256MB, 4MiB or 1GB")]
    Bytes,
    /// Not a count.
    #[error("write a whole number, as 2000000, 2_000_000 or 2M")]
    Count,
    /// More than 64 bits hold.
    #[error("the number is too large")]
    TooLarge,
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::{QuantityError, bytes, count, duration};
    use std::time::Duration;

    #[test]
    fn durations() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7_200)));
        for wrong in ["", "s", "30", "1.5s", "-1s", "30 s", "30sec"] {
            assert_eq!(duration(wrong), Err(QuantityError::Duration), "{wrong}");
        }
        assert_eq!(duration("18446744073709551615d"), Err(QuantityError::TooLarge));
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!(bytes("256MB"), Ok(256_000_000));
        assert_eq!(bytes("4MiB"), Ok(4_194_304));
        assert_eq!(bytes("4 MB"), Err(QuantityError::Bytes));
        assert_eq!(bytes("99999999999GB"), Err(QuantityError::TooLarge));
    }

    #[test]
    fn counts() {
        assert_eq!(count("2_000_000"), Ok(2_000_000));
        assert_eq!(count("2M"), Ok(2_000_000));
        assert_eq!(count("5k"), Ok(5_000));
        assert_eq!(count("x"), Err(QuantityError::Count));
    }
}
