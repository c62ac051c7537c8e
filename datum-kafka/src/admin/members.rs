//! Who is in a group.

use std::sync::Arc;

use kafka_protocol::messages::{ConsumerGroupDescribeRequest, DescribeGroupsRequest, GroupId};

use super::{Admin, text};
use crate::cluster::CoordinatorKind;
use crate::error::Result;

impl Admin {
    /// The ids of a group's members, sorted, whichever protocol the group follows; none of a group that does not exist or that
    /// the cluster will not describe.
    ///
    /// Asks once: it serves messages for people, and nothing is decided by it.
    ///
    /// # Errors
    /// When the coordinator cannot be found or asked.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn group_members(&self, group: &str) -> Result<Vec<String>> {
        let name: Arc<str> = group.into();
        let coordinator = self.cluster.coordinator(CoordinatorKind::Group, &name).await?;
        let groups = vec![GroupId(text(group))];
        let classic = coordinator.send(&DescribeGroupsRequest::default().with_groups(groups.clone())).await?;
        let mut members: Vec<String> = classic
            .groups
            .iter()
            .flat_map(|group| group.members.iter().map(|member| member.member_id.to_string()))
            .collect();
        if members.is_empty() {
            // A group of the newer protocol is no classic group; a broker that does not know that protocol has none.
            let asked = ConsumerGroupDescribeRequest::default().with_group_ids(groups);
            if let Ok(found) = coordinator.send(&asked).await {
                let all = found.groups.iter().flat_map(|group| &group.members);
                members.extend(all.map(|member| member.member_id.to_string()));
            }
        }
        members.sort();
        Ok(members)
    }
}
