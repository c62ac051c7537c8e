//! Crashes at random moments under random faults: it goes on, and each pane comes once.

use std::future::pending;
use std::time::Duration;

use datum_broker::Api;
use datum_job::protocol::Ending;
use datum_job::run::WindowJob;
use datum_kafka::ErrorCode;

use crate::oracle::{Dice, Input, Keys};
use crate::support::{Stage, job};

/// Faults that a cluster shows without anybody being at fault: a job outlives all of them.
const CODES: &[(Api, &[ErrorCode])] = &[
    (
        Api::InitProducerId,
        &[
            ErrorCode::ConcurrentTransactions,
            ErrorCode::NotCoordinator,
            ErrorCode::CoordinatorLoadInProgress,
            ErrorCode::CoordinatorNotAvailable,
        ],
    ),
    (
        Api::TxnOffsetCommit,
        &[
            ErrorCode::CoordinatorLoadInProgress,
            ErrorCode::NotCoordinator,
            ErrorCode::IllegalGeneration,
            ErrorCode::UnknownMemberId,
            ErrorCode::ConcurrentTransactions,
        ],
    ),
    (
        Api::EndTxn,
        &[
            ErrorCode::NotCoordinator,
            ErrorCode::CoordinatorNotAvailable,
            ErrorCode::ConcurrentTransactions,
            ErrorCode::ProducerFenced,
            ErrorCode::InvalidProducerEpoch,
        ],
    ),
    (
        Api::OffsetFetch,
        &[ErrorCode::UnstableOffsetCommit, ErrorCode::NotCoordinator, ErrorCode::CoordinatorLoadInProgress],
    ),
    (
        Api::JoinGroup,
        &[
            ErrorCode::CoordinatorLoadInProgress,
            ErrorCode::NotCoordinator,
            ErrorCode::CoordinatorNotAvailable,
            ErrorCode::UnknownMemberId,
        ],
    ),
    (
        Api::SyncGroup,
        &[ErrorCode::RebalanceInProgress, ErrorCode::NotCoordinator, ErrorCode::UnknownMemberId],
    ),
    (
        Api::Heartbeat,
        &[
            ErrorCode::UnknownMemberId,
            ErrorCode::IllegalGeneration,
            ErrorCode::RebalanceInProgress,
            ErrorCode::NotCoordinator,
        ],
    ),
    (
        Api::Produce,
        &[
            ErrorCode::NotLeaderOrFollower,
            ErrorCode::NotEnoughReplicas,
            ErrorCode::KafkaStorageError,
            ErrorCode::InvalidProducerEpoch,
            ErrorCode::NotEnoughReplicasAfterAppend,
        ],
    ),
    (
        Api::Fetch,
        &[
            ErrorCode::NotLeaderOrFollower,
            ErrorCode::FencedLeaderEpoch,
            ErrorCode::UnknownLeaderEpoch,
            ErrorCode::OffsetNotAvailable,
            ErrorCode::KafkaStorageError,
            ErrorCode::UnknownTopicOrPartition,
        ],
    ),
    (
        Api::ListOffsets,
        &[ErrorCode::NotLeaderOrFollower, ErrorCode::OffsetNotAvailable, ErrorCode::LeaderNotAvailable],
    ),
    (Api::FindCoordinator, &[ErrorCode::CoordinatorNotAvailable]),
    (Api::Metadata, &[ErrorCode::LeaderNotAvailable]),
    (Api::DescribeConfigs, &[ErrorCode::RequestTimedOut]),
];

fn plan(stage: &Stage, dice: &mut Dice) -> Vec<String> {
    let faults = stage.broker().faults();
    let mut planned = Vec::new();
    for _ in 0..dice.below(7) {
        let (api, codes) = dice.pick(CODES);
        let nth = 1 + dice.below(4);
        let times = 1 + dice.below(2);
        let fault = faults.on(*api).nth(nth).times(times);
        let what = match dice.below(8) {
            0 => {
                fault.delay(Duration::from_millis(dice.below(400)));
                "delay".to_owned()
            }
            1 => {
                fault.disconnect();
                "disconnect".to_owned()
            }
            2 => {
                fault.disconnect_after();
                "disconnect_after".to_owned()
            }
            3 => {
                fault.truncate();
                "truncate".to_owned()
            }
            _ => {
                let code = *dice.pick(codes);
                fault.error(code);
                format!("{code:?}")
            }
        };
        planned.push(format!("{api:?}#{nth}x{times}:{what}"));
    }
    planned
}

fn shift(stage: &Stage, dice: &mut Dice) {
    let broker = stage.broker();
    let node = 1 + i32::try_from(dice.below(3)).unwrap();
    match dice.below(5) {
        0 => {
            let partition = i32::try_from(dice.below(3)).unwrap();
            broker.move_leader(&stage.topic("in"), partition, node).unwrap();
        }
        1 => broker.move_leader(&stage.topic("out"), 0, node).unwrap(),
        2 | 3 => broker.move_coordinator(&stage.topic("group"), node).unwrap(),
        _ => broker.close_connections(node).unwrap(),
    }
}

async fn storm(seed: u64) {
    let stage = Stage::embedded_nodes("chaos", 3).await;
    let mut dice = Dice::new(seed);
    stage.create("in", 3).await;
    stage.create("out", 2).await;
    let mut input = Input::new(seed, 3, Keys::Anywhere);
    let job = || {
        let mut job = job();
        job.idle_timeout = None;
        job.side_bound = 1 + usize::try_from(seed % 5).unwrap();
        job
    };
    let mut history = Vec::new();
    for attempt in 0..12 {
        stage.feed_all(&input.more(40)).await;
        stage.broker().set_marker_delay(Duration::from_millis(dice.below(30)));
        let planned = plan(&stage, &mut dice);
        let limit = Duration::from_millis(100 + dice.below(1_500));
        history.push(format!("{attempt}: {limit:?} {planned:?}"));
        let mut settings = stage.run_settings();
        settings.ending = Ending::AtEnd;
        if dice.one_in(2) {
            settings.input = settings.input.instance_id("only");
        }
        let run = WindowJob::new(settings, job(), stage.logic()).run(pending());
        let shaken = async {
            let mut pace = tokio::time::interval(Duration::from_millis(150));
            loop {
                pace.tick().await;
                shift(&stage, &mut dice);
            }
        };
        // Running out of its time is the crash.
        let ended = tokio::time::timeout(limit, async {
            tokio::select! { ended = run => Some(ended), () = shaken => None }
        });
        if let Ok(Some(Err(error))) = ended.await {
            panic!("seed {seed}: ended by a fault it should outlive: {error}; {history:#?}");
        }
        stage.broker().faults().clear();
    }
    stage.feed_all(&input.last()).await;
    let mut settings = stage.run_settings();
    settings.ending = Ending::AtEnd;
    settings.input = settings.input.instance_id("only");
    let run = WindowJob::new(settings, job(), stage.logic()).run(pending());
    let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
    match ended {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => panic!("seed {seed}: {error}; {history:#?}"),
        Err(_) => panic!("seed {seed}: no end within a minute; {history:#?}"),
    }
    stage.must_show(&input.published(i64::MAX), &format!("seed {seed}, {history:#?}")).await;
}

#[tokio::test]
async fn random_crashes_and_faults() {
    let number =
        |name: &str, default| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let first: u64 = number("DATUM_CHAOS_SEED", 1);
    let count: u64 = number("DATUM_CHAOS_SEEDS", 4);
    println!("seeds {first} to {}", first + count - 1);
    for batch in (first..first + count).collect::<Vec<_>>().chunks(4) {
        let storms: Vec<_> = batch.iter().map(|seed| tokio::spawn(storm(*seed))).collect();
        for storm in storms {
            storm.await.unwrap();
        }
    }
}
