//! Crashes on purpose, for the kill run: only with the feature `crash-points`.
//!
//! `DATUM_CRASH_AT=POINT:N` has the process end itself with SIGKILL when the job passes the point for the N-th time, counted from 1;
//! the points are `before-transaction`, `output-written` and `transaction-ended`. Before it does so it appends `POINT:N` to the
//! file `DATUM_CRASH_LOG`, so that a kill which hit can be told from any other end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use datum::job::run::JobPoint;
use nix::sys::signal::{Signal, raise};

use crate::error::UsageError;

/// Where to crash.
const AT: &str = "DATUM_CRASH_AT";

/// Where to say so.
const LOG: &str = "DATUM_CRASH_LOG";

fn parse(given: &str) -> Option<(JobPoint, u64)> {
    let (name, nth) = given.split_once(':')?;
    let point = match name {
        "before-transaction" => JobPoint::BeforeTransaction,
        "output-written" => JobPoint::OutputWritten,
        "transaction-ended" => JobPoint::TransactionEnded,
        _ => return None,
    };
    Some((point, nth.parse().ok().filter(|nth| *nth > 0)?))
}

/// Where to crash, and how often the point was passed.
pub(super) struct CrashPoint {
    point: JobPoint,
    nth: u64,
    given: String,
    log: Option<PathBuf>,
    passed: AtomicU64,
}

impl CrashPoint {
    /// The crash that the environment asks for, if it asks for one.
    pub(super) fn asked_for() -> Result<Option<Self>, UsageError> {
        let Some(given) = std::env::var_os(AT) else { return Ok(None) };
        let given = given.to_string_lossy().into_owned();
        let Some((point, nth)) = parse(&given) else {
            return Err(UsageError::CrashPoint { variable: AT, given });
        };
        let log = std::env::var_os(LOG).map(PathBuf::from);
        Ok(Some(Self { point, nth, given, log, passed: AtomicU64::new(0) }))
    }

    /// The job has passed a point; ends the process if this was the one.
    pub(super) fn passed(&self, point: JobPoint) {
        if point != self.point || self.passed.fetch_add(1, Ordering::Relaxed) + 1 != self.nth {
            return;
        }
        if let Some(log) = &self.log {
            let said = OpenOptions::new()
                .append(true)
                .create(true)
                .open(log)
                .and_then(|mut log| writeln!(log, "{}", self.given));
            if let Err(error) = said {
                tracing::error!(%error, log = %log.display(), "the crash is not logged");
            }
        }
        // The signal ends the process before this returns.
        let _ = raise(Signal::SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use datum::job::run::JobPoint;

    #[test]
    fn a_crash_point_is_a_name_and_a_number_from_one() {
        assert_eq!(parse("before-transaction:2"), Some((JobPoint::BeforeTransaction, 2)));
        assert_eq!(parse("transaction-ended:1"), Some((JobPoint::TransactionEnded, 1)));
        for wrong in ["", "output-written", "output-written:0", "output-written:x", "at-lunch:1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
