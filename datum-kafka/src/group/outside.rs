//! Offsets of a group set from outside, by a tool.

use std::sync::Arc;

use kafka_protocol::messages::OffsetCommitRequest;

use super::{Offsets, calls, membership::MembershipConfig};
use crate::admin::Admin;
use crate::cluster::CoordinatorKind;
use crate::connection::Call;
use crate::error::{ErrorCode, KafkaError, Result, Subject};

impl Admin {
    /// Sets the committed offsets of a group that has no members; partitions that are not named keep theirs.
    ///
    /// The coordinator is asked as nobody's member, which it accepts while the group is empty. What a transaction is about to commit for the
    /// group is neither waited for nor ended by this: initialise the transactional id first, so that nothing of it follows.
    ///
    /// # Errors
    /// `UNKNOWN_MEMBER_ID` while the group has members: stop them first. Else the coordinator's refusal, naming the group or
    /// partition.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the offsets may be set or not; call it again.
    pub async fn set_offsets(&self, group: &str, offsets: &Offsets) -> Result<()> {
        const NAME: &str = <OffsetCommitRequest as Call>::NAME;
        let name: Arc<str> = group.into();
        let nobody = MembershipConfig::new(group, Vec::<String>::new());
        let request = calls::commit(&nobody, "", -1, offsets);
        let mut retry = self.cluster().retry();
        loop {
            let asked = async {
                let coordinator = self.cluster().coordinator(CoordinatorKind::Group, &name).await?;
                let response = coordinator.send(&request).await?;
                match calls::refused(&response) {
                    None => Ok(()),
                    Some((_, code @ ErrorCode::UnknownMemberId)) => {
                        Err(KafkaError::broker(code, NAME, Subject::Group(name.clone())))
                    }
                    Some((partition, code)) => {
                        Err(KafkaError::broker(code, NAME, Subject::Partition(partition)))
                    }
                }
            };
            match asked.await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    self.cluster()
                        .coordinator_failed(CoordinatorKind::Group, &name, error, &mut retry)
                        .await?;
                }
            }
        }
    }
}
