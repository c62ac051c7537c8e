//! Crashes on purpose, for the kill run: only with the feature `crash-points`.
//!
//! `DATUM_CRASH_AT=POINT:kill` has the process end itself with SIGKILL when the job passes the point, `POINT:stop` has it stop itself with
//! SIGSTOP, once; the points are `before-transaction`, `output-written` and `transaction-ended`. Where `DATUM_CRASH_WHEN` names a file, this
//! is the first passing at which the file is there, so that whoever watches decides from when on. Before the signal the process appends
//! what it was told to the file `DATUM_CRASH_LOG`, so that a signal which hit can be told from any other end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use datum::job::run::JobPoint;
use nix::sys::signal::{Signal, raise};

use crate::error::UsageError;

/// Where to crash.
const AT: &str = "DATUM_CRASH_AT";

/// The file that has to be there.
const WHEN: &str = "DATUM_CRASH_WHEN";

/// Where to say so.
const LOG: &str = "DATUM_CRASH_LOG";

fn parse(given: &str) -> Option<(JobPoint, Signal)> {
    let (name, signal) = given.split_once(':')?;
    let point = match name {
        "before-transaction" => JobPoint::BeforeTransaction,
        "output-written" => JobPoint::OutputWritten,
        "transaction-ended" => JobPoint::TransactionEnded,
        _ => return None,
    };
    let signal = match signal {
        "kill" => Signal::SIGKILL,
        "stop" => Signal::SIGSTOP,
        _ => return None,
    };
    Some((point, signal))
}

/// Where to crash, and whether it has been done.
pub(super) struct CrashPoint {
    point: JobPoint,
    signal: Signal,
    given: String,
    when: Option<PathBuf>,
    log: Option<PathBuf>,
    done: AtomicBool,
}

impl CrashPoint {
    /// The crash that the environment asks for, if it asks for one.
    pub(super) fn asked_for() -> Result<Option<Self>, UsageError> {
        let Some(given) = std::env::var_os(AT) else { return Ok(None) };
        let given = given.to_string_lossy().into_owned();
        let Some((point, signal)) = parse(&given) else {
            return Err(UsageError::CrashPoint { variable: AT, given });
        };
        let file = |name| std::env::var_os(name).map(PathBuf::from);
        let (when, log) = (file(WHEN), file(LOG));
        Ok(Some(Self { point, signal, given, when, log, done: AtomicBool::new(false) }))
    }

    /// The job has passed a point; sends the process its signal if this is the one.
    pub(super) fn passed(&self, point: JobPoint) {
        let is_time = || self.when.as_ref().is_none_or(|file| file.exists());
        if point != self.point || !is_time() || self.done.swap(true, Ordering::Relaxed) {
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
        // SIGKILL ends the process before this returns; SIGSTOP holds all of its threads until SIGCONT.
        let _ = raise(self.signal);
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use datum::job::run::JobPoint;
    use nix::sys::signal::Signal;

    #[test]
    fn a_crash_point_is_a_name_and_what_happens_there() {
        assert_eq!(parse("before-transaction:kill"), Some((JobPoint::BeforeTransaction, Signal::SIGKILL)));
        assert_eq!(parse("transaction-ended:stop"), Some((JobPoint::TransactionEnded, Signal::SIGSTOP)));
        for wrong in ["", "output-written", "output-written:2", "kill", "at-lunch:kill"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
