//! The `datum` command: see `datum --help`.

mod broker;
mod config;
mod enrich;
mod error;
mod generate;
mod group;
mod interrupt;
mod options;
mod probe;
mod progress;
mod quantity;
mod rollup;
mod summary;
mod topics;
mod usage;
mod workload;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::error::CliError;
use crate::options::{Cli, Command};

fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    let command = match parse(&line) {
        Ok(command) => command,
        Err(error) => return exit_with(&error),
    };
    start_logging();
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            error.exit_code()
        }
    }
}

fn run(command: &Command) -> Result<(), CliError> {
    match command {
        Command::Gen(options) => on_runtime(generate::run(options)),
        Command::Rollup(options) => on_runtime(rollup::run(options)),
        Command::Enrich(options) => on_runtime(enrich::run(options)),
        Command::Probe(options) => on_runtime(probe::run(options)),
        Command::Group(options) => on_runtime(group::run(options)),
        Command::Broker(options) => on_runtime(broker::run(options)),
    }
}

fn on_runtime(work: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(CliError::Runtime)?.block_on(work)
}

/// Reads the command line, and a configuration file if it names one.
fn parse(line: &[OsString]) -> Result<Command, clap::Error> {
    let mut clap = Cli::command();
    let matches = clap.try_get_matches_from_mut(line)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let Some(file) = cli.command.config() else { return Ok(cli.command) };

    let Some((name, given)) = matches.subcommand() else { return Ok(cli.command) };
    let Some(described) = clap.find_subcommand(name) else { return Ok(cli.command) };
    let line = config::with_file(line, described, given, file)
        .map_err(|error| clap.clone().error(ErrorKind::InvalidValue, error))?;
    Ok(Cli::from_arg_matches(&clap.try_get_matches_from_mut(line)?)?.command)
}

/// Help and versions go to the standard output and are no failure; the rest is a wrong command line.
fn exit_with(error: &clap::Error) -> ExitCode {
    // Nothing can be done about a closed output.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

fn complain(what: &str) {
    // Nothing can be done about a closed output.
    let _ = writeln!(std::io::stderr().lock(), "datum: {what}");
}

fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("DATUM_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    // A log that is kept is read by other programs: colours are for a terminal, and for who has not refused them.
    let colours =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
}
