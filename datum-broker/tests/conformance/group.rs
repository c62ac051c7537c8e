//! Consumer groups: the join barrier, generations, static members, offsets.

use std::time::{Duration, Instant};

use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, GroupId, JoinGroupRequest, LeaveGroupRequest,
    ListGroupsRequest, OffsetDeleteRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::client::{Client, text, topic_name, until};
use crate::member::{Member, commit, committed, subscription};
use crate::target::Target;

crate::cases! {
    a_member_takes_the_id_it_is_given
    joins_are_refused_for_what_is_wrong_with_them
    a_group_of_two_waits_for_both
    a_follower_waits_for_the_leader
    a_leaving_member_starts_a_rebalance
    a_leader_that_joins_again_starts_a_rebalance_and_a_follower_does_not
    a_follower_with_another_subscription_starts_a_rebalance
    an_announced_member_may_leave
    a_silent_member_is_put_out
    a_member_that_does_not_rejoin_is_put_out
    generations_are_checked
    commits_are_checked
    commits_while_rebalancing
    metadata_and_partitions_of_commits_are_checked
    a_static_member_comes_back_without_a_rebalance
    groups_are_listed_described_and_deleted
    offsets_are_deleted_unless_they_are_read
    offsets_go_with_their_topic
    old_versions_are_spoken
}

fn a_member_takes_the_id_it_is_given(target: &Target) {
    let group = target.name("group");
    let mut member = Member::new(target, &group);
    member.introduce();
    assert!(member.id.starts_with("conformance-"), "client id first: {}", member.id);
    let given = member.id.clone();
    let answer = member.join();
    assert_eq!((answer.error_code, answer.generation_id), (0, 1));
    assert_eq!((&*answer.member_id, &*answer.leader), (given.as_str(), given.as_str()));
    assert_eq!(answer.protocol_name.as_deref(), Some("range"));
    assert_eq!(answer.members.len(), 1);
    assert_eq!(answer.members[0].metadata, member.subscription);
    let assignment = member.sync(&[(&given, b"mine")]);
    assert_eq!((assignment.error_code, &*assignment.assignment), (0, &b"mine"[..]));
    assert_eq!(member.heartbeat(), 0);
    assert_eq!(member.sync(&[]).assignment, &b"mine"[..], "asked again");
}

fn joins_are_refused_for_what_is_wrong_with_them(target: &Target) {
    let group = target.name("group");
    let mut member = Member::new(target, &group);
    let mut code = |change: &dyn Fn(JoinGroupRequest) -> JoinGroupRequest| {
        let request = change(member.join_request());
        member.client.call(5, &request).error_code
    };
    assert_eq!(code(&|request| request.with_group_id(GroupId(text("")))), 24);
    assert_eq!(code(&|request| request.with_session_timeout_ms(10)), 26);
    assert_eq!(code(&|request| request.with_member_id(text("nobody"))), 25);
    assert_eq!(code(&|request| request.with_protocols(Vec::new())), 23);
    assert_eq!(code(&|request| request.with_protocol_type(text(""))), 23);
    let mut first = Member::alone(target, &group);
    assert_eq!(code(&|request| request.with_protocol_type(text("connect"))), 23);
    let other = JoinGroupRequestProtocol::default().with_name(text("other"));
    assert_eq!(
        code(&|request| request.with_protocols(vec![other.clone()])),
        23,
        "no assignor that all offer"
    );
    assert_eq!(code(&|request| request.with_member_id(text("nobody"))), 25);
    assert_eq!(first.heartbeat(), 0, "none of it disturbed the member");
}

fn a_group_of_two_waits_for_both(target: &Target) {
    let group = target.name("group");
    let mut first = Member::alone(target, &group);
    let mut second = Member::new(target, &group);
    second.introduce();
    assert_eq!(first.heartbeat(), 0, "an announced member does not disturb");
    second.send_join();
    until("the first is told", || (first.heartbeat() == 27).then_some(()));
    assert!(second.client.is_silent(), "the barrier waits for the first");
    let leader = first.join();
    let follower = second.joined();
    assert_eq!((leader.generation_id, follower.generation_id), (2, 2));
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));
    assert_eq!((&*leader.leader, &*follower.leader), (first.id.as_str(), first.id.as_str()));
    assert_eq!(first.heartbeat(), 0, "while the assignment is awaited");
}

fn two(target: &Target, group: &str) -> (Member, Member) {
    let mut first = Member::alone(target, group);
    let mut second = Member::new(target, group);
    second.send_join();
    until("the first is told", || (first.heartbeat() == 27).then_some(()));
    assert_eq!((first.join().error_code, second.joined().error_code), (0, 0));
    (first, second)
}

fn synced(first: &mut Member, second: &mut Member) {
    let (a, b) = (first.id.clone(), second.id.clone());
    assert_eq!(first.sync(&[(&a, b"1"), (&b, b"2")]).error_code, 0);
    assert_eq!(second.sync(&[]).assignment, &b"2"[..]);
}

fn a_follower_waits_for_the_leader(target: &Target) {
    let (mut first, mut second) = two(target, &target.name("group"));
    let request = second.sync_request(&[]);
    second.client.send(5, &request);
    assert!(second.client.is_silent());
    let (a, b) = (first.id.clone(), second.id.clone());
    assert_eq!(first.sync(&[(&a, b"1"), (&b, b"2")]).assignment, &b"1"[..]);
    assert_eq!(second.client.receive::<SyncGroupRequest>(5).assignment, &b"2"[..]);
}

fn a_leaving_member_starts_a_rebalance(target: &Target) {
    let (mut first, mut second) = two(target, &target.name("group"));
    synced(&mut first, &mut second);
    assert_eq!(first.leave(), 0);
    assert_eq!(first.leave(), 25);
    assert_eq!(first.heartbeat(), 25);
    until("the second is told", || (second.heartbeat() == 27).then_some(()));
    assert_eq!(second.sync(&[]).error_code, 27);
    let answer = second.join();
    assert_eq!((answer.generation_id, &*answer.leader), (3, second.id.as_str()), "it leads now");
}

fn a_leader_that_joins_again_starts_a_rebalance_and_a_follower_does_not(target: &Target) {
    let (mut first, mut second) = two(target, &target.name("group"));
    synced(&mut first, &mut second);
    let answer = second.join();
    assert_eq!(
        (answer.error_code, answer.generation_id, answer.members.len()),
        (0, 2, 0),
        "nothing has changed"
    );
    assert_eq!((first.heartbeat(), second.heartbeat()), (0, 0));
    first.send_join();
    until("the follower is told", || (second.heartbeat() == 27).then_some(()));
    assert!(first.client.is_silent());
    assert_eq!(second.join().generation_id, 3);
    assert_eq!(first.joined().members.len(), 2);
    let repeated = second.join();
    assert_eq!(repeated.generation_id, 3, "while the assignment is awaited as well");
    assert_eq!(first.join().members.len(), 2);
}

fn a_follower_with_another_subscription_starts_a_rebalance(target: &Target) {
    let (mut first, mut second) = two(target, &target.name("group"));
    synced(&mut first, &mut second);
    second.subscription = subscription("another-topic");
    second.send_join();
    until("the leader is told", || (first.heartbeat() == 27).then_some(()));
    let answer = first.join();
    assert_eq!(second.joined().generation_id, 3);
    let told = answer.members.iter().find(|member| *member.member_id == *second.id).expect("both are told");
    assert_eq!(told.metadata, second.subscription);
}

fn an_announced_member_may_leave(target: &Target) {
    let group = target.name("group");
    let mut first = Member::alone(target, &group);
    let mut second = Member::new(target, &group);
    second.introduce();
    assert_eq!(second.leave(), 0);
    until("the first is told, though nobody came", || (first.heartbeat() == 27).then_some(()));
    let request = second.join_request();
    assert_eq!(second.client.call(9, &request).error_code, 25, "its id is no more");
}

fn a_silent_member_is_put_out(target: &Target) {
    let group = target.name("group");
    let mut first = Member::alone(target, &group);
    let mut second = Member::new(target, &group);
    second.session = Duration::from_millis(1_000);
    second.send_join();
    until("the first is told", || (first.heartbeat() == 27).then_some(()));
    first.join();
    second.joined();
    synced(&mut first, &mut second);
    let begun = Instant::now();
    until("the silence is noticed", || (first.heartbeat() == 27).then_some(()));
    assert!(begun.elapsed() >= Duration::from_millis(500), "not at once");
    assert_eq!(second.heartbeat(), 25);
    assert_eq!(first.join().members.len(), 1);
}

fn a_member_that_does_not_rejoin_is_put_out(target: &Target) {
    let group = target.name("group");
    let mut first = Member::alone(target, &group);
    let mut second = Member::new(target, &group);
    second.send_join();
    // The first only sends heartbeats: the barrier ends at the rebalance timeout without it.
    until("the barrier gives up", || (first.heartbeat() == 25).then_some(()));
    let answer = second.joined();
    assert_eq!((answer.error_code, answer.members.len()), (0, 1));
}

fn generations_are_checked(target: &Target) {
    let mut member = Member::alone(target, &target.name("group"));
    let generation = member.generation;
    for wrong in [generation - 1, generation + 1] {
        assert_eq!(member.heartbeat_at(wrong), 22);
        member.generation = wrong;
        assert_eq!(member.sync(&[]).error_code, 22);
    }
    member.generation = generation;
    let request = member.sync_request(&[]).with_protocol_name(Some(text("other")));
    assert_eq!(member.client.call(5, &request).error_code, 23);
    let request = member.sync_request(&[]).with_member_id(text("nobody"));
    assert_eq!(member.client.call(5, &request).error_code, 25);
}

fn commits_are_checked(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut stranger = target.client();
    stranger.coordinator(&group, 0);
    assert_eq!(committed(&mut stranger, &group, &topic, true), (0, -1, -1, String::new()));
    assert_eq!(commit(&mut stranger, &group, ("somebody", 4), &topic, 1, ""), 22, "no such group");
    assert_eq!(commit(&mut stranger, &group, ("", -1), &topic, 5, "note"), 0, "an empty group takes it");
    assert_eq!(committed(&mut stranger, &group, &topic, true), (0, 5, 3, "note".to_owned()));
    let mut member = Member::alone(target, &group);
    assert_eq!(commit(&mut stranger, &group, ("", -1), &topic, 6, ""), 25, "not beside a member");
    assert_eq!(commit(&mut stranger, &group, ("nobody", member.generation), &topic, 6, ""), 25);
    let (id, generation) = (member.id.clone(), member.generation);
    assert_eq!(commit(&mut stranger, &group, (&id, generation - 1), &topic, 6, ""), 22);
    assert_eq!(commit(&mut stranger, &group, (&id, -1), &topic, 6, ""), 22);
    assert_eq!(member.commit(&topic, 7), 0);
    assert_eq!(committed(&mut stranger, &group, &topic, true).1, 7);
    assert_eq!(member.leave(), 0);
    assert_eq!(commit(&mut stranger, &group, ("", -1), &topic, 8, ""), 0, "empty again");
    assert_eq!(commit(&mut stranger, &group, (&id, generation), &topic, 9, ""), 25);
}

fn commits_while_rebalancing(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut first = Member::alone(target, &group);
    let mut second = Member::new(target, &group);
    second.send_join();
    until("the first is told", || (first.heartbeat() == 27).then_some(()));
    assert_eq!(first.commit(&topic, 3), 0, "members may commit before they rejoin");
    first.join();
    second.joined();
    assert_eq!(first.commit(&topic, 4), 27, "not before the assignment");
    synced(&mut first, &mut second);
    assert_eq!(first.commit(&topic, 5), 0);
}

fn metadata_and_partitions_of_commits_are_checked(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut client = target.client();
    client.coordinator(&group, 0);
    assert_eq!(commit(&mut client, &group, ("", -1), &topic, 1, &"x".repeat(4_096)), 0);
    assert_eq!(commit(&mut client, &group, ("", -1), &topic, 2, &"x".repeat(4_097)), 12);
    assert_eq!(commit(&mut client, &group, ("", -1), &target.name("unknown"), 1, ""), 3);
    assert_eq!(committed(&mut client, &group, &topic, false).1, 1);
}

fn a_static_member_comes_back_without_a_rebalance(target: &Target) {
    let group = target.name("group");
    let mut first = Member::new(target, &group);
    first.instance = Some("one".to_owned());
    assert_eq!(first.join().error_code, 0, "no id is asked for first");
    let id = first.id.clone();
    first.sync(&[(&id, b"kept")]);
    let mut again = Member::new(target, &group);
    again.instance = Some("one".to_owned());
    let answer = again.join();
    assert_eq!((answer.error_code, answer.generation_id), (0, 1));
    assert!(answer.skip_assignment, "the leader came back");
    assert_ne!(again.id, id);
    assert_eq!(again.sync(&[]).assignment, &b"kept"[..]);
    assert_eq!(again.heartbeat(), 0);
    assert_eq!(first.heartbeat(), 82, "the old one is fenced");
    assert_eq!(first.sync(&[]).error_code, 82);
    let request = first.join_request();
    assert_eq!(first.client.call(9, &request).error_code, 82);
    first.id = String::new();
    assert_eq!(first.leave(), 0, "an instance may be put out by its name alone");
    assert_eq!(again.heartbeat(), 25);
}

fn groups_are_listed_described_and_deleted(target: &Target) {
    let group = target.name("group");
    let mut member = Member::alone(target, &group);
    let mut client = target.client();
    let id = || GroupId(text(&group));
    let describe = |client: &mut Client| {
        let request = DescribeGroupsRequest::default().with_groups(vec![id()]);
        client.call(5, &request).groups.remove(0)
    };
    let stable = describe(&mut client);
    assert_eq!(
        (&*stable.group_state, &*stable.protocol_type, &*stable.protocol_data),
        ("Stable", "consumer", "range")
    );
    assert_eq!(stable.members[0].member_assignment, &b"all"[..]);
    assert_eq!(stable.members[0].member_metadata, member.subscription);
    let listed =
        client.call(4, &ListGroupsRequest::default().with_states_filter(vec![text("Stable")])).groups;
    assert!(listed.iter().any(|entry| entry.group_id == id()));
    let delete = |client: &mut Client| {
        client.call(2, &DeleteGroupsRequest::default().with_groups_names(vec![id()])).results[0].error_code
    };
    assert_eq!(delete(&mut client), 68);
    member.leave();
    assert_eq!(&*describe(&mut client).group_state, "Empty");
    assert_eq!(delete(&mut client), 0);
    assert_eq!(delete(&mut client), 69);
    assert_eq!(&*describe(&mut client).group_state, "Dead");
    let request = DescribeGroupsRequest::default().with_groups(vec![id()]);
    assert_eq!(client.call(6, &request).groups[0].error_code, 69);
}

fn offsets_are_deleted_unless_they_are_read(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut member = Member::new(target, &group);
    member.subscription = subscription(&topic);
    member.join();
    let id = member.id.clone();
    member.sync(&[(&id, b"")]);
    assert_eq!(member.commit(&topic, 5), 0);
    let mut client = target.client();
    let mut delete = |group: &str| {
        let partition = OffsetDeleteRequestPartition::default().with_partition_index(0);
        let topic = OffsetDeleteRequestTopic::default()
            .with_name(topic_name(&topic))
            .with_partitions(vec![partition]);
        let request =
            OffsetDeleteRequest::default().with_group_id(GroupId(text(group))).with_topics(vec![topic]);
        let answer = client.call(0, &request);
        if answer.error_code != 0 { answer.error_code } else { answer.topics[0].partitions[0].error_code }
    };
    assert_eq!(delete(&target.name("unknown")), 69);
    assert_eq!(delete(&group), 86);
    member.leave();
    assert_eq!(delete(&group), 0);
    assert_eq!(committed(&mut member.client, &group, &topic, false).1, -1);
}

fn offsets_go_with_their_topic(target: &Target) {
    use kafka_protocol::messages::DeleteTopicsRequest;
    use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut client = target.client();
    client.coordinator(&group, 0);
    assert_eq!(commit(&mut client, &group, ("", -1), &topic, 5, ""), 0);
    let state = DeleteTopicState::default().with_name(Some(topic_name(&topic)));
    client.call(6, &DeleteTopicsRequest::default().with_topics(vec![state]).with_timeout_ms(10_000));
    until("the offset is gone", || (committed(&mut client, &group, &topic, false).1 == -1).then_some(()));
}

fn old_versions_are_spoken(target: &Target) {
    let group = target.name("group");
    let mut member = Member::new(target, &group);
    let request = member.join_request().with_group_instance_id(None);
    for version in 2..=3 {
        let answer = member.client.call(version, &request);
        assert_eq!(answer.error_code, 0, "before version 4 no id is asked for first");
        member.id = answer.member_id.to_string();
        member.generation = answer.generation_id;
        assert_eq!(member.generation, answer.generation_id);
        let id = text(&member.id);
        let assignment =
            SyncGroupRequestAssignment::default().with_member_id(id.clone()).with_assignment("x".into());
        let sync = SyncGroupRequest::default()
            .with_group_id(GroupId(text(&group)))
            .with_generation_id(member.generation)
            .with_member_id(id.clone())
            .with_assignments(vec![assignment]);
        assert_eq!(member.client.call(1, &sync).assignment, &b"x"[..]);
        let leave = LeaveGroupRequest::default().with_group_id(GroupId(text(&group))).with_member_id(id);
        assert_eq!(member.client.call(1, &leave).error_code, 0);
    }
    let unknown = JoinGroupRequest::default()
        .with_group_id(GroupId(text(&group)))
        .with_member_id(text("nobody"))
        .with_session_timeout_ms(20_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(request.protocols);
    let answer = member.client.call(3, &unknown);
    assert_eq!((answer.error_code, answer.protocol_name), (25, Some(StrBytes::new())));
}
