//! `datum rollup`: twelve aggregates per region and window.

mod definition;
mod file;
mod job;
mod logic;
mod panes;

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
    let combination =
        |what: &str, remedy: &str| UsageError::Combination { what: what.into(), remedy: remedy.into() };
    let dead_letters = options.on_bad_record == OnBadRecord::DeadLetter;
    match (dead_letters, &options.dead_letter_topic) {
        (true, _) if options.from_file.is_some() => Err(combination(
            "a file has no dead-letter topic for `--on-bad-record dead-letter`",
            "use `--on-bad-record skip`, which counts such lines",
        )),
        (true, None) => Err(combination(
            "`--on-bad-record dead-letter` has no topic to send to",
            "name one with `--dead-letter-topic`",
        )),
        (false, Some(_)) => Err(combination(
            "`--dead-letter-topic` is given and nothing is sent there",
            "add `--on-bad-record dead-letter`",
        )),
        _ => Ok(()),
    }
}
