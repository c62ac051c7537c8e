//! A topic that grows, and errors that only the cluster's present state explains.

use std::time::Duration;

use datum_kafka::admin::Admin;
use datum_kafka::group::GroupError;
use tokio::time::interval;

use super::{Done, Work};
use crate::machine::MachineError;
use crate::protocol::AssignmentError;
use crate::protocol::assignment::Broken;
use crate::run::facts::{self, partition};
use crate::run::{JobError, JobLogic};
use crate::settings::Mode;

/// For how long and how often it is asked whether a topic has grown, before a key out of its place is the reason that a job ends.
const GROWTH_SHOWS: Duration = Duration::from_secs(3);
const GROWTH_LOOK: Duration = Duration::from_millis(100);

impl<L: JobLogic> Work<L> {
    pub(super) fn counted(&mut self, count: u32) -> Result<(), JobError> {
        self.same_count(count)?;
        let Some(known) = self.known_count().filter(|known| *known < count) else { return Ok(()) };
        let (cluster, topic) = (self.cluster.clone(), self.topic.clone());
        self.tasks.push(Box::pin(async move {
            Done::Grown(facts::log_starts(&cluster, &topic, known..count).await)
        }));
        Ok(())
    }

    /// How many partitions the topic had when the oldest of the machines started, growth it has followed included.
    fn known_count(&self) -> Option<u32> {
        self.units.values().filter_map(|unit| Some(unit.driver.machine()?.partition_count())).min()
    }

    /// A co-partitioned job ends when the topic has grown beyond what any of its machines started with: keys have moved.
    pub(super) fn same_count(&self, count: u32) -> Result<(), JobError> {
        match self.known_count() {
            Some(known) if self.driver.job.mode == Mode::CoPartitioned && known < count => {
                Err(JobError::Machine(MachineError::CountChanged { partition: known, count: known }))
            }
            _ => Ok(()),
        }
    }

    /// What this member alone cannot tell of an error that ends the job.
    pub(super) async fn explained(&mut self, error: JobError) -> JobError {
        // The job ends here. One of its own requests may be asking for metadata: nobody drives it any more, and what is asked now would wait its
        // turn behind it.
        self.tasks.clear();
        match error {
            JobError::KeyNotCoPartitioned { .. } => self.explained_by_growth(error).await,
            // The group has members already, and they are of another kind.
            JobError::Group(GroupError::NoCommonAssignor { .. }) => {
                let why = Broken::ForeignMembers;
                AssignmentError::OwnershipBroken { why, members: self.members().await }.into()
            }
            JobError::Ownership(AssignmentError::OwnershipBroken { why, members }) if members.is_empty() => {
                AssignmentError::OwnershipBroken { why, members: self.members().await }.into()
            }
            error => error,
        }
    }

    /// The members of the group, as far as the cluster tells.
    async fn members(&mut self) -> Vec<String> {
        let (admin, group) = (Admin::new(self.cluster.clone()), self.run.group());
        let asked =
            tokio::time::timeout(self.run.request_limit, async move { admin.group_members(&group).await });
        asked.await.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// A key in a partition that is not its own is met before the growth that moved it, if metadata is older: that of this client, or of the broker, which
    /// takes producers' records before it tells of new partitions. So it is asked for a while.
    async fn explained_by_growth(&mut self, error: JobError) -> JobError {
        let (cluster, topic, known) = (self.cluster.clone(), self.topic.clone(), self.known_count());
        let grown = async move {
            let mut ask = interval(GROWTH_LOOK);
            loop {
                ask.tick().await;
                let count = cluster.refresh().await.ok().and_then(|m| m.partition_count(&topic));
                let count = count.and_then(|count| u32::try_from(count).ok());
                if let Some(count) = count.filter(|count| known.is_some_and(|known| known < *count)) {
                    return count;
                }
            }
        };
        match tokio::time::timeout(GROWTH_SHOWS, grown).await {
            Ok(count) => self.same_count(count).err().unwrap_or(error),
            Err(_) => error,
        }
    }

    pub(super) fn grown(&mut self, starts: &[(u32, i64)]) -> Result<(), JobError> {
        for (number, offset) in starts {
            let tp = partition(&self.topic, *number);
            for unit in self.units.values_mut() {
                unit.grow(&tp, *number, *offset, &mut self.consumer).map_err(JobError::Machine)?;
            }
        }
        Ok(())
    }
}
