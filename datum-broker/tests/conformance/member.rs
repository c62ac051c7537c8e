//! A member of a group as a raw client plays it, and what it commits.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, OffsetCommitRequest,
    OffsetFetchRequest, SyncGroupRequest, SyncGroupResponse,
};

use crate::client::{Client, text, topic_name};
use crate::target::Target;

/// A member of a group with a connection of its own.
pub(crate) struct Member {
    pub client: Client,
    pub group: String,
    pub id: String,
    pub generation: i32,
    pub instance: Option<String>,
    pub session: Duration,
    pub subscription: Bytes,
}

/// A subscription of the consumer protocol, version 0.
pub(crate) fn subscription(topic: &str) -> Bytes {
    let mut blob = vec![0, 0, 0, 0, 0, 1];
    blob.extend(u16::try_from(topic.len()).expect("short").to_be_bytes());
    blob.extend(topic.as_bytes());
    blob.extend((-1i32).to_be_bytes());
    blob.into()
}

impl Member {
    pub(crate) fn new(target: &Target, group: &str) -> Self {
        let mut client = target.client();
        client.coordinator(group, 0);
        Self {
            client,
            group: group.to_owned(),
            id: String::new(),
            generation: -1,
            instance: None,
            session: Duration::from_secs(20),
            subscription: subscription("some-topic"),
        }
    }

    pub(crate) fn join_request(&self) -> JoinGroupRequest {
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text("range"))
            .with_metadata(self.subscription.clone());
        JoinGroupRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_session_timeout_ms(i32::try_from(self.session.as_millis()).expect("short"))
            .with_rebalance_timeout_ms(3_000)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol])
    }

    /// Asks for an id, without joining.
    pub(crate) fn introduce(&mut self) {
        let answer = self.client.call(5, &self.join_request());
        assert_eq!(answer.error_code, 79);
        self.id = answer.member_id.to_string();
    }

    /// Sends a join that may have to wait.
    pub(crate) fn send_join(&mut self) {
        if self.id.is_empty() && self.instance.is_none() {
            self.introduce();
        }
        let request = self.join_request();
        self.client.send(9, &request);
    }

    pub(crate) fn joined(&mut self) -> JoinGroupResponse {
        let answer = self.client.receive::<JoinGroupRequest>(9);
        if answer.error_code == 0 {
            self.id = answer.member_id.to_string();
            self.generation = answer.generation_id;
        }
        answer
    }

    pub(crate) fn join(&mut self) -> JoinGroupResponse {
        self.send_join();
        self.joined()
    }

    pub(crate) fn sync_request(&self, assignments: &[(&str, &'static [u8])]) -> SyncGroupRequest {
        let assignments = assignments.iter().map(|&(member, assignment)| {
            SyncGroupRequestAssignment::default()
                .with_member_id(text(member))
                .with_assignment(Bytes::from_static(assignment))
        });
        SyncGroupRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(assignments.collect())
    }

    pub(crate) fn sync(&mut self, assignments: &[(&str, &'static [u8])]) -> SyncGroupResponse {
        let request = self.sync_request(assignments);
        self.client.call(5, &request)
    }

    /// Joins an otherwise empty group and takes everything.
    pub(crate) fn alone(target: &Target, group: &str) -> Self {
        let mut member = Self::new(target, group);
        assert_eq!(member.join().error_code, 0);
        let id = member.id.clone();
        assert_eq!(member.sync(&[(&id, b"all")]).error_code, 0);
        member
    }

    pub(crate) fn heartbeat(&mut self) -> i16 {
        self.heartbeat_at(self.generation)
    }

    pub(crate) fn heartbeat_at(&mut self, generation: i32) -> i16 {
        let request = HeartbeatRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_generation_id(generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text));
        self.client.call(4, &request).error_code
    }

    pub(crate) fn leave(&mut self) -> i16 {
        let member = MemberIdentity::default()
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text));
        let request =
            LeaveGroupRequest::default().with_group_id(GroupId(text(&self.group))).with_members(vec![member]);
        let answer = self.client.call(5, &request);
        if answer.error_code != 0 { answer.error_code } else { answer.members[0].error_code }
    }

    pub(crate) fn commit(&mut self, topic: &str, offset: i64) -> i16 {
        let (id, generation) = (self.id.clone(), self.generation);
        commit(&mut self.client, &self.group, (&id, generation), topic, offset, "")
    }
}

pub(crate) fn commit(
    client: &mut Client,
    group: &str,
    (member, generation): (&str, i32),
    topic: &str,
    offset: i64,
    metadata: &str,
) -> i16 {
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(offset)
        .with_committed_leader_epoch(3)
        .with_committed_metadata(Some(text(metadata)));
    let topic =
        OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_generation_id_or_member_epoch(generation)
        .with_member_id(text(member))
        .with_topics(vec![topic]);
    client.call(8, &request).topics[0].partitions[0].error_code
}

/// Error, offset, leader epoch and metadata of partition 0.
pub(crate) fn committed(
    client: &mut Client,
    group: &str,
    topic: &str,
    stable: bool,
) -> (i16, i64, i32, String) {
    let topics =
        OffsetFetchRequestTopics::default().with_name(topic_name(topic)).with_partition_indexes(vec![0]);
    let asked = OffsetFetchRequestGroup::default()
        .with_group_id(GroupId(text(group)))
        .with_member_epoch(-1)
        .with_topics(Some(vec![topics]));
    let request = OffsetFetchRequest::default().with_groups(vec![asked]).with_require_stable(stable);
    let answer = client.call(8, &request);
    assert_eq!(answer.groups[0].error_code, 0);
    let found = &answer.groups[0].topics[0].partitions[0];
    let metadata = found.metadata.as_ref().map(ToString::to_string).unwrap_or_default();
    (found.error_code, found.committed_offset, found.committed_leader_epoch, metadata)
}
