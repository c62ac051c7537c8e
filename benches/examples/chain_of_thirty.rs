//! Thirty operators in a line: what `ci/compile-time` takes the time of.

use datum::prelude::*;

fn mix(x: u64) -> u64 {
    x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ x
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StreamError> {
    let source = Source::from_iter(0..1_000_u64)
        .map(mix)
        .map(mix)
        .filter(|x| x % 31 != 0)
        .map(|x| x ^ 7)
        .filter_map(|x| x.checked_add(1))
        .map(mix)
        .map(mix)
        .filter(|x| x % 29 != 0)
        .map(|x| x ^ 11)
        .take(900)
        .map(mix)
        .map(mix)
        .filter(|x| x % 23 != 0)
        .map(|x| x ^ 13)
        .filter_map(|x| x.checked_add(1))
        .map(mix)
        .map(mix)
        .filter(|x| x % 19 != 0)
        .map(|x| x ^ 17)
        .take(800)
        .map(mix)
        .map(mix)
        .filter(|x| x % 17 != 0)
        .map(|x| x ^ 19)
        .filter_map(|x| x.checked_add(1))
        .map(mix)
        .map(mix)
        .filter(|x| x % 13 != 0)
        .map(|x| x ^ 23)
        .take(700);
    let sum = source.run_with(Sink::fold(0_u64, u64::wrapping_add))?.await?;
    assert_eq!(sum, by_hand());
    Ok(())
}

/// The same as an iterator.
fn by_hand() -> u64 {
    let mut values: Vec<u64> = (0..1_000).collect();
    for (prime, mask, most) in [
        (31, 7, None),
        (29, 11, Some(900)),
        (23, 13, None),
        (19, 17, Some(800)),
        (17, 19, None),
        (13, 23, Some(700)),
    ] {
        values = values.into_iter().map(mix).map(mix).filter(|x| x % prime != 0).map(|x| x ^ mask).collect();
        match most {
            Some(most) => values.truncate(most),
            None => values = values.into_iter().filter_map(|x| x.checked_add(1)).collect(),
        }
    }
    values.into_iter().fold(0, u64::wrapping_add)
}
