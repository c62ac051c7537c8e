//! What only the embedded broker can do: a bounded memory, scripted faults, moved leaders, a clock turned by hand.

#[path = "../conformance/batch.rs"]
#[allow(dead_code)]
mod batch;
#[path = "../conformance/client.rs"]
#[allow(dead_code)]
mod client;

mod clock;
mod connections;
mod faults;
mod memory;
mod moves;
mod versions;

use datum_broker::{BrokerHandle, Builder};
use tokio::runtime::Runtime;

/// A broker on a runtime of its own, so that tests may block.
pub(crate) struct Running {
    pub broker: BrokerHandle,
    pub runtime: Runtime,
}

impl Running {
    pub(crate) fn new(builder: Builder) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let broker = runtime.block_on(builder.start()).expect("the broker starts");
        Self { broker, runtime }
    }

    pub(crate) fn client(&self) -> client::Client {
        self.client_of(1)
    }

    pub(crate) fn client_of(&self, node: i32) -> client::Client {
        client::Client::connect(&self.broker.address(node).expect("the node is there"))
    }
}
