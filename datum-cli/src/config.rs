//! `--config FILE.toml`: options of a command as keys of a file.
//!
//! A key is the long name of an option of the command it is given to, without the dashes; a flag is `true` or `false`; the command line
//! wins over the file. An unknown key is an error, so that a misspelt one does not pass unseen. The file's options are put into
//! the command line before it is parsed, and so go through the same checks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};

/// What is wrong with a configuration file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It cannot be read.
    #[error("cannot read the configuration {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not TOML.
    #[error("{path} is not TOML: {source}", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A key is not an option of this command.
    #[error("{path}: `{key}` is not an option of `datum {command}`; its options are {known}", path = path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The command.
        command: String,
        /// The keys there are.
        known: String,
    },
    /// A value is of a type no option takes.
    #[error("{path}: `{key}` takes {expected}", path = path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What it takes.
        expected: &'static str,
    },
}

/// The command line with the options of `file` added: those of `command` that the command line, parsed as `given`,
/// does not hold itself.
pub(crate) fn with_file(
    line: &[OsString],
    command: &Command,
    given: &ArgMatches,
    file: &Path,
) -> Result<Vec<OsString>, ConfigError> {
    let path = || file.to_path_buf();
    let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Read { path: path(), source })?;
    let table: toml::Table =
        text.parse().map_err(|source| ConfigError::Syntax { path: path(), source: Box::new(source) })?;

    let mut line = line.to_vec();
    for (key, value) in &table {
        let option = command
            .get_arguments()
            .filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version" | "config"))
            .find(|arg| arg.get_long() == Some(key))
            .ok_or_else(|| ConfigError::UnknownKey {
                path: path(),
                key: key.clone(),
                command: command.get_name().to_owned(),
                known: known_keys(command),
            })?;
        let wrong = |expected| ConfigError::WrongType { path: path(), key: key.clone(), expected };
        let on_the_line = given.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
        let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
        let text = match value {
            toml::Value::Boolean(on) if is_flag => {
                if *on && !on_the_line {
                    line.push(format!("--{key}").into());
                }
                continue;
            }
            _ if is_flag => return Err(wrong("true or false")),
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            _ => return Err(wrong("a string or a whole number")),
        };
        if !on_the_line {
            line.push(format!("--{key}={text}").into());
        }
    }
    Ok(line)
}

fn known_keys(command: &Command) -> String {
    let keys: Vec<&str> = command
        .get_arguments()
        .filter_map(clap::Arg::get_long)
        .filter(|key| !matches!(*key, "help" | "version" | "config"))
        .collect();
    keys.join(", ")
}
