//! One lane answered by hand, and lanes in virtual time against a model of a partition with loss.

use datum_net::Rng;

use super::*;

const PAUSE: Duration = Duration::from_millis(100);

fn config() -> LaneConfig {
    LaneConfig { idempotent: true, transactional: false, max_in_flight: 5, retry_pause: PAUSE }
}

struct Alone {
    lane: Lane,
    now: Instant,
}

impl Alone {
    fn new() -> Self {
        let mut me = Self::unproved();
        me.lane.proved = true;
        me
    }

    fn unproved() -> Self {
        let mut lane = Lane::new(config());
        lane.adopt(ProducerIdentity { id: 7, epoch: 0 });
        Self { lane, now: Instant::now() }
    }

    fn push(&mut self, batches: std::ops::Range<u64>) {
        for batch in batches {
            self.lane.push(BatchId(batch), 10, self.now + Duration::from_secs(120));
        }
    }

    /// Sends what may be sent: names, epochs, sequences.
    fn send(&mut self) -> Vec<(u64, i16, i32)> {
        self.now += PAUSE;
        std::iter::from_fn(|| self.lane.next(self.now, 1))
            .map(|sent| {
                let producer = sent.producer.unwrap();
                (sent.batch.0, producer.epoch, producer.base_sequence)
            })
            .collect()
    }

    fn refuse(&mut self, batch: u64, code: ErrorCode) -> Vec<Effect> {
        self.lane.outcome(self.now, BatchId(batch), Outcome::Refused { code })
    }

    fn write(&mut self, batch: u64) -> Vec<Effect> {
        self.lane.outcome(self.now, BatchId(batch), Outcome::Written { offset: 0 })
    }

    fn lose(&mut self, batch: u64) -> Vec<Effect> {
        self.lane.outcome(self.now, BatchId(batch), Outcome::Unanswered)
    }
}

#[test]
fn five_are_out_at_once_and_numbered_by_their_records() {
    let mut me = Alone::new();
    me.push(0..7);
    assert_eq!(me.send(), [(0, 0, 0), (1, 0, 10), (2, 0, 20), (3, 0, 30), (4, 0, 40)]);
    me.write(1);
    assert_eq!(me.send(), [(5, 0, 50)]);
}

#[test]
fn the_first_batch_goes_alone_until_the_leader_knows_the_producer() {
    let mut me = Alone::unproved();
    me.push(0..3);
    assert_eq!(me.send(), [(0, 0, 0)]);
    me.refuse(0, ErrorCode::NotLeaderOrFollower);
    assert_eq!(me.send(), [(0, 0, 0)]);
    me.write(0);
    assert_eq!(me.send(), [(1, 0, 10), (2, 0, 20)]);
}

#[test]
fn a_refused_batch_and_those_that_overtook_it_go_again_in_order_with_their_numbers() {
    let mut me = Alone::new();
    me.push(0..3);
    me.send();
    assert_eq!(me.refuse(0, ErrorCode::NotLeaderOrFollower), [Effect::Refresh]);
    assert!(me.refuse(2, ErrorCode::OutOfOrderSequenceNumber).is_empty());
    assert!(me.refuse(1, ErrorCode::OutOfOrderSequenceNumber).is_empty());
    assert_eq!(me.send(), [(0, 0, 0)]);
    me.write(0);
    assert_eq!(me.send(), [(1, 0, 10), (2, 0, 20)]);
}

#[test]
fn nothing_goes_to_a_new_leader_while_something_is_out_at_the_old_one() {
    let mut me = Alone::new();
    me.push(0..2);
    assert!(me.lane.next(me.now, 1).is_some());
    assert!(me.lane.next(me.now, 2).is_none());
    me.lose(0);
    me.now += PAUSE;
    assert_eq!(me.lane.next(me.now, 2).map(|sent| sent.batch), Some(BatchId(0)));
}

/// The broker has forgotten the producer: idle for too long, or restarted without its state.
#[test]
fn a_forgotten_producer_takes_the_next_epoch_and_sends_again_in_order() {
    for code in [ErrorCode::UnknownProducerId, ErrorCode::OutOfOrderSequenceNumber] {
        let mut me = Alone::new();
        me.push(0..1);
        me.send();
        me.write(0);
        me.push(1..4);
        assert_eq!(me.send(), [(1, 0, 10), (2, 0, 20), (3, 0, 30)]);
        for batch in 1..4 {
            assert!(me.refuse(batch, code).is_empty(), "{code:?}");
        }
        assert_eq!(me.send(), [(1, 1, 0)], "{code:?}: alone until it is known again");
        me.write(1);
        assert_eq!(me.send(), [(2, 1, 10), (3, 1, 20)], "{code:?}");
    }
}

#[test]
fn a_batch_that_may_be_written_is_never_sent_under_another_epoch() {
    let mut me = Alone::new();
    me.push(0..3);
    me.send();
    me.lose(0);
    me.lose(1);
    assert!(me.refuse(2, ErrorCode::OutOfOrderSequenceNumber).is_empty());
    assert_eq!(me.send(), [(0, 0, 0)]);
    let effects = me.refuse(0, ErrorCode::OutOfOrderSequenceNumber);
    let failed =
        |batch| Effect::Failed { batch: BatchId(batch), why: Failure::Disordered, possibly_written: true };
    assert_eq!(effects, [failed(0), failed(1)]);
    assert_eq!(me.send(), [(2, 1, 0)]);
}

#[test]
fn a_batch_given_up_last_leaves_its_numbers_and_one_given_up_before_others_costs_an_epoch() {
    let mut me = Alone::new();
    me.push(0..1);
    me.send();
    let effects = me.refuse(0, ErrorCode::InvalidTimestamp);
    let why = Failure::Refused(ErrorCode::InvalidTimestamp);
    assert_eq!(effects, [Effect::Failed { batch: BatchId(0), why, possibly_written: false }]);
    me.push(1..4);
    assert_eq!(me.send(), [(1, 0, 0)]);
    me.write(1);
    assert_eq!(me.send(), [(2, 0, 10), (3, 0, 20)]);
    me.refuse(2, ErrorCode::InvalidTimestamp);
    me.refuse(3, ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(me.send(), [(3, 1, 0)]);
}

#[test]
fn a_batch_too_large_is_split_and_its_followers_keep_their_numbers() {
    let mut me = Alone::new();
    me.push(0..2);
    me.send();
    assert_eq!(me.refuse(0, ErrorCode::MessageTooLarge), [Effect::Split { batch: BatchId(0) }]);
    me.refuse(1, ErrorCode::OutOfOrderSequenceNumber);
    assert!(me.send().is_empty(), "not before it is split");
    me.lane.split(BatchId(0), &[(BatchId(8), 4), (BatchId(9), 6)]);
    assert_eq!(me.send(), [(8, 0, 0)]);
    me.write(8);
    assert_eq!(me.send(), [(9, 0, 4), (1, 0, 10)]);
}

#[test]
fn a_batch_that_waits_too_long_expires_and_says_whether_it_may_be_written() {
    let mut me = Alone::new();
    me.push(0..2);
    assert!(me.lane.next(me.now, 1).is_some());
    me.lose(0);
    me.now += Duration::from_secs(121);
    let expired = |batch, possibly_written| Effect::Failed {
        batch: BatchId(batch),
        why: Failure::Expired(None),
        possibly_written,
    };
    assert_eq!(me.lane.expire(me.now), [expired(0, true), expired(1, false)]);
    me.push(2..3);
    assert_eq!(me.send(), [(2, 1, 0)], "the number of the doubtful one is never used again");
}

/// The leader may have forgotten the producer: were the first refused for another reason, it would take the second in its place.
#[test]
fn the_first_after_a_long_silence_goes_alone() {
    let mut me = Alone::new();
    me.push(0..1);
    me.send();
    me.write(0);
    me.now += KNOWN_FOR;
    me.push(1..3);
    assert_eq!(me.send(), [(1, 0, 10)]);
    me.write(1);
    assert_eq!(me.send(), [(2, 0, 20)]);
}

#[test]
fn an_expired_batch_names_the_last_refusal() {
    let mut me = Alone::new();
    me.push(0..1);
    me.send();
    me.refuse(0, ErrorCode::NotEnoughReplicas);
    me.now += Duration::from_secs(121);
    let why = Failure::Expired(Some(ErrorCode::NotEnoughReplicas));
    assert_eq!(me.lane.expire(me.now), [Effect::Failed { batch: BatchId(0), why, possibly_written: false }]);
    assert_eq!(
        why.to_string(),
        "the delivery timeout passed; the broker's last refusal was NotEnoughReplicas"
    );
}

/// A broker comes back while five are on their way: no connection for the first two, then one for the last three.
#[test]
fn batches_that_overtook_while_a_broker_came_back_go_again_and_lose_nothing() {
    let mut me = Alone::new();
    me.push(0..5);
    me.send();
    for batch in 0..2 {
        assert!(me.lane.outcome(me.now, BatchId(batch), Outcome::Unsent).is_empty());
    }
    assert!(
        me.send().is_empty(),
        "three are out that may have been taken by a leader that forgot the producer"
    );
    for batch in 2..5 {
        assert!(me.refuse(batch, ErrorCode::OutOfOrderSequenceNumber).is_empty());
    }
    assert_eq!(me.send(), [(0, 0, 0)], "alone, under the same epoch");
    me.write(0);
    assert_eq!(me.send(), [(1, 0, 10), (2, 0, 20), (3, 0, 30), (4, 0, 40)]);
}

/// Answers can be handed in in another order than they were given: what came before was undecided when this one was sent.
#[test]
fn a_refusal_that_comes_in_late_is_judged_by_what_was_undecided_at_the_sending() {
    let mut me = Alone::new();
    me.push(0..3);
    me.send();
    me.write(0);
    me.write(1);
    assert!(me.refuse(2, ErrorCode::OutOfOrderSequenceNumber).is_empty());
    assert_eq!(me.send(), [(2, 0, 20)], "with its number, which the leader has not got");
    assert!(me.refuse(2, ErrorCode::OutOfOrderSequenceNumber).is_empty());
    assert_eq!(me.send(), [(2, 1, 0)], "alone and refused again: the leader has forgotten");
}

/// What is refused for another reason leaves open whether the leader still knows the producer.
#[test]
fn after_a_sending_that_came_to_nothing_the_lowest_goes_alone() {
    for outcome in
        [Outcome::Unanswered, Outcome::Unsent, Outcome::Refused { code: ErrorCode::NotLeaderOrFollower }]
    {
        let mut me = Alone::new();
        me.push(0..2);
        me.send();
        me.lane.outcome(me.now, BatchId(0), outcome);
        assert!(me.send().is_empty(), "{outcome:?}: something is out still");
        me.refuse(1, ErrorCode::NotLeaderOrFollower);
        assert_eq!(me.send(), [(0, 0, 0)], "{outcome:?}");
        me.write(0);
        assert_eq!(me.send(), [(1, 0, 10)], "{outcome:?}");
    }
}

#[test]
fn a_transactional_lane_leaves_the_epoch_to_the_coordinator() {
    let mut me = Alone::new();
    me.lane.config.transactional = true;
    me.push(0..1);
    me.send();
    let effects = me.refuse(0, ErrorCode::OutOfOrderSequenceNumber);
    assert!(matches!(effects[..], [Effect::Failed { possibly_written: false, .. }]));
    assert!(me.lane.adopt(ProducerIdentity { id: 7, epoch: 1 }).is_empty());
    me.push(1..2);
    assert_eq!(me.send(), [(1, 1, 0)]);
}

#[test]
fn the_last_epoch_asks_for_a_new_producer_id() {
    let mut me = Alone::new();
    me.lane.adopt(ProducerIdentity { id: 7, epoch: i16::MAX - 1 });
    me.push(0..1);
    me.send();
    assert_eq!(me.refuse(0, ErrorCode::UnknownProducerId), [Effect::NeedIdentity]);
    assert!(me.send().is_empty());
    me.lane.adopt(ProducerIdentity { id: 8, epoch: 0 });
    assert_eq!(me.send(), [(0, 0, 0)]);
}

/// A partition's log as a broker keeps it: one producer's state, and what is in it.
#[derive(Default)]
struct Log {
    /// Epoch, next sequence, and the first sequences of what was taken.
    state: Option<(i16, i32, Vec<i32>)>,
    forgotten: bool,
    /// It takes whatever number comes first of a producer it has forgotten, as today's brokers do; older ones take only 0.
    lenient: bool,
    batches: Vec<u64>,
}

impl Log {
    fn append(&mut self, batch: u64, producer: Producer) -> Result<(), ErrorCode> {
        match &mut self.state {
            Some((epoch, next, recent)) if *epoch == producer.epoch => {
                if recent.contains(&producer.base_sequence) {
                    return Ok(());
                }
                if *next != producer.base_sequence {
                    return Err(ErrorCode::OutOfOrderSequenceNumber);
                }
                *next += 10;
                recent.push(producer.base_sequence);
            }
            Some((epoch, ..)) if *epoch > producer.epoch => return Err(ErrorCode::InvalidProducerEpoch),
            // Another epoch, or a producer that was forgotten, begins at 0; one never heard of begins with whatever comes first.
            state => {
                if producer.base_sequence != 0 && (state.is_some() || (self.forgotten && !self.lenient)) {
                    return Err(ErrorCode::UnknownProducerId);
                }
                *state = Some((producer.epoch, producer.base_sequence + 10, vec![producer.base_sequence]));
            }
        }
        self.batches.push(batch);
        Ok(())
    }
}

#[test]
fn under_loss_and_forgetful_brokers_nothing_is_written_twice_or_out_of_order() {
    let first: u64 = std::env::var("DATUM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + 2_000 {
        let mut rng = Rng::seeded(seed);
        let mut me = Alone::unproved();
        let mut log = Log { lenient: seed % 2 == 0, ..Log::default() };
        let (mut pushed, mut acked, mut failed) = (0, Vec::new(), Vec::new());
        let mut wire: VecDeque<Dispatch> = VecDeque::new();
        for _ in 0..400 {
            if pushed < 40 && rng.below(3) == 0 {
                me.push(pushed..pushed + 1);
                pushed += 1;
            }
            while let Some(sent) = me.lane.next(me.now, 1) {
                wire.push_back(sent);
            }
            assert!(me.lane.in_flight() <= 5);
            // A producer that is not heard for long is forgotten. (One forgotten with an unanswered batch could not be protected.)
            if rng.below(10) == 0 && me.lane.is_idle() {
                log.state = None;
                log.forgotten = true;
                me.now += KNOWN_FOR;
            }
            // No connection for some, then one for those behind them.
            if rng.below(20) == 0 {
                let count = rng.below(4).min(wire.len());
                for sent in wire.drain(..count) {
                    assert!(me.lane.outcome(me.now, sent.batch, Outcome::Unsent).is_empty());
                }
            }
            if let Some(sent) = wire.pop_front() {
                let fate = rng.below(10);
                let written = match fate {
                    0 => None,
                    2 => Some(Err(ErrorCode::NotLeaderOrFollower)),
                    _ => Some(log.append(sent.batch.0, sent.producer.unwrap())),
                };
                let outcome = match written {
                    _ if fate <= 1 => Outcome::Unanswered,
                    Some(Ok(())) => Outcome::Written { offset: 0 },
                    Some(Err(code)) => Outcome::Refused { code },
                    None => Outcome::Unanswered,
                };
                let mut effects = me.lane.outcome(me.now, sent.batch, outcome);
                if outcome == Outcome::Unanswered {
                    // The connection is gone, and with it everything behind on it.
                    for behind in wire.drain(..) {
                        effects.extend(me.lane.outcome(me.now, behind.batch, Outcome::Unanswered));
                    }
                }
                for effect in effects {
                    match effect {
                        Effect::Acked { batch, .. } => acked.push(batch.0),
                        Effect::Failed { batch, possibly_written, .. } => {
                            failed.push((batch.0, possibly_written));
                        }
                        Effect::Split { .. } | Effect::Refresh | Effect::NeedIdentity => {}
                    }
                }
            }
            me.now += PAUSE / 2;
        }
        let ordered = log.batches.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ordered, "seed {seed}: the log holds {:?}", log.batches);
        assert!(
            acked.iter().all(|batch| log.batches.contains(batch)),
            "seed {seed}: an acknowledged batch is missing"
        );
        for (batch, possibly) in failed {
            assert!(
                possibly || !log.batches.contains(&batch),
                "seed {seed}: batch {batch} is in the log, unsaid"
            );
        }
    }
}
