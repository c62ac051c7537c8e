//! The rollup on a real Kafka, killed again and again: at the points of a cut at which a crash matters, and at random moments.
//!
//! Run by `ci/kill-run` and, with everything else that can happen to it (broker restarts, pauses, second instances, foreign consumers, new
//! partitions), by `benches/exactly-once-run`; both say how large in the environment. A topic of six partitions is filled portion by
//! portion, with late records and some that cannot be decoded. Each thing that happens takes portions of its own, so that there always is
//! progress before it; it is shown to have hit by what is seen from outside (a signal, a line of the process's own, the group's
//! members, an open transaction), and never waited for by the clock. Half of the lives have an instance id; the others wait for the session of
//! the dead to end.
//!
//! At the end the output, read committed by Kafka's own console consumer, must hold each pane of the naive oracle once, and nothing
//! else; so must the topics of late records and of dead letters.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "what happened, and the seed, are the run's record")]

mod foreign;
mod input;
mod process;
mod size;
#[path = "../support/mod.rs"]
mod support;
mod world;

use serde_json::Value;
use size::{Event, Mode, POINTS, Random, Size};
use support::oracle;
use world::World;

#[test]
fn each_pane_is_published_once_by_one_owner_whatever_happens() {
    run(Mode::Exclusive);
}

#[test]
fn each_pane_is_published_once_by_members_that_share_whatever_happens() {
    run(Mode::CoPartitioned);
}

fn run(mode: Mode) {
    let Some(brokers) = support::brokers::real() else { return };
    let size = Size::of_environment();
    let mut random = Random::new(size.seed);
    let events = size.events(mode, &mut random);
    let window_ms = size.window_ms(&events);
    println!("{mode:?}, {size:?}, windows of {window_ms} ms");
    let mut world = World::new(&brokers, mode, &size, &events, random);
    for event in &events {
        world.meet(*event);
    }
    world.finish(size.records);

    let mut answer = world.input.answer(window_ms);
    answer.closed.append(&mut answer.open);
    let published = foreign::panes(&brokers, &format!("{}-out", world.topic));
    oracle::assert_panes(&answer.closed, window_ms, &published);
    let late = answer.late.iter().map(|record| record.fields.clone());
    let seen = world.read("late").into_iter().map(|value| serde_json::from_str(&value).unwrap());
    assert_eq!(by_event(seen), by_event(late), "late records");
    assert_eq!(sorted(world.read("dead")), sorted(world.input.undecodable()), "dead letters");
    if size.restarts > 0 && mode == Mode::CoPartitioned {
        world.end_by_growth();
    }
    assert_hit(&size, &events, &world);
    println!(
        "{} panes, {} late, {} undecodable; {:?}",
        published.len(),
        answer.late.len(),
        world.input.undecodable().len(),
        world.tally
    );
    save(mode, &published);
}

/// Everything that was to happen has hit.
fn assert_hit(size: &Size, events: &[Event], world: &World) {
    let (tally, all) = (&world.tally, u64::from(size.restarts > 0));
    let killed_at = POINTS.len() as u64 * size.kills;
    assert_eq!((tally.kills_at_points, tally.random_kills), (killed_at, size.random));
    assert_eq!(tally.broker_restarts, size.restarts);
    assert_eq!((tally.sessions_lost, tally.transactions_lost), (all, all));
    // One more joins to take over from the member whose session is lost.
    assert_eq!((tally.joined, tally.left), (3 * all, 2 * all));
    assert_eq!((tally.foreigners_refused, tally.refused_beside_foreigners), (2 * all, 2 * all));
    assert_eq!(tally.partitions_added > 0, size.restarts > 0);
    assert_eq!(world.input.records(), size.records, "{events:?}");
}

/// By their ids, and sorted.
fn by_event(records: impl Iterator<Item = Value>) -> Vec<(String, String)> {
    sorted(records.map(|record| (record["event_id"].to_string(), record.to_string())).collect())
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

/// Writes the panes where the environment wants them.
fn save(mode: Mode, panes: &[Value]) {
    let Some(folder) = std::env::var_os("DATUM_KILL_RUN_PANES") else { return };
    let lines: Vec<String> = panes.iter().map(|pane| format!("{pane}\n")).collect();
    std::fs::write(std::path::Path::new(&folder).join(format!("{mode:?}.ndjson")), lines.concat()).unwrap();
}
