//! How a broker is set up and started.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::clock::BrokerClock;
use crate::core::{Core, Node};
use crate::error::{SettingError, StartError};
use crate::handle::BrokerHandle;
use crate::server::{self, Shared};
use crate::settings::Settings;

/// An embedded broker; see the [crate's page](crate).
#[derive(Debug)]
pub struct Broker;

impl Broker {
    /// Begins the set-up of a broker.
    pub fn builder() -> Builder {
        Builder { settings: Settings::default(), host: Ipv4Addr::LOCALHOST.into(), port: 0, clock: None }
    }
}

/// Settings of a broker. The defaults suit tests: one node, a free port on the loopback, 256 MiB, no waiting anywhere.
#[derive(Clone, Debug)]
#[must_use = "a broker runs once it is started"]
pub struct Builder {
    settings: Settings,
    host: IpAddr,
    port: u16,
    clock: Option<i64>,
}

impl Builder {
    /// How many nodes clients see, numbered from 1 (1 by default, at most 100). All are this process and share one state;
    /// each has a port of its own, leads its share of the partitions and coordinates its share of the groups.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.settings.nodes = nodes;
        self
    }

    /// Where to listen, and what clients are told (127.0.0.1 by default). There is no authentication: whoever reaches the
    /// address may do everything.
    pub fn host(mut self, host: IpAddr) -> Self {
        self.host = host;
        self
    }

    /// Port of the first node; the others take the ones after it. 0 by default: any free ports.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Bytes that the record batches of all topics may take (256 MiB by default). When they are reached, a produce request
    /// waits, within its own timeout, until retention, DeleteRecords or [`Self::delete_consumed`] have made room, and is
    /// then refused with `KAFKA_STORAGE_ERROR`, which clients retry.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.memory = bytes;
        self
    }

    /// Whether records that every group has committed may be dropped when memory is short (false by default; the topic
    /// setting `datum.delete.consumed` does the same for one topic).
    ///
    /// For a partition, only groups count that have committed an offset there, and the lowest of their offsets; while a
    /// group's members subscribe to the topic and have not committed, nothing is dropped. So a group that begins later may
    /// find the beginning gone, as with any retention.
    pub fn delete_consumed(mut self, delete: bool) -> Self {
        self.settings.delete_consumed = delete;
        self
    }

    /// Creates topics that clients ask for, with this many partitions (off by default).
    pub fn auto_create_topics(mut self, partitions: i32) -> Self {
        self.settings.auto_create = Some(partitions);
        self
    }

    /// Partitions of a topic whose creator leaves the number open (1 by default).
    pub fn default_partitions(mut self, partitions: i32) -> Self {
        self.settings.default_partitions = partitions;
        self
    }

    /// The `transaction.version` that clients are told: 2 (the default) lets them use the second protocol of transactions
    /// (KIP-890), 0 and 1 keep them to the first.
    pub fn transaction_version(mut self, version: i16) -> Self {
        self.settings.transaction_version = version;
        self
    }

    /// How long after the answer to EndTxn the markers are written (0 by default: before the next request). Meanwhile the
    /// producer is answered `CONCURRENT_TRANSACTIONS`, and the last stable offset stands still.
    pub fn marker_delay(mut self, delay: Duration) -> Self {
        self.settings.marker_delay = delay;
        self
    }

    /// The longest transaction timeout that a producer may ask for (15 minutes by default).
    pub fn max_transaction_timeout(mut self, timeout: Duration) -> Self {
        self.settings.max_transaction_timeout = timeout;
        self
    }

    /// The session timeouts that members may ask for (1 s to 30 min by default; Apache Kafka's least is 6 s).
    pub fn session_timeouts(mut self, least: Duration, most: Duration) -> Self {
        self.settings.min_session = least;
        self.settings.max_session = most;
        self
    }

    /// How long an empty group waits for more members after the first has joined (0 by default; Apache Kafka waits 3 s).
    pub fn initial_rebalance_delay(mut self, delay: Duration) -> Self {
        self.settings.initial_rebalance_delay = delay;
        self
    }

    /// Members that a group may have (10,000 by default).
    pub fn max_group_size(mut self, members: usize) -> Self {
        self.settings.max_group_size = members;
        self
    }

    /// Bytes of metadata that may go with a committed offset (4,096 by default, as in Apache Kafka).
    pub fn max_offset_metadata(mut self, bytes: usize) -> Self {
        self.settings.max_offset_metadata = bytes;
        self
    }

    /// How often retention is enforced (every 5 s by default); it also is whenever memory is short.
    pub fn retention_check(mut self, every: Duration) -> Self {
        self.settings.retention_check = every;
        self
    }

    /// After how long without a batch a partition forgets a producer (1 day by default).
    pub fn producer_expiry(mut self, after: Duration) -> Self {
        self.settings.producer_expiry = after;
        self
    }

    /// Bytes of the largest request that is read (100 MiB by default).
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.settings.max_request = bytes;
        self
    }

    /// After how long without a request a connection is closed (10 minutes by default, as in Apache Kafka). Sockets are of the outside
    /// world, so this is the machine's time, also where the broker's clock is turned by hand. A request that is being answered, or held for
    /// data, is no idleness.
    pub fn idle_timeout(mut self, after: Duration) -> Self {
        self.settings.idle_timeout = after;
        self
    }

    /// How long a client may take to accept one answer (30 s by default) before its connection is closed: who sends requests and never
    /// reads would otherwise hold memory until the broker stops. The machine's time.
    pub fn write_timeout(mut self, within: Duration) -> Self {
        self.settings.write_timeout = within;
        self
    }

    /// Seed of topic ids, member ids and the cluster's id (0 by default).
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Starts with a clock that stands at this time (milliseconds since 1970) until it is turned; otherwise the clock is
    /// the machine's.
    pub fn standing_clock(mut self, now_ms: i64) -> Self {
        self.clock = Some(now_ms);
        self
    }

    /// Starts listening; clients may connect when this returns. Must be called within a tokio runtime that has time and
    /// I/O enabled; the broker's tasks run on it.
    ///
    /// # Errors
    /// [`StartError::Listen`] when a port is taken, [`StartError::Setting`].
    pub async fn start(self) -> Result<BrokerHandle, StartError> {
        let Self { settings, host, port, clock } = self;
        let setting = |error| Err(StartError::Setting(error));
        if !(1..=100).contains(&settings.nodes) {
            return setting(SettingError::Nodes(settings.nodes));
        }
        if !(0..=2).contains(&settings.transaction_version) {
            return setting(SettingError::TransactionVersion(settings.transaction_version));
        }
        let mut listeners = BTreeMap::new();
        let mut nodes = Vec::with_capacity(settings.nodes);
        for (id, offset) in (1..).zip(0..settings.nodes) {
            let offset = u16::try_from(offset).unwrap_or(u16::MAX);
            let port = match port {
                0 => 0,
                first => match first.checked_add(offset) {
                    Some(port) => port,
                    None => return setting(SettingError::Port(first)),
                },
            };
            let address = SocketAddr::new(host, port);
            let listen = |source| StartError::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(listen)?;
            let bound = listener.local_addr().map_err(listen)?;
            nodes.push(Node { id, host: bound.ip().to_string(), port: bound.port() });
            listeners.insert(id, listener);
        }
        let clock = clock.map_or_else(BrokerClock::running, BrokerClock::standing);
        let core = Core::new(settings, nodes.clone(), clock.now_ms());
        let shared = Arc::new(Shared::new(core, clock));
        let mut tasks: Vec<_> = listeners
            .into_iter()
            .map(|(id, listener)| tokio::spawn(server::serve(listener, id, Arc::clone(&shared))))
            .collect();
        let ticking = Arc::clone(&shared);
        tasks.push(tokio::spawn(async move { server::tick(&ticking).await }));
        Ok(BrokerHandle::new(shared, nodes, tasks))
    }
}
