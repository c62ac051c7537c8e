//! The job's own assignor, with which its members tell each other what they do and who owns what.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use datum_kafka::TopicPartition;
use datum_kafka::group::{
    Assignments, Assignor, GroupView, Joining, MemberAssignment, Rebalance, Received, Refusal,
};

use crate::protocol::assignment::{self, PROTOCOL};
use crate::protocol::{Assignment, AssignmentError, Subscription};
use crate::settings::Mode;
use crate::stored::JobHash;

/// The assignor of one member. Clones share what the member says of itself.
#[derive(Clone, Debug)]
pub(super) struct JobAssignor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    topic: Arc<str>,
    mode: Mode,
    hash: JobHash,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// The last generation in which this member was an owner, while it still holds that state.
    owner_since: Option<i32>,
    /// Why it refused an assignment, with its type; the group only carries a text.
    refused: Option<AssignmentError>,
}

impl JobAssignor {
    pub(super) fn new(topic: Arc<str>, mode: Mode, hash: JobHash) -> Self {
        Self(Arc::new(Shared { topic, mode, hash, said: Mutex::default() }))
    }

    /// Says from now on that this member owned in `generation`, or that it holds no state.
    pub(super) fn owns_since(&self, generation: Option<i32>) {
        self.said().owner_since = generation;
    }

    /// Why an assignment was refused.
    pub(super) fn take_refused(&self) -> Option<AssignmentError> {
        self.said().refused.take()
    }

    /// Reads an assignment for this job's topic.
    pub(super) fn read<'a>(
        &self,
        user_data: &[u8],
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
        members: &[String],
    ) -> Result<Assignment, AssignmentError> {
        let own = partitions
            .into_iter()
            .filter(|tp| tp.topic == self.0.topic)
            .filter_map(|tp| u32::try_from(tp.partition).ok())
            .collect();
        Assignment::read(user_data, own, members)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse(&self, error: AssignmentError) -> Refusal {
        let members = match &error {
            AssignmentError::OwnershipBroken { members, .. } => members.clone(),
            AssignmentError::OtherJob => Vec::new(),
        };
        let refusal = Refusal::new(error.to_string()).naming(members);
        self.said().refused = Some(error);
        refusal
    }
}

impl Assignor for JobAssignor {
    fn name(&self) -> &str {
        PROTOCOL
    }

    /// Cooperative: an owner keeps its state while the group changes around it. No partition is withheld when it moves:
    /// the new owner's producer fences the old one, and the old one's generation is refused.
    fn rebalance(&self) -> Rebalance {
        Rebalance::Cooperative
    }

    fn subscription_data(&self, _: &Joining<'_>) -> Bytes {
        let subscription = Subscription {
            topic: self.0.topic.to_string(),
            mode: self.0.mode,
            hash: self.0.hash,
            owner_since: self.said().owner_since,
        };
        subscription.to_text().into()
    }

    fn assign(&self, view: &GroupView) -> Result<Assignments, Refusal> {
        let members: Vec<_> =
            view.members.iter().map(|m| (m.id.clone(), Subscription::from_text(&m.user_data))).collect();
        let count = view.topics.get(&self.0.topic).copied().unwrap_or(0);
        let count = u32::try_from(count).unwrap_or(0);
        // The leader decides by the present owner's job; its own id only breaks ties among members that never owned.
        let leader = view.members.first().map_or("", |m| m.id.as_str());
        let decided = assignment::assign(leader, count, &members).map_err(|error| self.refuse(error))?;
        let own = |partition: u32| {
            TopicPartition::new(self.0.topic.clone(), i32::try_from(partition).unwrap_or(i32::MAX))
        };
        Ok(decided
            .into_iter()
            .map(|(id, a)| {
                let user_data = a.to_text().into();
                let partitions = a.partitions.into_iter().map(own).collect();
                (id, MemberAssignment { partitions, user_data })
            })
            .collect())
    }

    fn accept(&self, received: &Received<'_>) -> Result<(), Refusal> {
        self.read(received.user_data, received.partitions, received.members)
            .map(drop)
            .map_err(|error| self.refuse(error))
    }
}
