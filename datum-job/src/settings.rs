//! What a job is told before it starts.

use datum_window::{Millis, TumblingWindows};

use crate::stored::JobHash;

/// Who works on which partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One member owns every partition and merges them; the others stand by. Right for any group key.
    Exclusive,
    /// Each partition is a job of its own, spread over the members, with no minimum across partitions. Right only when
    /// every key lives in one partition.
    CoPartitioned,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::CoPartitioned => "co-partitioned",
        })
    }
}

/// The settings of a job's machine. The defaults suit windows of seconds to hours on a live topic.
#[derive(Clone, Debug)]
pub struct JobSettings {
    /// The windows.
    pub windows: TumblingWindows,
    /// Who works on which partitions. Default [`Mode::Exclusive`].
    pub mode: Mode,
    /// What the job computes, in 64 bits: stored, and compared at a restart.
    pub hash: JobHash,
    /// How far beyond the clock a record's event time may lie (1 h). A record further ahead goes aside and moves no
    /// watermark: without this one broken clock would close every window. More admits worse clocks.
    pub max_ahead: Millis,
    /// How long a partition must have shown that it has nothing before it stops holding windows open (5 s); `None`:
    /// a silent partition holds them for ever. Less publishes sooner and makes more of what a partition sends late.
    pub idle_timeout: Option<Millis>,
    /// How old the last fetch answer of an idle partition may be (1 s): a paused process knows nothing of its
    /// partitions.
    pub idle_fresh: Millis,
    /// How many late, dead and ahead records are held before they are published without waiting for a close (1,000).
    /// Input pauses at twice as many.
    pub side_bound: usize,
    /// How long progress may go uncommitted (30 s): the most that is read again after a crash, beyond the open windows.
    pub commit_interval: Millis,
    /// How long [`stop_at_end`](crate::Machine::stop_at_end) waits for open transactions of others below the end (60 s).
    pub end_wait: Millis,
}

impl JobSettings {
    /// Default settings for `windows`; `hash` covers what the job computes.
    #[must_use]
    pub const fn new(windows: TumblingWindows, hash: JobHash) -> Self {
        Self {
            windows,
            mode: Mode::Exclusive,
            hash,
            max_ahead: 3_600_000,
            idle_timeout: Some(5_000),
            idle_fresh: 1_000,
            side_bound: 1_000,
            commit_interval: 30_000,
            end_wait: 60_000,
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`SettingsError`], naming the setting.
    pub fn check(&self) -> Result<(), SettingsError> {
        for (name, given, least) in [
            ("max_ahead", self.max_ahead, 1),
            ("idle_timeout", self.idle_timeout.unwrap_or(0), 0),
            ("idle_fresh", self.idle_fresh, 1),
            ("commit_interval", self.commit_interval, 1),
            ("end_wait", self.end_wait, 0),
        ] {
            if given < least {
                return Err(SettingsError::TooSmall { name, given, least });
            }
        }
        if self.side_bound == 0 {
            return Err(SettingsError::TooSmall { name: "side_bound", given: 0, least: 1 });
        }
        let span = self.windows.size().saturating_add(self.windows.grace());
        let most = self.max_ahead.saturating_mul(5);
        if span > most {
            return Err(SettingsError::WindowBeyondHorizon { span, most, max_ahead: self.max_ahead });
        }
        Ok(())
    }
}

/// Why settings cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A setting is below its least value.
    #[error("{name} is {given}; give at least {least}")]
    TooSmall {
        /// The setting.
        name: &'static str,
        /// As given.
        given: Millis,
        /// The least value.
        least: Millis,
    },
    /// The horizon is stored in at most eight steps of 1.25 `max_ahead`; an open window must not outlast them.
    #[error(
        "windows of {span} ms with their grace are longer than {most} ms, five times max_ahead ({max_ahead} ms); \
         raise max_ahead"
    )]
    WindowBeyondHorizon {
        /// Size and grace.
        span: Millis,
        /// The longest allowed.
        most: Millis,
        /// As set.
        max_ahead: Millis,
    },
}
