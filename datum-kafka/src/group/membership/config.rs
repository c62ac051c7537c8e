//! Settings of one membership.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::group::{Assignor, CooperativeSticky, Range, Rebalance};

/// Settings of one membership. The defaults are the Java client's where it has them.
#[derive(Clone, Debug)]
pub struct MembershipConfig {
    /// The group's id.
    pub group: String,
    /// `group.instance.id`: a name that survives restarts, so that a restart within the session timeout moves nothing (KIP-345).
    /// None by default.
    pub instance_id: Option<String>,
    /// The topics to read.
    pub topics: BTreeSet<Arc<str>>,
    /// The assignors to offer, the preferred one first. `range` and `cooperative-sticky` by default; the rebalance is cooperative only if
    /// all that are offered are.
    pub assignors: Vec<Arc<dyn Assignor>>,
    /// How long the coordinator keeps a member it does not hear. 45 s by default; less finds a dead member sooner, and throws a slow one
    /// out sooner.
    pub session_timeout: Duration,
    /// How long the coordinator waits for members to rejoin, and thus the longest drain. 60 s by default.
    pub rebalance_timeout: Duration,
    /// The pause between heartbeats: 3 s by default, at most a third of the session timeout.
    pub heartbeat_interval: Duration,
    /// How long a drain may take. 30 s by default; at most the rebalance timeout less [`margin`](Self::margin).
    pub drain_timeout: Duration,
    /// What a drain leaves of the rebalance timeout for the commit and the rejoin. 2 s by default.
    pub margin: Duration,
    /// The time limit of a request that the coordinator does not hold back. 10 s by default.
    pub request_timeout: Duration,
    /// The first pause after a failure: 100 ms by default. It doubles up to [`retry_max`](Self::retry_max), with up to 20 % jitter.
    pub retry_min: Duration,
    /// The longest pause after a failure: 1 s by default.
    pub retry_max: Duration,
    /// Whether a static member says goodbye when it leaves. False by default: it is expected back.
    pub leave_static: bool,
    /// The rack to state in the subscription. None by default.
    pub rack: Option<String>,
    /// The seed of the jitter, so that a run can be repeated.
    pub seed: u64,
}

impl MembershipConfig {
    /// The defaults, for `group` reading `topics`.
    pub fn new<T: Into<Arc<str>>>(group: impl Into<String>, topics: impl IntoIterator<Item = T>) -> Self {
        Self {
            group: group.into(),
            instance_id: None,
            topics: topics.into_iter().map(Into::into).collect(),
            assignors: vec![Arc::new(Range), Arc::new(CooperativeSticky)],
            session_timeout: Duration::from_secs(45),
            rebalance_timeout: Duration::from_secs(60),
            heartbeat_interval: Duration::from_secs(3),
            drain_timeout: Duration::from_secs(30),
            margin: Duration::from_secs(2),
            request_timeout: Duration::from_secs(10),
            retry_min: Duration::from_millis(100),
            retry_max: Duration::from_secs(1),
            leave_static: false,
            rack: None,
            seed: 0,
        }
    }

    /// The pause between heartbeats that is used: never more than a third of the session timeout.
    pub fn heartbeat_every(&self) -> Duration {
        self.heartbeat_interval.min(self.session_timeout / 3)
    }

    /// How long a drain before a rejoin may take.
    pub fn drain_limit(&self) -> Duration {
        self.drain_timeout.min(self.rebalance_timeout.saturating_sub(self.margin))
    }

    /// How partitions change hands: cooperatively only if every offered assignor can.
    pub fn rebalance(&self) -> Rebalance {
        self.assignors.iter().map(|assignor| assignor.rebalance()).min().unwrap_or(Rebalance::Eager)
    }

    /// The offered assignor of that name.
    pub fn assignor(&self, name: &str) -> Option<&Arc<dyn Assignor>> {
        self.assignors.iter().find(|assignor| assignor.name() == name)
    }
}
