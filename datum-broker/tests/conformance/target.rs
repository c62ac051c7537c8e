//! The broker under test.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use datum_broker::{Broker, BrokerHandle};
use tokio::runtime::{Builder, Runtime};

use crate::client::Client;

/// A broker with names that nobody else uses.
pub(crate) struct Target {
    address: String,
    /// Keeps the embedded broker running.
    _embedded: Option<(BrokerHandle, Runtime)>,
}

static NAMES: AtomicU64 = AtomicU64::new(0);

impl Target {
    pub(crate) fn embedded() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let broker = runtime.block_on(Broker::builder().start()).expect("the broker starts");
        Self { address: broker.bootstrap(), _embedded: Some((broker, runtime)) }
    }

    pub(crate) fn real() -> Option<Self> {
        let address = std::env::var("DATUM_TEST_KAFKA").ok();
        let required = std::env::var_os("DATUM_TEST_REQUIRE_KAFKA").is_some();
        assert!(address.is_some() || !required, "DATUM_TEST_KAFKA must name a real broker");
        address.map(|address| Self { address, _embedded: None })
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.address)
    }

    /// A name that no other test and no earlier run has used.
    pub(crate) fn name(&self, what: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
        format!("conformance-{what}-{now}-{}", NAMES.fetch_add(1, Ordering::Relaxed))
    }

    /// A new topic.
    pub(crate) fn topic(&self, partitions: i32, config: &[(&str, &str)]) -> String {
        let name = self.name("topic");
        assert_eq!(self.client().create_topic(&name, partitions, config).0, 0, "the topic is created");
        name
    }
}
