//! Options of `datum group`.

use clap::{Args, Subcommand};

/// What a group has committed: how far it is, and how to set it back.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  datum group show --brokers localhost:9092                                  the rollup's progress, partition by partition
  datum group show --brokers localhost:9092 --group latency-enrich --json
  datum group reset --brokers localhost:9092 --to earliest                   then start the rollup with --reset")]
pub(crate) struct GroupOptions {
    #[command(subcommand)]
    pub(crate) action: GroupAction,
}

/// What to do with a group.
#[derive(Debug, Subcommand)]
pub(crate) enum GroupAction {
    /// Print how far the group is
    ///
    /// A window job commits the lowest offset that an open window still needs, so ordinary tools show up to a window of lag for ever. Here
    /// the two are apart: LAG is what is not processed (alert on this one), REPLAY what a restart reads again.
    Show(ShowOptions),
    /// Set the offsets of a group that has no members
    ///
    /// First ends what a transaction of the job may have left open, so that nothing of it follows. The state beside the offsets is dropped: a
    /// window job then starts only with --reset, and publishes windows that were published before once more.
    Reset(ResetOptions),
}

/// Which group.
#[derive(Args, Debug)]
pub(crate) struct WhichGroup {
    /// Bootstrap addresses of a Kafka cluster
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', required = true)]
    pub(crate) brokers: Vec<String>,
    /// The consumer group
    #[arg(long, default_value = "region-rollup")]
    pub(crate) group: String,
    /// The topic it reads
    #[arg(long, default_value = "bench-input")]
    pub(crate) topic: String,
}

/// Options of `datum group show`.
#[derive(Args, Debug)]
pub(crate) struct ShowOptions {
    #[command(flatten)]
    pub(crate) which: WhichGroup,
    /// Print one JSON object per partition instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `datum group reset`.
#[derive(Args, Debug)]
pub(crate) struct ResetOptions {
    #[command(flatten)]
    pub(crate) which: WhichGroup,
    /// Where to: `earliest`, `latest`, or an offset
    #[arg(long, value_name = "WHERE", value_parser = ResetTo::parse)]
    pub(crate) to: ResetTo,
}

/// Where a group is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetTo {
    Earliest,
    Latest,
    Offset(i64),
}

impl ResetTo {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            number => match number.parse::<i64>() {
                Ok(offset) if offset >= 0 => Ok(Self::Offset(offset)),
                _ => Err("write `earliest`, `latest`, or an offset".to_owned()),
            },
        }
    }
}
