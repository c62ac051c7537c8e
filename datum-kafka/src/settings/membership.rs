//! How a member of a consumer group behaves.

use std::sync::Arc;
use std::time::Duration;

use super::SettingsError;
use super::error::{duration, id};

/// Settings of group membership and of committing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupSettings {
    /// The group. Empty until set.
    pub group: Arc<str>,
    /// A name that survives restarts (static membership, KIP-345): a member that comes back under it within the session
    /// timeout gets its partitions back without a rebalance. Two live processes must not share one. Default none.
    pub instance_id: Option<Arc<str>>,
    /// How long the coordinator waits for a heartbeat before it gives the partitions to others. Default 45 s, as Kafka's
    /// (KIP-735); shorter takes over sooner from a dead process and evicts a paused one sooner. The broker
    /// bounds it (6 s to 30 min by default).
    pub session_timeout: Duration,
    /// How often a heartbeat is sent, from a task of its own that no slow downstream delays. Default 3 s; at most a third of
    /// the session timeout, so that two may get lost.
    pub heartbeat_interval: Duration,
    /// How long members have to rejoin during a rebalance, and so the bound of draining what was emitted from revoked
    /// partitions. Default 5 min, as Kafka's `max.poll.interval.ms`.
    pub rebalance_timeout: Duration,
    /// How long revoked partitions may drain before they are given up with what is acknowledged until then; never more than
    /// the rebalance timeout less a margin. What is not acknowledged by then is delivered again by the next owner. Default 30 s.
    pub drain_timeout: Duration,
    /// Whether only the assignor `cooperative-sticky` is offered (KIP-429): a rebalance then takes away the partitions that move and no others,
    /// and reading goes on meanwhile. Default false: `range` is offered first, which every client of any language knows, and a rebalance
    /// takes everything away for a moment. All members of a group must agree.
    pub cooperative: bool,
    /// How often dirty offsets are committed. Default 500 ms: it bounds what is delivered twice after a crash, at the price
    /// of two small requests per second.
    pub commit_interval: Duration,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            group: "".into(),
            instance_id: None,
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            rebalance_timeout: Duration::from_secs(300),
            drain_timeout: Duration::from_secs(30),
            cooperative: false,
            commit_interval: Duration::from_millis(500),
        }
    }
}

impl GroupSettings {
    pub(super) fn validate(&self) -> Result<(), SettingsError> {
        id("group", &self.group)?;
        if let Some(instance) = &self.instance_id {
            id("instance_id", instance)?;
        }
        duration("session_timeout", self.session_timeout)?;
        duration("heartbeat_interval", self.heartbeat_interval)?;
        duration("rebalance_timeout", self.rebalance_timeout)?;
        duration("drain_timeout", self.drain_timeout)?;
        duration("commit_interval", self.commit_interval)?;
        if self.heartbeat_interval > self.session_timeout / 3 {
            return Err(SettingsError::Conflict {
                first: "heartbeat_interval",
                second: "session_timeout",
                remedy: "at most a third of the session timeout, or one lost heartbeat loses the partitions",
            });
        }
        Ok(())
    }
}
