//! Restarts, lateness, transactions and refusals in situations that once went wrong somewhere in public, and each rule of
//! the start on its own.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "test code")]

#[path = "simulation/ids.rs"]
mod ids;

use datum_job::machine::{End, MachineError, Observation};
use datum_job::protocol::{
    Answer, Delivery, Driver, DriverSettings, Ended, Ending, Lost, Next, Request, Ticket,
};
use datum_job::restore::{Committed, PartitionFacts, Refusal, Start, StartFacts, decide};
use datum_job::stored::{JobHash, Stored, TopicId};
use datum_job::{Content, Cut, Fate, JobSettings, Machine, Mode, Reason, SettingsError};
use datum_window::{RecordPosition, Tumbling, Watermark};
use ids::Ids;

const TOPIC: TopicId = TopicId([7; 16]);
const NOW: i64 = 1_000_000;

type Made = Machine<Ids>;
type Taken = Cut<Vec<(u8, std::collections::BTreeSet<ids::Id>)>, ()>;

fn settings(size: i64, grace: i64) -> JobSettings {
    let windows = Tumbling::of_millis(size).grace_millis(grace).checked().unwrap();
    JobSettings::new(windows, JobHash(1))
}

fn fresh(settings: &JobSettings, partitions: u32) -> Made {
    let start = Start::Fresh((0..partitions).map(|p| (p, 0)).collect());
    let mut machine = Machine::start(settings.clone(), TOPIC, partitions, &start, Ids::default(), NOW);
    assert_eq!(machine.due(NOW), Some(Reason::Start));
    assert!(!machine.wants_input(), "nothing is read before the start is committed");
    assert_eq!(machine.cut(Reason::Start, NOW).offsets.len(), partitions as usize);
    machine
}

/// A machine restarted from what `cut`s have committed.
fn again(settings: &JobSettings, count: u32, cuts: &[&Taken]) -> Made {
    let mut stored = std::collections::BTreeMap::new();
    for cut in cuts {
        stored.extend(cut.offsets.iter().cloned());
    }
    let start = Start::Resumed { stored: stored.into_iter().collect(), new: vec![] };
    Machine::start(settings.clone(), TOPIC, count, &start, Ids::default(), NOW)
}

fn add(machine: &mut Made, partition: u32, offset: i64, timestamp: i64) -> Fate {
    let at = RecordPosition::new(partition, offset, timestamp);
    machine.apply(at, Content::Record(0), NOW, || ()).unwrap()
}

fn panes(cut: &Taken) -> Vec<(i64, usize)> {
    cut.closed.iter().map(|c| (c.window.start, c.panes.iter().map(|p| p.1.len()).sum())).collect()
}

/// A partition behind the others loses nothing to a restart: its watermark is its own.
#[test]
fn a_restart_makes_no_row_of_a_slow_partition_late() {
    let s = settings(10_000, 0);
    let mut m = fresh(&s, 2);
    assert_eq!(add(&mut m, 0, 0, 15_000), Fate::Accepted);
    assert_eq!(add(&mut m, 1, 0, 12_000), Fate::Accepted);
    m.close(NOW);
    let cut = m.cut(Reason::Interval, NOW);
    let mut m = again(&s, 2, &[&cut]);
    assert_eq!(
        (m.position(0), m.position(1)),
        (Some(0), Some(0)),
        "the open window needs both records again"
    );
    for (p, o, ts) in [(0, 0, 15_000), (1, 0, 12_000), (0, 1, 25_000), (0, 2, 50_000)] {
        assert_eq!(add(&mut m, p, o, ts), Fate::Accepted);
    }
    m.close(NOW);
    assert_eq!(m.due(NOW), None, "the slow partition holds the window open");
    assert_eq!(add(&mut m, 1, 1, 14_000), Fate::Accepted);
    assert_eq!(add(&mut m, 1, 2, 22_000), Fate::Accepted);
    m.close(NOW);
    assert_eq!(add(&mut m, 1, 3, 46_000), Fate::Accepted);
    m.close(NOW);
    let cut = m.cut(Reason::Close, NOW);
    assert_eq!(panes(&cut), [(10_000, 3), (20_000, 2)]);
    assert_eq!((m.counters().late, m.open_windows()), (0, 2));
}

/// A window open at a crash is published after it without another record of its key.
#[test]
fn an_open_window_survives_a_crash() {
    let s = settings(10_000, 0);
    let mut m = fresh(&s, 1);
    for (o, ts) in [(0, 0), (1, 4_000), (2, 8_000)] {
        add(&mut m, 0, o, ts);
    }
    let cut = m.cut(Reason::Interval, NOW);
    assert_eq!(cut.offsets[0].1.low, 0);
    let mut m = again(&s, 1, &[&cut]);
    for (o, ts) in [(0, 0), (1, 4_000), (2, 8_000)] {
        add(&mut m, 0, o, ts);
    }
    assert_eq!(m.counters().replayed, 3);
    let b = RecordPosition::new(0, 3, 12_000);
    m.apply(b, Content::Record(1), NOW, || ()).unwrap();
    m.close(NOW);
    assert_eq!(panes(&m.cut(Reason::Close, NOW)), [(0, 3)]);
}

/// A crash before anything of a run was committed publishes what a run without it does, whatever the pace of the clock.
#[test]
fn the_clock_splits_no_window() {
    let s = settings(60_000, 60_000);
    for pace in [0, 1, 10_000] {
        let mut m = fresh(&s, 1);
        for o in 0..500 {
            let now = NOW + o * pace / 500;
            m.apply(RecordPosition::new(0, o, o * 100), Content::Record(0), now, || ()).unwrap();
            m.close(now);
        }
        add(&mut m, 0, 500, 240_000);
        m.close(NOW);
        assert_eq!(panes(&m.cut(Reason::Close, NOW)), [(0, 500)], "pace {pace}");
    }
}

/// A record far behind opens nothing, in the first run as in a replay, and is routed once.
#[test]
fn a_very_late_record_opens_nothing_and_is_routed_once() {
    let s = settings(10_000, 0);
    let mut m = fresh(&s, 1);
    add(&mut m, 0, 0, 100_000);
    assert_eq!(add(&mut m, 0, 1, 1_000), Fate::Late);
    let cut = m.cut(Reason::Interval, NOW);
    assert_eq!((cut.sides.len(), m.open_windows()), (1, 1));
    let mut m = again(&s, 1, &[&cut]);
    add(&mut m, 0, 0, 100_000);
    assert_eq!(add(&mut m, 0, 1, 1_000), Fate::Late);
    assert_eq!((m.cut(Reason::Interval, NOW).sides.len(), m.counters().late), (0, 0));
}

/// An empty partition that gets its first records later holds windows open from the start.
#[test]
fn an_empty_partition_is_waited_for() {
    let s = settings(100, 0);
    let mut m = fresh(&s, 2);
    let empty = Observation { log_start: 0, high_watermark: 0, last_stable: 0 };
    m.observe(1, empty, NOW).unwrap();
    (0..100).for_each(|o| assert_eq!(add(&mut m, 0, o, o * 10), Fate::Accepted));
    m.close(NOW);
    assert_eq!(m.due(NOW), None);
    (0..100).for_each(|o| assert_eq!(add(&mut m, 1, o, o * 10), Fate::Accepted));
    m.close(NOW);
    assert_eq!(m.cut(Reason::Close, NOW).closed.len(), 9);
}

/// Idleness takes proof: the high watermark for the whole timeout, by a fresh answer.
#[test]
fn silence_is_proved_by_the_high_watermark() {
    let s = settings(100, 0);
    let seen = |high_watermark, last_stable| Observation { log_start: 0, high_watermark, last_stable };
    let closed_with = |answers: &[(i64, Observation)], now: i64| {
        let mut m = fresh(&s, 2);
        for (at, seen) in answers {
            m.observe(1, *seen, NOW + at).unwrap();
        }
        add(&mut m, 0, 0, 50);
        add(&mut m, 0, 1, 150);
        m.close(NOW + now);
        m.due(NOW + now).is_some()
    };
    let quiet = seen(0, 0);
    assert!(closed_with(&[(0, quiet), (5_000, quiet)], 5_500));
    assert!(!closed_with(&[(0, quiet), (4_999, quiet)], 5_500), "not yet");
    assert!(!closed_with(&[(0, quiet), (5_000, quiet)], 6_001), "a pause is not quiet");
    assert!(!closed_with(&[(0, quiet)], 5_500), "one answer proves an instant");
    let open_transaction = seen(3, 0);
    assert!(!closed_with(&[(0, open_transaction), (5_000, open_transaction)], 5_500));
    assert!(!closed_with(&[(0, quiet), (2_000, seen(1, 0)), (5_000, quiet)], 5_500), "it starts again");
}

/// Event time too far ahead goes aside, moves nothing, and is decided once.
#[test]
fn a_clock_far_ahead_closes_no_window() {
    let s = settings(10_000, 0);
    let mut m = fresh(&s, 1);
    add(&mut m, 0, 0, NOW);
    assert_eq!(add(&mut m, 0, 1, NOW + 2 * s.max_ahead), Fate::Ahead);
    assert_eq!(add(&mut m, 0, 2, NOW + s.max_ahead), Fate::Accepted, "within max_ahead of the clock");
    m.close(NOW);
    let cut = m.cut(Reason::Close, NOW);
    assert_eq!((cut.closed.len(), cut.sides.len()), (1, 1));
    // Years later the replay decides as the first reading did.
    let later = NOW + 100 * s.max_ahead;
    let start = Start::Resumed { stored: cut.offsets.clone(), new: vec![] };
    let mut m = Machine::start(s.clone(), TOPIC, 1, &start, Ids::default(), later);
    let at = RecordPosition::new(0, 2, NOW + s.max_ahead);
    assert_eq!(m.apply(at, Content::Record(0), later, || ()), Ok(Fate::Accepted));
}

#[test]
fn windows_longer_than_the_horizon_are_refused() {
    let s = settings(24 * 3_600_000, 0);
    assert!(matches!(s.check(), Err(SettingsError::WindowBeyondHorizon { .. })));
    assert_eq!(JobSettings { max_ahead: 6 * 3_600_000, ..s }.check(), Ok(()));
}

/// A run that stops at the end waits for somebody's open transaction below it, and says so when it waits no longer.
#[test]
fn an_open_transaction_below_the_end_is_waited_for_up_to_a_limit() {
    let s = settings(100, 0);
    let mut m = fresh(&s, 2);
    let end = |partition, high_watermark| End { partition, log_start: 0, high_watermark };
    m.stop_at_end(&[end(0, 2), end(1, 0)]);
    add(&mut m, 0, 0, 50);
    let blocked = Observation { log_start: 0, high_watermark: 5, last_stable: 1 };
    m.observe(0, blocked, NOW).unwrap();
    assert!(m.blocked(NOW).is_empty() && !m.at_end());
    assert_eq!(m.blocked(NOW + s.end_wait), [0]);
    assert_eq!(add(&mut m, 0, 1, 250), Fate::Accepted);
    assert_eq!(add(&mut m, 0, 2, 350), Fate::PastEnd);
    assert!(m.at_end());
    m.close(NOW);
    assert_eq!(panes(&m.cut(Reason::Close, NOW)), [(0, 1)], "an empty partition holds nothing open");
}

/// A flush publishes what has ended by the clock and leaves the rest open.
#[test]
fn a_flush_leaves_windows_that_end_after_the_clock() {
    let s = settings(100, 50);
    let mut m = fresh(&s, 1);
    add(&mut m, 0, 0, NOW - 70);
    add(&mut m, 0, 1, NOW + 20);
    m.flush(NOW + 40);
    let cut = m.cut(Reason::Stop, NOW + 40);
    assert_eq!(panes(&cut), [(NOW - 100, 1)]);
    assert!(cut.closed[0].flushed && cut.published == Watermark::at(NOW + 50));
    assert_eq!((m.open_windows(), cut.offsets[0].1.low), (1, 1));
    assert_eq!(add(&mut m, 0, 2, NOW - 1), Fate::Late, "what was published stays closed");
}

// The start.

fn part(partition: u32, committed: Option<(i64, &str)>) -> PartitionFacts {
    let committed = committed.map(|(offset, text)| Committed { offset, metadata: text.to_owned() });
    PartitionFacts { partition, committed, log_start: 5, high_watermark: 100 }
}

fn facts(partitions: Vec<PartitionFacts>) -> StartFacts {
    let partition_count = u32::try_from(partitions.len()).unwrap();
    StartFacts {
        topic: TOPIC,
        partition_count,
        partitions,
        known_count: None,
        compacted: false,
        output_exists: false,
        reset: false,
    }
}

fn state(low: i64, position: i64, count: u32) -> Stored {
    Stored {
        low,
        position,
        watermark: Watermark::at(9),
        published: Watermark::at(8),
        steps: vec![],
        partitions: count,
        mode: Mode::Exclusive,
        topic: TOPIC,
        hash: JobHash(1),
    }
}

fn decided(facts: &StartFacts) -> Result<Start, Refusal> {
    decide(Mode::Exclusive, JobHash(1), facts)
}

#[test]
fn the_first_start_is_from_the_logs_start() {
    let first = facts(vec![part(0, None), part(1, None)]);
    assert_eq!(decided(&first), Ok(Start::Fresh(vec![(0, 5), (1, 5)])));
    let ran = StartFacts { output_exists: true, ..first.clone() };
    assert_eq!(decided(&ran), Err(Refusal::OutputWithoutOffsets));
    assert!(matches!(decided(&StartFacts { reset: true, ..ran }), Ok(Start::Fresh(_))));
    assert_eq!(decided(&StartFacts { compacted: true, ..first }), Err(Refusal::Compacted));
}

#[test]
fn offsets_without_state_need_a_reset() {
    let text = state(10, 20, 2).to_text();
    for bare in [
        vec![part(0, Some((10, &text))), part(1, Some((7, "")))],
        vec![part(0, Some((10, "auto"))), part(1, Some((7, "")))],
    ] {
        let given = facts(bare);
        assert!(matches!(decided(&given), Err(Refusal::OffsetsWithoutState { .. })));
        let reset = StartFacts { reset: true, ..given };
        assert_eq!(decided(&reset), Ok(Start::Fresh(vec![(0, 10), (1, 7)])));
    }
}

#[test]
fn only_a_higher_partition_is_a_new_one() {
    let one = state(10, 20, 1);
    let grown = facts(vec![part(0, Some((10, &one.to_text()))), part(1, None)]);
    assert_eq!(decided(&grown), Ok(Start::Resumed { stored: vec![(0, one)], new: vec![(1, 5)] }));
    let two = state(10, 20, 2).to_text();
    let missing = facts(vec![part(0, Some((10, &two))), part(1, None)]);
    assert_eq!(decided(&missing), Err(Refusal::OffsetsMissing { partitions: vec![1], count: 2 }));
}

#[test]
fn each_refusal_names_its_reason() {
    let with = |change: &dyn Fn(&mut Stored)| {
        let mut stored = state(10, 20, 1);
        change(&mut stored);
        decided(&facts(vec![part(0, Some((stored.low, &stored.to_text())))]))
    };
    assert!(with(&|_| {}).is_ok());
    assert!(matches!(with(&|s| s.topic = TopicId([1; 16])), Err(Refusal::OtherTopic { .. })));
    assert!(matches!(with(&|s| s.mode = Mode::CoPartitioned), Err(Refusal::OtherMode { .. })));
    assert!(matches!(with(&|s| s.hash = JobHash(2)), Err(Refusal::OtherJob { .. })));
    assert!(with(&|s| (s.hash, s.low) = (JobHash(2), 20)).is_ok(), "no window is open");
    assert!(matches!(with(&|s| s.partitions = 2), Err(Refusal::PartitionCount { stored: 2, found: 1, .. })));
    assert!(matches!(with(&|s| s.low = 4), Err(Refusal::Retention { needed: 4, log_start: 5, .. })));
    assert!(matches!(with(&|s| s.position = 101), Err(Refusal::Truncated { position: 101, end: 100, .. })));
    let newer = facts(vec![part(0, Some((10, "datum9;x")))]);
    assert!(matches!(decided(&newer), Err(Refusal::Unreadable { partition: 0, .. })));
    let mut grown = facts(vec![part(0, None)]);
    let stored = Stored { mode: Mode::CoPartitioned, ..state(10, 20, 1) };
    grown.partitions = vec![part(0, Some((10, &stored.to_text())))];
    grown.partition_count = 2;
    assert!(matches!(
        decide(Mode::CoPartitioned, JobHash(1), &grown),
        Err(Refusal::PartitionCount { stored: 1, found: 2, mode: Mode::CoPartitioned })
    ));
}

// The owner's protocol.

type Owner = Driver<Ids, fn() -> Ids>;

fn owner(change: impl FnOnce(&mut DriverSettings)) -> Owner {
    let mut settings = DriverSettings::new(settings(100, 0));
    change(&mut settings);
    Driver::new(settings, Ids::default as fn() -> Ids)
}

fn sent(driver: &mut Owner) -> (Ticket, Request) {
    match driver.poll(NOW) {
        Next::Send(ticket, request) => (ticket, request),
        other => panic!("instead of a request: {other:?}"),
    }
}

/// Expects `request` and answers it.
fn answered(driver: &mut Owner, request: Request, answer: Answer) {
    let (ticket, got) = sent(driver);
    assert_eq!(got, request);
    driver.answer(ticket, answer, NOW);
}

fn started(driver: &mut Owner) {
    driver.assigned(1);
    answered(driver, Request::InitProducer, Answer::Done);
    let first = facts(vec![PartitionFacts { log_start: 0, ..part(0, None) }]);
    answered(driver, Request::Facts, Answer::Facts(Box::new(first)));
    assert!(!driver.wants_input());
    answered(driver, Request::CommitOffsets { generation: 1 }, Answer::Done);
    answered(driver, Request::EndTransaction, Answer::Done);
    assert!(driver.wants_input());
}

fn with_output(driver: &mut Owner) {
    let machine = driver.machine_mut().unwrap();
    add(machine, 0, 0, 50);
    add(machine, 0, 1, 150);
    machine.close(NOW);
}

/// A transaction that the broker has ended by its timeout is not passed over: the state goes, the job joins again.
#[test]
fn a_transaction_ended_by_its_timeout_drops_the_state() {
    for (at, lost) in [(Request::Produce, Lost::Fenced), (Request::EndTransaction, Lost::NotCommitted)] {
        let mut driver = owner(|_| {});
        started(&mut driver);
        with_output(&mut driver);
        if at == Request::EndTransaction {
            answered(&mut driver, Request::Produce, Answer::Done);
            answered(&mut driver, Request::CommitOffsets { generation: 1 }, Answer::Done);
        }
        answered(&mut driver, at, Answer::Refused(lost));
        assert_eq!(driver.poll(NOW), Next::Rejoin(lost));
        assert!(driver.machine().is_none() && driver.cut().is_none());
        driver.assigned(2);
        assert_eq!(sent(&mut driver).1, Request::InitProducer, "only a new assignment makes a new producer");
    }
}

#[test]
fn an_owner_that_stays_owner_commits_with_the_new_generation() {
    let mut driver = owner(|_| {});
    started(&mut driver);
    with_output(&mut driver);
    answered(&mut driver, Request::Produce, Answer::Done);
    answered(&mut driver, Request::CommitOffsets { generation: 1 }, Answer::StaleGeneration);
    assert_eq!(driver.poll(NOW), Next::Wait(None), "only the group can tell who owns now");
    driver.assigned(2);
    assert_eq!(driver.cut().map(|c| c.closed.len()), Some(1), "state and transaction are kept");
    answered(&mut driver, Request::CommitOffsets { generation: 2 }, Answer::Done);
    answered(&mut driver, Request::EndTransaction, Answer::Done);
    driver.assigned(4);
    assert_eq!(
        sent(&mut driver).1,
        Request::InitProducer,
        "a generation was missed: somebody may have owned it"
    );
}

#[test]
fn an_end_of_unknown_outcome_is_asked_for_again_then_given_up() {
    let mut driver = owner(|s| s.end_retry = 100);
    started(&mut driver);
    with_output(&mut driver);
    answered(&mut driver, Request::Produce, Answer::Done);
    answered(&mut driver, Request::CommitOffsets { generation: 1 }, Answer::Done);
    let (ticket, _) = sent(&mut driver);
    driver.answer(ticket, Answer::Unknown, NOW);
    assert_eq!(driver.poll(NOW), Next::Wait(Some(NOW + 5)));
    let Next::Send(ticket, Request::EndTransaction) = driver.poll(NOW + 5) else { panic!("not asked again") };
    driver.answer(ticket, Answer::Unknown, NOW + 101);
    assert_eq!(driver.poll(NOW + 101), Next::Rejoin(Lost::Unknown(Request::EndTransaction)));
}

#[test]
fn a_refusal_is_confirmed_by_a_heartbeat() {
    for (answer, end) in [
        (Answer::Done, Next::Ended(Ended::Refused(Refusal::Compacted))),
        (Answer::StaleGeneration, Next::Rejoin(Lost::AssignmentChanged)),
    ] {
        let mut driver = owner(|_| {});
        driver.assigned(1);
        answered(&mut driver, Request::InitProducer, Answer::Done);
        let compacted = StartFacts { compacted: true, ..facts(vec![part(0, None)]) };
        answered(&mut driver, Request::Facts, Answer::Facts(Box::new(compacted)));
        answered(&mut driver, Request::Confirm { generation: 1 }, answer);
        assert_eq!(driver.poll(NOW), end);
    }
}

#[test]
fn answers_to_void_requests_are_ignored() {
    let mut driver = owner(|_| {});
    driver.assigned(1);
    let (old, _) = sent(&mut driver);
    driver.revoked();
    assert_eq!(driver.poll(NOW), Next::Wait(None));
    driver.assigned(5);
    driver.answer(old, Answer::Done, NOW);
    assert_eq!(sent(&mut driver).1, Request::InitProducer);
}

#[test]
fn at_least_once_makes_no_producer_and_ends_no_transaction() {
    let mut driver = owner(|s| {
        s.delivery = Delivery::AtLeastOnce;
        s.ending = Ending::AtEndFlushed;
    });
    driver.assigned(1);
    let small = PartitionFacts { log_start: 0, high_watermark: 1, ..part(0, None) };
    answered(&mut driver, Request::Facts, Answer::Facts(Box::new(facts(vec![small]))));
    answered(&mut driver, Request::CommitOffsets { generation: 1 }, Answer::Done);
    add(driver.machine_mut().unwrap(), 0, 0, 50);
    answered(&mut driver, Request::Produce, Answer::Done);
    answered(&mut driver, Request::CommitOffsets { generation: 1 }, Answer::Unknown);
    let Next::Send(ticket, Request::CommitOffsets { .. }) = driver.poll(NOW + 5) else {
        panic!("not sent again")
    };
    driver.answer(ticket, Answer::Done, NOW + 5);
    assert_eq!(driver.poll(NOW + 5), Next::Ended(Ended::Finished));
}

#[test]
fn the_machines_contract_is_checked() {
    let s = settings(100, 0);
    let mut m = fresh(&s, 1);
    add(&mut m, 0, 3, 50);
    let again = RecordPosition::new(0, 3, 50);
    assert_eq!(
        m.apply(again, Content::Record(0), NOW, || ()),
        Err(MachineError::OutOfOrder { at: again, position: 4 })
    );
    assert_eq!(m.advance_to(9, 1), Err(MachineError::UnknownPartition { partition: 9 }));
    let moved = Observation { log_start: 7, high_watermark: 9, last_stable: 9 };
    assert_eq!(
        m.observe(0, moved, NOW),
        Err(MachineError::BelowLogStart { partition: 0, position: 4, log_start: 7 })
    );
    let mut co = JobSettings { mode: Mode::CoPartitioned, ..s };
    co.side_bound = 1;
    let mut m = fresh(&co, 1);
    assert_eq!(m.add_partition(1, 0), Err(MachineError::CountChanged { partition: 1, count: 1 }));
    // Side records are published at their bound, and input stops at twice that.
    let bad =
        |m: &mut Made, o| m.apply(RecordPosition::new(0, o, 50), Content::Undecodable, NOW, || ()).unwrap();
    assert_eq!(bad(&mut m, 0), Fate::Undecodable);
    assert_eq!((m.due(NOW), m.wants_input()), (Some(Reason::Sides), true));
    bad(&mut m, 1);
    assert!(!m.wants_input());
    assert_eq!(m.cut(Reason::Sides, NOW).sides.len(), 2);
    assert!(m.wants_input());
}
