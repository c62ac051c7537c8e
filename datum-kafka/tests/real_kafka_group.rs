//! Consumer groups on a real Apache Kafka, where `DATUM_TEST_KAFKA` names one (`host:port`); without it each test says that it was skipped.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests too")]

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use datum_kafka::{
    ClientSettings, TopicPartition,
    admin::{Admin, NewTopic},
    cluster::Cluster,
    group::{
        CommitError, CommitOffset, CooperativeSticky, Group, GroupEvent, GroupEvents, Offsets, Range,
        membership::MembershipConfig,
    },
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// The broker to test against.
fn broker() -> Option<String> {
    let broker = std::env::var("DATUM_TEST_KAFKA").ok();
    if broker.is_none() {
        println!("skipped: DATUM_TEST_KAFKA is not set");
    }
    broker
}

/// A name that no earlier run has used.
fn fresh(name: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{name}-{nanos}")
}

async fn topic(broker: &str, partitions: i32) -> String {
    let name = fresh("group");
    let admin = Admin::new(Cluster::connect(ClientSettings::new(broker)).await.unwrap());
    admin.create_topic(&NewTopic::new(&name).partitions(partitions)).await.unwrap();
    name
}

/// One member and what it has, its drains answered at once with a commit of where it stands.
struct Member {
    group: Group,
    events: GroupEvents,
    owned: BTreeSet<TopicPartition>,
    generation: i32,
    revoked: usize,
}

impl Member {
    async fn join(broker: &str, config: MembershipConfig) -> Self {
        let cluster = Cluster::connect(ClientSettings::new(broker)).await.unwrap();
        let (group, events) = Group::join(cluster, config);
        Self { group, events, owned: BTreeSet::new(), generation: -1, revoked: 0 }
    }

    /// Serves one event.
    async fn step(&mut self) {
        match self.events.next().await.expect("the place has not ended") {
            GroupEvent::Assigned { assigned, epoch } => {
                let mut ledger = self.group.ledger();
                for tp in &assigned.added {
                    ledger.acked_through(tp, epoch, i64::from(assigned.generation), -1);
                }
                drop(ledger);
                self.generation = assigned.generation;
                self.owned.extend(assigned.added);
            }
            GroupEvent::Revoke(revoke) => {
                self.revoked += revoke.partitions.len();
                let group = self.group.clone();
                tokio::spawn(async move {
                    let only = revoke.partitions.into_iter().collect();
                    group.commit_dirty(Some(only), PATIENCE).await.unwrap();
                    group.drained(revoke.drain);
                });
            }
            GroupEvent::Revoked { partitions } | GroupEvent::Lost { partitions, .. } => {
                self.owned.retain(|tp| !partitions.contains(tp));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Serves all members until `done`.
async fn until(members: &mut [Member], done: impl Fn(&[Member]) -> bool) {
    let served = timeout(PATIENCE, async {
        while !done(members) {
            let steps = members.iter_mut().map(|member| Box::pin(member.step()));
            futures_util::future::select_all(steps).await;
        }
    });
    if served.await.is_err() {
        let standing: Vec<_> = members.iter().map(|m| (m.generation, m.owned.clone())).collect();
        panic!("not reached within {PATIENCE:?}: {standing:?}");
    }
}

fn config(group: &str, topic: &str, cooperative: bool) -> MembershipConfig {
    let mut config = MembershipConfig::new(group, [topic]);
    config.assignors = if cooperative { vec![Arc::new(CooperativeSticky)] } else { vec![Arc::new(Range)] };
    config.session_timeout = Duration::from_secs(6);
    config.heartbeat_interval = Duration::from_millis(200);
    config
}

fn even(members: &[Member], each: usize) -> bool {
    let all: BTreeSet<_> = members.iter().flat_map(|member| &member.owned).collect();
    all.len() == each * members.len() && members.iter().all(|member| member.owned.len() == each)
}

async fn two_members_share_and_one_leaves(cooperative: bool) {
    let Some(broker) = broker() else { return };
    let topic = topic(&broker, 6).await;
    let group = fresh("members");
    let mut members = vec![Member::join(&broker, config(&group, &topic, cooperative)).await];
    until(&mut members, |members| even(members, 6)).await;
    members.push(Member::join(&broker, config(&group, &topic, cooperative)).await);
    until(&mut members, |members| even(members, 3)).await;
    let expected = if cooperative { 3 } else { 6 };
    assert_eq!(members[0].revoked, expected, "partitions the first member had to give up");
    let second = members.remove(1);
    let leaving = tokio::spawn({
        let group = second.group.clone();
        async move { group.leave(PATIENCE).await }
    });
    let mut second = second;
    while !leaving.is_finished() {
        match timeout(PATIENCE, second.events.next()).await.expect("an event") {
            Some(GroupEvent::Revoke(revoke)) => second.group.drained(revoke.drain),
            Some(_) => {}
            None => break,
        }
    }
    leaving.await.unwrap().unwrap();
    until(&mut members, |members| even(members, 6)).await;
}

#[tokio::test]
async fn eager_members_share_and_one_leaves() {
    two_members_share_and_one_leaves(false).await;
}

#[tokio::test]
async fn cooperative_members_share_and_one_leaves() {
    two_members_share_and_one_leaves(true).await;
}

#[tokio::test]
async fn a_third_cooperative_member_disturbs_only_what_moves_and_no_commit_meets_a_wrong_generation() {
    let Some(broker) = broker() else { return };
    let topic = topic(&broker, 9).await;
    let group = fresh("third");
    let mut members = Vec::new();
    for count in [9, 5, 3] {
        members.push(Member::join(&broker, config(&group, &topic, true)).await);
        until(&mut members, |members| {
            members.iter().map(|m| m.owned.len()).sum::<usize>() == 9
                && members.iter().all(|m| m.owned.len() <= count && m.owned.len() >= 9 / members.len())
        })
        .await;
    }
    // Every commit above was awaited without error, those sent during the rebalances too.
    assert!(members.iter().map(|member| member.revoked).sum::<usize>() <= 4 + 3);
}

#[tokio::test]
async fn commits_carry_metadata_and_leader_epoch_and_a_foreign_partition_is_refused() {
    let Some(broker) = broker() else { return };
    let topic = topic(&broker, 2).await;
    let group = fresh("commits");
    let mut members = vec![Member::join(&broker, config(&group, &topic, true)).await];
    until(&mut members, |members| even(members, 2)).await;
    let tp = TopicPartition::new(topic.as_str(), 1);
    let commit = CommitOffset::new(7).leader_epoch(0).metadata("v1 P=9");
    members[0].group.commit(Offsets::from([(tp.clone(), commit)]), PATIENCE).await.unwrap();
    let admin = Admin::new(Cluster::connect(ClientSettings::new(&broker)).await.unwrap());
    let found = admin.committed_offsets(&group, std::slice::from_ref(&tp)).await.unwrap();
    assert_eq!((found[&tp].offset, &*found[&tp].metadata), (7, "v1 P=9"));
    assert_eq!(found[&tp].leader_epoch, Some(0));
    let foreign = Offsets::from([(TopicPartition::new("elsewhere", 0), CommitOffset::new(1))]);
    let refused = members[0].group.commit(foreign, PATIENCE).await;
    assert!(matches!(refused, Err(CommitError::NotOwned { .. })), "{refused:?}");
    let large = CommitOffset::new(8).metadata("x".repeat(5000));
    let refused = members[0].group.commit(Offsets::from([(tp, large)]), PATIENCE).await;
    assert!(matches!(refused, Err(CommitError::Refused { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_static_member_that_restarts_gets_its_partitions_back_without_a_rebalance() {
    let Some(broker) = broker() else { return };
    let topic = topic(&broker, 4).await;
    let group = fresh("static");
    let named = |name: &str| {
        let mut config = config(&group, &topic, true);
        config.instance_id = Some(name.into());
        config
    };
    let mut members = vec![Member::join(&broker, named("a")).await, Member::join(&broker, named("b")).await];
    until(&mut members, |members| even(members, 2)).await;
    let (generation, had) = (members[1].generation, members[1].owned.clone());
    let gone = members.remove(1);
    drop(gone);
    members.push(Member::join(&broker, named("b")).await);
    until(&mut members, |members| even(members, 2)).await;
    assert_eq!((members[1].generation, &members[1].owned), (generation, &had));
    let confirmed = members[1].group.confirm(PATIENCE).await.unwrap();
    assert_eq!(confirmed, generation);
}

#[tokio::test]
async fn an_owner_that_stays_owner_learns_its_next_generation() {
    let Some(broker) = broker() else { return };
    let topic = topic(&broker, 1).await;
    let group = fresh("owner");
    let mut members = vec![Member::join(&broker, config(&group, &topic, true)).await];
    until(&mut members, |members| even(members, 1)).await;
    let before = members[0].group.identity().expect("a member has one");
    members.push(Member::join(&broker, config(&group, &topic, true)).await);
    let waiting = tokio::spawn({
        let group = members[0].group.clone();
        async move { group.identity_after(before.generation, PATIENCE).await }
    });
    until(&mut members, |members| members.iter().all(|member| member.generation > before.generation)).await;
    let after = waiting.await.unwrap().unwrap();
    assert_eq!((&after.member_id, members[0].revoked), (&before.member_id, 0));
    assert!(after.generation > before.generation);
}
