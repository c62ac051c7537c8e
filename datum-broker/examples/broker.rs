//! Runs an embedded broker until it is killed: `cargo run -p datum-broker --example broker -- 9092 [NODES]`.

use std::error::Error;
use std::io::Write;

use datum_broker::Broker;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(9092), |port| port.parse())?;
    let nodes = arguments.next().map_or(Ok(1), |nodes| nodes.parse())?;
    let broker = Broker::builder().port(port).nodes(nodes).start().await?;
    writeln!(std::io::stdout(), "{}", broker.bootstrap())?;
    std::future::pending().await
}
