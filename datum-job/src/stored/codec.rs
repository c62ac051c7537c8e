//! The text form of [`Stored`].
//!
//! Fields are separated by `;`, in this order: `datum1`, P - L, W, E, partitions, mode (`x` exclusive, `c`
//! co-partitioned), topic id (hex), job hash (hex), steps (`offset - L : until`, separated by `,`). Numbers are decimal;
//! a watermark that has seen nothing is `-`. The longest text is 460 bytes.
//!
//! A text that does not begin with `datum` and a digit was written by something else (an auto-committing consumer, a
//! tool) and is told apart from one of ours that this version cannot read.

use std::fmt::Write as _;

use datum_window::{Millis, Watermark};

use super::{JobHash, MAX_STEPS, Step, Stored, TopicId};
use crate::settings::Mode;

/// The longest metadata that is written or read, in bytes.
pub const MAX_TEXT: usize = 512;

const VERSION: &str = "datum1";

impl Stored {
    /// The metadata to commit with offset [`low`](Stored::low).
    ///
    /// # Panics
    /// When there are more than [`MAX_STEPS`] steps.
    #[must_use]
    pub fn to_text(&self) -> String {
        assert!(self.steps.len() <= MAX_STEPS, "a horizon has at most {MAX_STEPS} steps");
        let mode = match self.mode {
            Mode::Exclusive => 'x',
            Mode::CoPartitioned => 'c',
        };
        let mut text = String::with_capacity(160);
        let ahead = self.position.saturating_sub(self.low);
        let _ = write!(
            text,
            "{VERSION};{ahead};{};{};{};{mode};{};{};",
            Time(self.watermark),
            Time(self.published),
            self.partitions,
            self.topic,
            self.hash
        );
        for (i, step) in self.steps.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{}:{}", step.offset.saturating_sub(self.low).max(0), step.until);
        }
        text
    }

    /// Reads the metadata committed with the offset `low`; `None` when it is not ours: empty or foreign.
    ///
    /// # Errors
    /// [`DecodeError`] when it is ours and cannot be read.
    pub fn from_text(low: i64, text: &str) -> Result<Option<Self>, DecodeError> {
        let Some(version) =
            text.strip_prefix("datum").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        else {
            return Ok(None);
        };
        if text.len() > MAX_TEXT {
            return Err(DecodeError::TooLong { length: text.len() });
        }
        let version = version.split(';').next().unwrap_or_default();
        if version != "1" {
            return Err(DecodeError::UnknownVersion { version: version.to_owned() });
        }
        let fields: Vec<&str> = text.split(';').collect();
        let [_, ahead, watermark, published, partitions, mode, topic, hash, steps] = fields[..] else {
            return Err(DecodeError::FieldCount { found: fields.len() });
        };
        let ahead: i64 = number("P", ahead)?;
        if ahead < 0 {
            return Err(DecodeError::Field { field: "P", found: ahead.to_string() });
        }
        Ok(Some(Self {
            low,
            position: low.saturating_add(ahead),
            watermark: time("W", watermark)?,
            published: time("E", published)?,
            steps: read_steps(low, steps)?,
            partitions: number("partitions", partitions)?,
            mode: match mode {
                "x" => Mode::Exclusive,
                "c" => Mode::CoPartitioned,
                other => return Err(DecodeError::Field { field: "mode", found: other.to_owned() }),
            },
            topic: TopicId(hex("topic", topic)?.to_be_bytes()),
            hash: JobHash(
                u64::try_from(hex("hash", hash)?)
                    .map_err(|_| DecodeError::Field { field: "hash", found: hash.to_owned() })?,
            ),
        }))
    }
}

/// Shows a watermark as stored.
struct Time(Watermark);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.get() {
            None => f.write_str("-"),
            Some(millis) => write!(f, "{millis}"),
        }
    }
}

fn number<N: std::str::FromStr>(field: &'static str, text: &str) -> Result<N, DecodeError> {
    text.parse().map_err(|_| DecodeError::Field { field, found: text.to_owned() })
}

fn time(field: &'static str, text: &str) -> Result<Watermark, DecodeError> {
    if text == "-" { Ok(Watermark::NONE) } else { number::<Millis>(field, text).map(Watermark::at) }
}

fn hex(field: &'static str, text: &str) -> Result<u128, DecodeError> {
    let wrong = || DecodeError::Field { field, found: text.to_owned() };
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    u128::from_str_radix(text, 16).map_err(|_| wrong())
}

fn read_steps(low: i64, text: &str) -> Result<Vec<Step>, DecodeError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = || DecodeError::Field { field: "steps", found: text.to_owned() };
    let mut steps: Vec<Step> = Vec::new();
    for step in text.split(',') {
        let (ahead, until) = step.split_once(':').ok_or_else(wrong)?;
        let ahead: i64 = number("steps", ahead)?;
        let offset = low.checked_add(ahead).filter(|_| ahead >= 0).ok_or_else(wrong)?;
        if steps.len() == MAX_STEPS || steps.last().is_some_and(|last| last.offset >= offset) {
            return Err(wrong());
        }
        steps.push(Step { offset, until: number("steps", until)? });
    }
    Ok(steps)
}

/// Why metadata of ours cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A newer version wrote it.
    #[error("the committed metadata has version {version}, this build reads version 1; run the newer build")]
    UnknownVersion {
        /// What stands for the version.
        version: String,
    },
    /// Longer than anything this version writes.
    #[error(
        "the committed metadata is {length} bytes long, at most {MAX_TEXT} are written; reset the group's offsets"
    )]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// Not the number of fields of its version.
    #[error("the committed metadata has {found} fields instead of 9; reset the group's offsets")]
    FieldCount {
        /// How many fields it has.
        found: usize,
    },
    /// One field does not hold what it should.
    #[error("the committed metadata holds {found:?} as {field}; reset the group's offsets")]
    Field {
        /// The field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Stored {
        Stored {
            low: 1_000,
            position: 1_250,
            watermark: Watermark::at(1_700_000_000_000),
            published: Watermark::at(1_700_000_031_000),
            steps: vec![Step { offset: 1_000, until: 5 }, Step { offset: 1_200, until: 1_700_004_500_000 }],
            partitions: 6,
            mode: Mode::Exclusive,
            topic: TopicId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]),
            hash: JobHash(0xab),
        }
    }

    /// The stored form is a contract with every earlier release: these texts never change.
    #[test]
    fn golden_texts() {
        let text = "datum1;250;1700000000000;1700000031000;6;x;000102030405060708090a0b0c0d0eff;\
                    00000000000000ab;0:5,200:1700004500000";
        assert_eq!(full().to_text(), text);
        assert_eq!(Stored::from_text(1_000, text), Ok(Some(full())));

        let fresh = Stored {
            low: 0,
            position: 0,
            watermark: Watermark::NONE,
            published: Watermark::NONE,
            steps: vec![],
            mode: Mode::CoPartitioned,
            ..full()
        };
        let text = "datum1;0;-;-;6;c;000102030405060708090a0b0c0d0eff;00000000000000ab;";
        assert_eq!(fresh.to_text(), text);
        assert_eq!(Stored::from_text(0, text), Ok(Some(fresh)));
    }

    #[test]
    fn the_longest_text_fits() {
        let worst = Stored {
            low: 0,
            position: i64::MAX,
            watermark: Watermark::at(i64::MIN + 1),
            published: Watermark::at(i64::MIN + 1),
            steps: (0..8).map(|i| Step { offset: i64::MAX - 8 + i, until: i64::MIN + 1 }).collect(),
            partitions: u32::MAX,
            mode: Mode::Exclusive,
            topic: TopicId([255; 16]),
            hash: JobHash(u64::MAX),
        };
        let text = worst.to_text();
        assert!(text.len() <= 460 && text.len() <= MAX_TEXT, "{} bytes", text.len());
        assert_eq!(Stored::from_text(0, &text), Ok(Some(worst)));
    }

    #[test]
    fn foreign_text_is_not_ours() {
        for text in ["", "my consumer", "datum", "datumx;1", "{\"a\":1}"] {
            assert_eq!(Stored::from_text(7, text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn what_is_ours_and_wrong_says_what() {
        assert_eq!(
            Stored::from_text(7, "datum2;new"),
            Err(DecodeError::UnknownVersion { version: "2".into() })
        );
        assert_eq!(Stored::from_text(7, "datum1;1;2"), Err(DecodeError::FieldCount { found: 3 }));
        let good = full().to_text();
        for (from, to, field) in [
            (";250;", ";-1;", "P"),
            (";250;", ";x;", "P"),
            (";1700000000000;", ";;", "W"),
            (";x;", ";y;", "mode"),
            (";6;", ";-6;", "partitions"),
            (";00000000000000ab;", ";1ffffffffffffffff;", "hash"),
            (";0001", ";+001", "topic"),
            ("0:5,200", "0:5,0", "steps"),
            ("0:5", "0", "steps"),
        ] {
            let text = good.replacen(from, to, 1);
            let found = Stored::from_text(1_000, &text);
            assert!(
                matches!(&found, Err(DecodeError::Field { field: f, .. }) if *f == field),
                "{text}: {found:?}"
            );
        }
        let long = format!("{good}{}", ",9:9".repeat(200));
        assert!(matches!(Stored::from_text(1_000, &long), Err(DecodeError::TooLong { .. })));
    }
}
