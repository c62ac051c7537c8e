//! What a broker is told when it is started, with its defaults.

use std::time::Duration;

use crate::clock::millis;
use crate::group::GroupSettings;
use crate::txn::TxnSettings;

/// All settings; [`Builder`](crate::Builder) documents them.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub nodes: usize,
    pub memory: u64,
    pub delete_consumed: bool,
    pub auto_create: Option<i32>,
    pub default_partitions: i32,
    pub transaction_version: i16,
    pub marker_delay: Duration,
    pub max_transaction_timeout: Duration,
    pub min_session: Duration,
    pub max_session: Duration,
    pub initial_rebalance_delay: Duration,
    pub max_group_size: usize,
    pub max_offset_metadata: usize,
    pub retention_check: Duration,
    pub producer_expiry: Duration,
    pub max_request: usize,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 1,
            memory: 256 << 20,
            delete_consumed: false,
            auto_create: None,
            default_partitions: 1,
            transaction_version: 2,
            marker_delay: Duration::ZERO,
            max_transaction_timeout: Duration::from_secs(900),
            min_session: Duration::from_secs(1),
            max_session: Duration::from_secs(1_800),
            initial_rebalance_delay: Duration::ZERO,
            max_group_size: 10_000,
            max_offset_metadata: 4_096,
            retention_check: Duration::from_secs(5),
            producer_expiry: Duration::from_secs(86_400),
            max_request: 100 << 20,
            idle_timeout: Duration::from_secs(600),
            write_timeout: Duration::from_secs(30),
            seed: 0,
        }
    }
}

impl Settings {
    pub(crate) fn groups(&self) -> GroupSettings {
        GroupSettings {
            min_session: millis(self.min_session),
            max_session: millis(self.max_session),
            initial_delay: millis(self.initial_rebalance_delay),
            max_size: self.max_group_size,
        }
    }

    pub(crate) fn transactions(&self) -> TxnSettings {
        TxnSettings {
            max_timeout: millis(self.max_transaction_timeout),
            marker_delay: millis(self.marker_delay),
        }
    }
}
