//! Options of `datum broker`.

use std::path::PathBuf;

use clap::Args;

use crate::quantity;

/// Run the embedded broker: Kafka's protocol in memory, for trying things and for tests. What it holds is gone when it ends.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  datum broker --port 9092                                   then: datum gen --brokers localhost:9092
  datum broker                                               on a free port, which is printed")]
pub(crate) struct BrokerOptions {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// How much it may hold; producers wait while it is full
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = quantity::bytes)]
    pub(crate) memory: u64,
    /// Read further options from this file: a key is an option's name, the command line wins
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
}
