//! `datum broker`: the embedded broker as a process of its own.

use std::io::{self, Write};

use datum::broker::Broker;

use crate::error::CliError;
use crate::interrupt;
use crate::options::BrokerOptions;

/// Runs the command until it is asked to stop.
///
/// The first line on the standard output is the bootstrap address, for scripts; clients may connect from then on.
pub(crate) async fn run(options: &BrokerOptions) -> Result<(), CliError> {
    let broker = Broker::builder().port(options.port).memory(options.memory).start().await?;
    writeln!(io::stdout().lock(), "{}", broker.bootstrap()).map_err(CliError::Output)?;
    // Nothing can be done about a closed standard error.
    let _ = writeln!(io::stderr().lock(), "The broker runs until Ctrl-C; what it holds is gone then.");
    interrupt::asked_to_stop().await?;
    broker.stop().await;
    Ok(())
}
