//! `datum rollup`: twelve aggregates per region and window.

#[cfg(feature = "crash-points")]
mod crash_points;
mod definition;
mod file;
mod job;
mod observer;
mod outputs;
mod panes;

pub(crate) use definition::OBJECTIVE_MS;

use crate::error::{CliError, UsageError};
use crate::options::{OnBadRecord, RollupOptions};

/// Runs the command.
pub(crate) async fn run(options: &RollupOptions) -> Result<(), CliError> {
    check(options)?;
    match &options.from_file {
        Some(file) => file::run(options, file),
        None if options.brokers.is_empty() => job::embedded(options).await,
        None => job::on_cluster(options).await,
    }
}

/// What the parser cannot see: options that only make sense together.
fn check(options: &RollupOptions) -> Result<(), UsageError> {
    if options.on_bad_record == OnBadRecord::DeadLetter && options.from_file.is_some() {
        return Err(UsageError::combination(
            "a file has no dead-letter topic for `--on-bad-record dead-letter`",
            "use `--on-bad-record skip`, which counts such lines",
        ));
    }
    UsageError::dead_letters(options.on_bad_record, options.dead_letter_topic.as_deref())
}
