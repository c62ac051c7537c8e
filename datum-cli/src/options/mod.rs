//! The command line: one file per command, and what they share.

mod broker;
mod enrich;
mod generate;
mod group;
mod probe;
mod rollup;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use datum::codec::sample::Layout;

pub(crate) use broker::BrokerOptions;
pub(crate) use enrich::EnrichOptions;
pub(crate) use generate::{CompressionName, GenOptions, RecordKey};
pub(crate) use group::{GroupAction, GroupOptions, ResetOptions, ResetTo, ShowOptions, WhichGroup};
pub(crate) use probe::{ProbeField, ProbeOptions};
pub(crate) use rollup::RollupOptions;

/// Typed streams from the command line: the region rollup and its companions.
#[derive(Debug, Parser)]
#[command(name = "datum", version, arg_required_else_help = true, max_term_width = 110)]
#[command(after_help = "Start with `datum rollup`: it needs nothing. Exit codes: 0 done, 1 the job failed, \
2 the command line or a setting is wrong.\nDATUM_LOG=debug shows what the library does.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Twelve aggregates per region and event-time window, exactly once
    Rollup(Box<RollupOptions>),
    /// Fill a topic or a file with sample records
    Gen(Box<GenOptions>),
    /// Keep some regions, compute two fields, republish record by record
    Enrich(Box<EnrichOptions>),
    /// Tail a topic and print how long its records took to be published
    Probe(Box<ProbeOptions>),
    /// Show how far a group is, or set it back
    Group(Box<GroupOptions>),
    /// Run the embedded broker
    Broker(Box<BrokerOptions>),
}

impl Command {
    /// The file of `--config`, where one was given.
    pub(crate) const fn config(&self) -> Option<&PathBuf> {
        match self {
            Self::Rollup(options) => options.config.as_ref(),
            Self::Gen(options) => options.config.as_ref(),
            Self::Enrich(options) => options.config.as_ref(),
            Self::Probe(options) => options.config.as_ref(),
            // Its options are few, and one of them sets offsets: they are written out.
            Self::Group(_) => None,
            Self::Broker(options) => options.config.as_ref(),
        }
    }
}

/// When output counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Delivery {
    /// Output and progress in one transaction
    ExactlyOnce,
    /// Output first, then progress: a crash between repeats output
    AtLeastOnce,
}

/// What happens to a record that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnBadRecord {
    /// End with an error that names the record
    Fail,
    /// Count it and go on
    Skip,
    /// Send it as it is to the dead-letter topic, and go on
    DeadLetter,
}

/// How panes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// One JSON object per line
    Json,
    /// Comma-separated, with a header
    Csv,
}

/// Parses a layout by name and lists the names in the help.
pub(crate) fn layout() -> impl TypedValueParser<Value = Layout> {
    PossibleValuesParser::new(Layout::ALL.map(Layout::name)).try_map(|name| name.parse::<Layout>())
}
