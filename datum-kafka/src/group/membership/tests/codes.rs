//! Each answer of the coordinator and the reaction to it, one machine at a time.

use super::*;
use crate::group::{LostReason, membership::Phase};

const SECOND: Duration = Duration::from_secs(1);

fn cooperative() -> Alone {
    Alone::new(Arc::new(CooperativeSticky))
}

fn eager() -> Alone {
    Alone::new(Arc::new(Range))
}

#[test]
fn joins_with_the_member_id_it_is_given_at_once() {
    let mut me = cooperative();
    me.answer(finds, Response::Coordinator(1));
    let given = Trouble::Code { code: ErrorCode::MemberIdRequired, member_id: Some("me".into()) };
    me.answer(joins, Response::Trouble(given));
    assert_eq!(joined_as(&me.sent[0].1).0, "me");
    me.settle(1, &[0]);
    assert_eq!(me.machine.phase(), Phase::Stable);
    assert_eq!(me.machine.commit_as(), Some((1, "me")));
}

#[test]
fn heartbeats_run_through_sync_and_drain() {
    let mut me = cooperative();
    me.follow(1);
    me.pass(4 * SECOND);
    me.answer(beats, Response::Alive);
    me.answer(syncs, assignment(&[0, 1]));
    me.refuse_rebalance_then_join(2, &[0]);
    assert_eq!(me.machine.phase(), Phase::Draining);
    me.sent.clear();
    me.pass(4 * SECOND);
    assert!(me.sent.iter().any(|(_, request)| matches!(request, Request::Heartbeat { generation: 2, .. })));
    assert_eq!(
        me.machine.phase(),
        Phase::Draining,
        "the drain's end is the owner's to say, until its deadline"
    );
}

impl Alone {
    /// A heartbeat says the group rebalances; the member joins `generation` and gets `partitions`.
    fn refuse_rebalance_then_join(&mut self, generation: i32, partitions: &[i32]) {
        if !self.sent.iter().any(|(_, request)| beats(request)) {
            self.pass(4 * SECOND);
        }
        self.refuse(beats, ErrorCode::RebalanceInProgress);
        self.settle(generation, partitions);
    }
}

#[test]
fn an_eager_member_gives_everything_up_before_it_joins() {
    let mut me = eager();
    me.settle(1, &[0, 1]);
    me.told();
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    let revoke = me.revoke();
    assert_eq!(revoke.partitions, set(&[0, 1]));
    assert_eq!(me.machine.commit_as(), Some((1, "me")), "the old generation still commits while it drains");
    assert!(!me.sent.iter().any(|(_, request)| joins(request)));
    me.machine.drained(me.now, revoke.drain);
    me.take();
    assert!(me.told().contains(&Event::Revoked { partitions: set(&[0, 1]) }));
    assert_eq!(joined_as(&me.sent[0].1), ("me", &set(&[]), 1));
    assert_eq!(me.machine.commit_as(), None, "not while JoinGroup is outstanding");
}

#[test]
fn a_drain_that_is_never_finished_ends_at_its_deadline() {
    let mut me = eager();
    me.settle(1, &[0]);
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    let revoke = me.revoke();
    assert_eq!(revoke.deadline, me.now + Duration::from_secs(30));
    while me.now < revoke.deadline {
        me.pass(3 * SECOND);
        if me.sent.iter().any(|(_, request)| beats(request)) {
            me.refuse(beats, ErrorCode::RebalanceInProgress);
        }
    }
    assert_eq!(me.machine.phase(), Phase::Joining);
    assert!(me.told().contains(&Event::Revoked { partitions: set(&[0]) }));
}

#[test]
fn a_cooperative_member_keeps_what_it_has_and_gives_up_only_what_was_taken() {
    let mut me = cooperative();
    me.settle(1, &[0, 1, 2]);
    me.told();
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    assert_eq!(joined_as(&me.sent[0].1), ("me", &set(&[0, 1, 2]), 1));
    assert!(me.told().is_empty(), "nothing is given up before the answer");
    me.settle(2, &[0, 1]);
    let revoke = me.revoke();
    assert_eq!(revoke.partitions, set(&[2]));
    assert_eq!(
        me.machine.commit_as(),
        Some((2, "me")),
        "the revoked partition commits under the new generation"
    );
    me.machine.drained(me.now, revoke.drain);
    me.take();
    assert_eq!(joined_as(&me.sent[0].1), ("me", &set(&[0, 1]), 2), "and joins once more");
}

#[test]
fn a_loss_during_a_drain_turns_it_into_a_loss() {
    let mut me = eager();
    me.settle(1, &[0]);
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    let revoke = me.revoke();
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::UnknownMemberId);
    assert_eq!(me.told(), [Event::Lost { partitions: set(&[0]), reason: LostReason::UnknownMember }]);
    me.machine.drained(me.now, revoke.drain);
    me.take();
    assert!(me.told().is_empty(), "the drain is over");
    assert_eq!(joined_as(&me.sent[0].1), ("", &set(&[]), -1));
}

#[test]
fn illegal_generation_loses_and_keeps_the_member_id() {
    let mut me = cooperative();
    me.settle(1, &[0]);
    me.told();
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::IllegalGeneration);
    assert_eq!(me.told(), [Event::Lost { partitions: set(&[0]), reason: LostReason::IllegalGeneration }]);
    assert_eq!(joined_as(&me.sent[0].1), ("me", &set(&[]), -1));
}

#[test]
fn a_coordinator_that_moved_is_looked_up_and_everything_is_kept() {
    for code in [ErrorCode::NotCoordinator, ErrorCode::CoordinatorNotAvailable] {
        let mut me = cooperative();
        me.settle(1, &[0]);
        me.told();
        me.pass(3 * SECOND);
        me.refuse(beats, code);
        me.answer(finds, Response::Coordinator(2));
        assert!(me.told().is_empty());
        assert_eq!(me.machine.node(), Some(2));
        me.answer(beats, Response::Alive);
        assert_eq!(me.machine.commit_as(), Some((1, "me")));
    }
}

#[test]
fn a_broker_that_names_itself_and_then_denies_it_is_not_asked_in_a_tight_loop() {
    let mut me = cooperative();
    let begin = me.now;
    for _ in 0..20 {
        while !me.sent.iter().any(|(_, request)| finds(request)) {
            let at = me.machine.deadline().expect("a pause");
            me.pass(at.saturating_duration_since(me.now));
        }
        me.answer(finds, Response::Coordinator(1));
        if !me.sent.iter().any(|(_, request)| joins(request)) {
            let at = me.machine.deadline().expect("a pause");
            me.pass(at.saturating_duration_since(me.now));
        }
        me.refuse(joins, ErrorCode::NotCoordinator);
    }
    assert!(me.now - begin > 10 * SECOND, "20 rounds took {:?}", me.now - begin);
}

#[test]
fn answers_of_a_rebalance_keep_the_session_alive_and_silence_ends_it() {
    let mut me = eager();
    me.settle(1, &[0]);
    me.told();
    for _ in 0..3 {
        me.pass(3 * SECOND);
        me.refuse(beats, ErrorCode::CoordinatorLoadInProgress);
    }
    me.pass(SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    me.told();
    me.sent.clear();
    let mut quiet = cooperative();
    quiet.settle(1, &[0]);
    quiet.told();
    quiet.pass(44 * SECOND);
    assert!(!lost(&quiet.told()));
    quiet.pass(2 * SECOND);
    assert_eq!(quiet.told(), [Event::Lost { partitions: set(&[0]), reason: LostReason::SessionExpired }]);
}

/// Kafka 7: the user is busy for longer than the session while the group rebalances.
#[test]
fn a_busy_user_loses_nothing_while_heartbeats_are_answered() {
    let mut me = cooperative();
    me.settle(1, &[0, 1]);
    me.told();
    me.refuse_rebalance_then_join(2, &[0]);
    let mut answered = 0;
    for _ in 0..20 {
        me.pass(3 * SECOND);
        if me.sent.iter().any(|(_, request)| beats(request)) {
            me.refuse(beats, ErrorCode::RebalanceInProgress);
            answered += 1;
        }
        let told = me.told();
        assert!(!lost(&told), "{told:?}");
    }
    assert!(answered >= 5, "heartbeats go on: {answered} in a minute, the session being 45 s");
}

#[test]
fn the_session_clock_stands_still_while_the_coordinator_waits_with_us() {
    let mut me = cooperative();
    me.settle(1, &[0]);
    me.told();
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    me.pass(Duration::from_secs(59));
    assert!(!lost(&me.told()));
    me.settle(2, &[0]);
    assert!(!lost(&me.told()));
    assert_eq!(me.machine.generation(), 2);
}

#[test]
fn what_nothing_can_mend_ends_the_membership_with_a_typed_error() {
    type Check = fn(&GroupError) -> bool;
    let cases: [(ErrorCode, Check); 6] = [
        (ErrorCode::InconsistentGroupProtocol, |e| matches!(e, GroupError::NoCommonAssignor { .. })),
        (ErrorCode::InvalidSessionTimeout, |e| matches!(e, GroupError::SessionTimeout { .. })),
        (ErrorCode::GroupMaxSizeReached, |e| matches!(e, GroupError::Full { .. })),
        (ErrorCode::InvalidGroupId, |e| matches!(e, GroupError::InvalidGroup { .. })),
        (ErrorCode::GroupAuthorizationFailed, |e| matches!(e, GroupError::Unauthorized { .. })),
        (ErrorCode::UnsupportedVersion, |e| matches!(e, GroupError::Unexpected { .. })),
    ];
    for (code, check) in cases {
        let mut me = cooperative();
        me.answer(finds, Response::Coordinator(1));
        me.refuse(joins, code);
        assert!(failure(&me.told()).is_some_and(check), "{code:?}");
        assert_eq!(me.machine.phase(), Phase::Failed);
        me.pass(100 * SECOND);
        assert!(me.sent.is_empty(), "nothing is retried after {code:?}");
    }
}

#[test]
fn a_fenced_instance_never_rejoins_and_commits_nothing() {
    let mut me = Alone::with(|config| config.instance_id = Some("i".into()));
    me.settle(1, &[0]);
    me.told();
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::FencedInstanceId);
    let told = me.told();
    assert!(lost(&told) && matches!(failure(&told), Some(GroupError::Fenced { .. })));
    assert_eq!(me.machine.commit_as(), None);
    me.pass(100 * SECOND);
    assert!(me.sent.is_empty());
}

#[test]
fn a_static_member_that_is_forgotten_rejoins_with_an_empty_id_and_does_not_say_goodbye() {
    let mut me = Alone::with(|config| config.instance_id = Some("i".into()));
    me.settle(1, &[]);
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::UnknownMemberId);
    assert_eq!(joined_as(&me.sent[0].1).0, "");
    me.settle(2, &[]);
    me.machine.leave(me.now, me.now + SECOND);
    me.take();
    assert!(me.told().contains(&Event::Left) && !me.sent.iter().any(|(_, request)| leaves(request)));
}

#[test]
fn a_commit_refused_in_the_middle_of_sync_group_starts_afresh_with_an_empty_id() {
    let mut me = cooperative();
    me.settle(1, &[0]);
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    me.follow(2);
    assert_eq!(me.machine.phase(), Phase::Syncing);
    me.machine.commit_refused(me.now, ErrorCode::UnknownMemberId, 1, "me");
    me.take();
    assert_eq!(me.machine.phase(), Phase::Syncing, "a commit of an older generation says nothing");
    me.machine.commit_refused(me.now, ErrorCode::UnknownMemberId, 2, "me");
    me.take();
    assert_eq!(me.machine.phase(), Phase::Joining);
    let at = me.sent.iter().position(|(_, request)| syncs(request)).expect("the sync under way");
    let (call, sync) = me.sent.remove(at);
    me.machine.answered(me.now, call, assignment(&[0]));
    me.take();
    assert_eq!(
        (me.machine.phase(), me.machine.generation()),
        (Phase::Joining, -1),
        "{sync:?} is not waited for any more"
    );
    me.settle(3, &[0]);
    assert_eq!(me.machine.commit_as(), Some((3, "me")));
}

#[test]
fn leaving_drains_commits_and_says_goodbye() {
    let mut me = cooperative();
    me.settle(1, &[0]);
    me.told();
    me.machine.leave(me.now, me.now + 5 * SECOND);
    me.take();
    let revoke = me.revoke();
    assert_eq!(revoke.deadline, me.now + 5 * SECOND);
    me.machine.drained(me.now, revoke.drain);
    me.take();
    me.answer(leaves, Response::Left);
    assert_eq!(me.told(), [Event::Revoked { partitions: set(&[0]) }, Event::Left]);
}

#[test]
fn leaving_while_joining_waits_until_it_can_commit_but_not_for_ever() {
    let mut me = cooperative();
    me.settle(1, &[0]);
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    me.told();
    me.machine.leave(me.now, me.now + 5 * SECOND);
    me.take();
    assert_eq!(me.machine.phase(), Phase::Joining);
    me.pass(6 * SECOND);
    assert!(lost(&me.told()));
    assert!(me.sent.iter().any(|(_, request)| leaves(request)));
}

#[test]
fn the_leader_decides_and_rejoins_when_partitions_are_added() {
    let mut me = Alone::new(Arc::new(Range));
    me.answer(finds, Response::Coordinator(1));
    let members = vec![GroupMember::new("me", ["t"]), GroupMember::new("you", ["t"])];
    me.answer(joins, leader_answer(members, "range", 1));
    let Some((_, Request::Sync { assignments, .. })) = me.sent.last() else { panic!("{:?}", me.sent) };
    assert_eq!(assignments["me"].partitions, set(&[0, 1]));
    assert_eq!(assignments["you"].partitions, set(&[2, 3]));
    me.answer(syncs, assignment(&[0, 1]));
    me.told();
    me.machine.metadata(me.now, [("t".into(), 4)].into());
    me.take();
    assert!(me.told().is_empty(), "nothing has changed");
    me.machine.metadata(me.now, [("t".into(), 6)].into());
    me.take();
    assert_eq!(me.revoke().partitions, set(&[0, 1]));
}

#[test]
fn the_leader_asks_for_topics_it_does_not_read_and_goes_on_without_an_answer() {
    let mut me = Alone::new(Arc::new(Range));
    me.answer(finds, Response::Coordinator(1));
    let members = vec![GroupMember::new("me", ["t"]), GroupMember::new("you", ["u"])];
    me.answer(joins, leader_answer(members, "range", 1));
    let wanted = ["t".into(), "u".into()].into();
    assert_eq!(me.told(), [Event::NeedMetadata { topics: wanted }]);
    me.pass(11 * SECOND);
    let Some((_, Request::Sync { assignments, .. })) = me.sent.iter().find(|(_, request)| syncs(request))
    else {
        panic!("{:?}", me.sent)
    };
    assert_eq!(assignments["me"].partitions.len(), 4);
}

#[test]
fn confirmation_needs_a_heartbeat_sent_after_it_was_asked_for() {
    let mut me = cooperative();
    me.settle(1, &[0]);
    me.told();
    me.pass(3 * SECOND);
    me.machine.confirm(me.now);
    me.take();
    me.answer(beats, Response::Alive);
    assert!(me.told().is_empty(), "that heartbeat had been sent before");
    me.answer(beats, Response::Alive);
    assert_eq!(me.told(), [Event::Confirmed { generation: 1 }]);
    me.machine.confirm(me.now);
    me.take();
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    me.settle(2, &[0]);
    me.answer(beats, Response::Alive);
    assert_eq!(
        me.told().last(),
        Some(&Event::Confirmed { generation: 2 }),
        "still owner, in the next generation"
    );
}

#[test]
fn an_assignor_of_ones_own_may_refuse_and_sees_what_the_leader_added() {
    #[derive(Debug)]
    struct Strict;
    impl Assignor for Strict {
        fn name(&self) -> &'static str {
            "strict"
        }
        fn rebalance(&self) -> crate::group::Rebalance {
            crate::group::Rebalance::Cooperative
        }
        fn assign(
            &self,
            _: &crate::group::GroupView,
        ) -> Result<crate::group::Assignments, crate::group::Refusal> {
            Err(crate::group::Refusal::new("a foreign member").naming(["x".to_owned()]))
        }
        fn accept(&self, received: &crate::group::Received<'_>) -> Result<(), crate::group::Refusal> {
            match &received.user_data[..] {
                b"owner" | b"standby" => Ok(()),
                _ => Err(crate::group::Refusal::new("the assignment carries no role")),
            }
        }
    }
    let mut me = Alone::new(Arc::new(Strict));
    me.follow(1);
    let owner =
        MemberAssignment { partitions: set(&[0, 1, 2, 3]), user_data: bytes::Bytes::from_static(b"owner") };
    me.answer(syncs, Response::Synced(SyncAnswer { assignment: owner.clone() }));
    let told = me.told();
    let Some(Event::Assigned(Assigned { user_data, added, .. })) = told.first() else { panic!("{told:?}") };
    assert_eq!((&user_data[..], added.len()), (&b"owner"[..], 4));
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    me.follow(2);
    me.answer(syncs, Response::Synced(SyncAnswer { assignment: owner }));
    let told = me.told();
    let Some(Event::Assigned(Assigned { added, generation: 2, .. })) = told.first() else {
        panic!("{told:?}")
    };
    assert!(added.is_empty(), "still owner: nothing was given up, nothing is new");
    me.pass(3 * SECOND);
    me.refuse(beats, ErrorCode::RebalanceInProgress);
    me.follow(3);
    me.answer(syncs, assignment(&[0, 1]));
    assert!(
        matches!(failure(&me.told()), Some(GroupError::Refused { .. })),
        "a split without roles is refused"
    );
    assert_eq!(me.machine.commit_as(), None, "before anything more is published");
}
