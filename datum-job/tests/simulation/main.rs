//! The job's machines in virtual time, with crashes between any two steps.
//!
//! A world of seeded schedules runs the real driver, machine, restore and stored form against a simulated broker:
//! crashes, pauses past the session and past the transaction timeout, lost requests and answers, rebalances, added
//! partitions, operators' resets, foreign members, expired offsets, retention. An oracle then asks of every record of the
//! input where it went.
//!
//! `DATUM_SIM_SEED=n` runs that seed alone and `DATUM_SIM_SEEDS=n` sets how many run (10,000). A failure prints its seed.
//!
//! Not covered here: the wire, broker failover, changed hashes and topic ids, memory bounds, and merged float aggregates (a
//! pane is the set of its records).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    unreachable_pub,
    reason = "test code; offsets of a simulated log are small and never negative"
)]

mod broker;
mod ids;
mod lies;
mod oracle;
mod out;
mod rng;
mod task;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lies::Lie;
use rng::Rng;
use world::{Plan, World};

/// What a batch of seeds came to.
#[derive(Default)]
struct Tally {
    failures: Vec<(u64, String)>,
    events: BTreeMap<&'static str, u64>,
    outputs: usize,
    longest_metadata: usize,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name}={v} is not a number")))
}

/// Runs `seeds`, on all cores; stops early once `enough` have failed.
fn run(
    seeds: std::ops::Range<u64>,
    lie: Option<Lie>,
    enough: usize,
    plan: impl Fn(u64) -> Plan + Sync,
) -> Tally {
    let next = AtomicU64::new(seeds.start);
    let tally = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || tally.lock().unwrap().failures.len() >= enough {
                        return;
                    }
                    let mut world = World::new(plan(seed), lie);
                    let result = world.run().and_then(|()| oracle::check(&world));
                    let mut tally = tally.lock().unwrap();
                    tally.outputs += world.b.output.len();
                    tally.longest_metadata = tally.longest_metadata.max(world.longest_metadata);
                    for (event, n) in &world.events {
                        *tally.events.entry(event).or_default() += n;
                    }
                    if let Err(why) = result {
                        tally.failures.push((seed, why));
                    }
                }
            });
        }
    });
    let mut tally = tally.into_inner().unwrap();
    tally.failures.sort();
    tally
}

/// Runs seeds of `plan` and panics at the first that fails, naming it. Answers what happened.
fn all_pass(name: &str, count: u64, plan: impl Fn(u64) -> Plan + Sync) -> BTreeMap<&'static str, u64> {
    let seeds = match number("DATUM_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    };
    let tally = run(seeds.clone(), None, 1, plan);
    println!(
        "{name}: seeds {seeds:?}, {} outputs, longest metadata {} bytes, {:?}",
        tally.outputs, tally.longest_metadata, tally.events
    );
    if let Some((seed, why)) = tally.failures.first() {
        panic!("{name}: seed {seed} failed (DATUM_SIM_SEED={seed} runs it alone): {why}");
    }
    assert!(tally.longest_metadata <= datum_job::stored::MAX_TEXT);
    tally.events
}

#[test]
fn ten_thousand_crashes_and_interleavings() {
    let count = number("DATUM_SIM_SEEDS").unwrap_or(10_000);
    let events = all_pass("everything", count, Plan::of);
    if count >= 10_000 && number("DATUM_SIM_SEED").is_none() {
        for needed in [
            "crash in a transaction",
            "crash in a restore",
            "crash anywhere",
            "lost",
            "membership lost",
            "refused",
            "partition added",
            "operator reset",
            "partial reset",
            "foreign commit",
            "offsets expired",
            "ended gracefully",
        ] {
            assert!(
                events.get(needed).copied().unwrap_or(0) >= 50,
                "{needed} hardly ever happened: {events:?}"
            );
        }
    }
}

/// Each named scenario on its own, with everything else the seed brings.
fn scenario(name: &str, needs: &str, shape: impl Fn(&mut Plan, &mut Rng) + Sync) {
    let events = all_pass(name, 400, |seed| {
        let mut plan = Plan::of(seed);
        plan.steps = plan.steps.max(700);
        (plan.growth, plan.operator, plan.foreign, plan.expiry) = (false, false, false, false);
        (plan.bounded, plan.flush, plan.retention) = (false, false, false);
        shape(&mut plan, &mut Rng::new(seed));
        plan
    });
    assert!(
        number("DATUM_SIM_SEED").is_some() || events.get(needs).copied().unwrap_or(0) > 20,
        "{needs} hardly ever happened: {events:?}"
    );
}

#[test]
fn partitions_are_added() {
    scenario("partitions are added", "partition added", |plan, _| {
        (plan.growth, plan.co_partitioned) = (true, false);
    });
}

#[test]
fn an_operator_resets_offsets() {
    scenario("an operator resets offsets", "operator reset", |plan, _| plan.operator = true);
}

#[test]
fn a_foreign_consumer_joins_and_commits() {
    scenario("a foreign consumer joins and commits", "foreign commit", |plan, _| {
        (plan.foreign, plan.co_partitioned) = (true, false);
    });
}

#[test]
fn the_offsets_expire() {
    scenario("the offsets expire", "offsets expired", |plan, _| {
        (plan.expiry, plan.co_partitioned) = (true, false);
    });
}

#[test]
fn partitions_fall_silent_and_return() {
    scenario("partitions fall silent and return", "ended gracefully", |plan, r| plan.focus_on_idleness(r));
}

#[test]
fn runs_stop_at_the_end_and_flush() {
    scenario("runs stop at the end and flush", "ended gracefully", |plan, _| {
        (plan.bounded, plan.flush, plan.co_partitioned) = (true, true, false);
    });
}

#[test]
fn retention_follows_what_is_committed() {
    scenario("retention follows what is committed", "ended gracefully", |plan, _| plan.retention = true);
}

/// Instances come and go over co-partitioned input: each record once, in order, whoever owns its partition.
#[test]
fn ownership_moves_among_instances() {
    scenario("ownership moves among instances", "lost", |plan, _| {
        (plan.co_partitioned, plan.partitions, plan.instances) = (true, 6, 3);
    });
}

/// Without decisions of the clock the answer is a function of the input alone, in both deliveries.
#[test]
fn without_a_clock_the_answer_is_a_function_of_the_input() {
    scenario("no clock", "crash anywhere", |plan, _| {
        (plan.idle, plan.idle_focus, plan.growth, plan.ahead) = (false, false, false, false);
        plan.crash = 3;
    });
}

/// Runs seeds until the oracle has seen `lie`; `shape` brings about what the lie is about.
fn seen(lie: Lie, most: u64, shape: impl Fn(&mut Plan, &mut Rng) + Sync) {
    let plan = |seed| {
        let mut plan = Plan::of(seed);
        shape(&mut plan, &mut Rng::new(seed));
        plan
    };
    let tally = run(0..most, Some(lie), 1, plan);
    match tally.failures.first() {
        Some((seed, why)) => {
            println!("{lie:?}: seed {seed}: {why}");
            let honest = run(*seed..*seed + 1, None, 1, plan).failures;
            assert!(honest.is_empty(), "{lie:?}: seed {seed} fails without the lie too: {honest:?}");
        }
        None => panic!("{lie:?}: {most} seeds passed, the oracle is blind to it"),
    }
}

/// The oracle sees every broken rule.
#[test]
fn every_lie_is_seen() {
    for (lie, most) in [
        (Lie::WatermarkFromPublished, 2_000),
        (Lie::PositionForgets, 2_000),
        (Lie::ReplayRoutes, 2_000),
        (Lie::StepsForgotten, 2_000),
        (Lie::LowIsPosition, 2_000),
        (Lie::UnstableOffsets, 4_000),
        (Lie::ResetUnasked, 4_000),
        (Lie::PanesOnly, 4_000),
    ] {
        seen(lie, most, |_, _| {});
    }
    seen(Lie::StableOffsetProves, 8_000, |plan, r| {
        plan.focus_on_idleness(r);
        plan.transactions = true;
    });
    seen(Lie::StaleAnswers, 20_000, |plan, r| {
        plan.focus_on_idleness(r);
        (plan.pause, plan.at_least_once, plan.growth) = (true, false, false);
    });
    // A member that slept through an operator's reset, and whose producer nobody has fenced yet.
    for lie in [Lie::NoGeneration, Lie::NoNewAssignment, Lie::RefusesUnconfirmed] {
        seen(lie, 20_000, |plan, _| {
            plan.operator = true;
            plan.steps = 1_200;
            (plan.at_least_once, plan.pause, plan.instances) = (false, true, 3);
        });
    }
}
