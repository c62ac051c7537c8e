//! Why settings were refused.

use std::time::Duration;

use datum_net::AddressError;
use thiserror::Error;

/// Settings that contradict themselves or the protocol. Each variant names the setting and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A bootstrap address that is none.
    #[error("bootstrap: {0}")]
    Bootstrap(#[from] AddressError),
    /// A required setting that is missing.
    #[error("{setting} is not set: {remedy}")]
    Missing {
        /// The setting.
        setting: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A duration of zero, or one too long for the protocol's milliseconds.
    #[error("{setting} is {value:?}; it must be at least 1 ms and at most {max:?}")]
    Duration {
        /// The setting.
        setting: &'static str,
        /// What was given.
        value: Duration,
        /// The largest permitted value.
        max: Duration,
    },
    /// A size out of its range.
    #[error("{setting} is {value}; it must be from {min} to {max}")]
    Size {
        /// The setting.
        setting: &'static str,
        /// What was given.
        value: usize,
        /// The smallest permitted value.
        min: usize,
        /// The largest permitted value.
        max: usize,
    },
    /// Two settings that do not go together.
    #[error("{first} and {second} do not go together: {remedy}")]
    Conflict {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A name that the protocol does not permit.
    #[error("{setting} `{value}` is not a valid name: {rule}")]
    Name {
        /// The setting.
        setting: &'static str,
        /// What was given.
        value: Box<str>,
        /// What is permitted.
        rule: &'static str,
    },
}

/// The longest duration the protocol's signed 32-bit milliseconds hold, about 24 days.
const MAX_DURATION: Duration = Duration::from_millis(i32::MAX as u64);

pub(super) fn duration(setting: &'static str, value: Duration) -> Result<(), SettingsError> {
    if value < Duration::from_millis(1) || value > MAX_DURATION {
        return Err(SettingsError::Duration { setting, value, max: MAX_DURATION });
    }
    Ok(())
}

pub(super) fn size(setting: &'static str, value: usize, min: usize, max: usize) -> Result<(), SettingsError> {
    if value < min || value > max {
        return Err(SettingsError::Size { setting, value, min, max });
    }
    Ok(())
}

/// A topic name by the broker's rule: 1 to 249 of `[a-zA-Z0-9._-]`, not `.` or `..`.
pub(super) fn topic(value: &str) -> Result<(), SettingsError> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if value.is_empty() || value.len() > 249 || value == "." || value == ".." || !value.bytes().all(legal) {
        return Err(SettingsError::Name {
            setting: "topic",
            value: value.into(),
            rule: "1 to 249 letters, digits, dots, underscores or dashes",
        });
    }
    Ok(())
}

/// An id that travels as a 16-bit string.
pub(super) fn id(setting: &'static str, value: &str) -> Result<(), SettingsError> {
    if value.is_empty() || value.len() > 255 {
        return Err(SettingsError::Name { setting, value: value.into(), rule: "1 to 255 bytes" });
    }
    Ok(())
}
