//! The oracle: where every record of the input went, against the definition of the answer.

use std::collections::{BTreeMap, BTreeSet};

use datum_window::{Watermark, Window};

use crate::broker::State;
use crate::ids::Id;
use crate::out::Out;
use crate::world::{Checked, Era, MAX_AHEAD, World};

type Panes = BTreeMap<(Window, u8), BTreeSet<Id>>;

/// Checks all the output, era by era, and the last era's against the input.
pub fn check(world: &World) -> Checked {
    for (n, era) in world.eras.iter().enumerate() {
        let last = n + 1 == world.eras.len();
        let to = world.eras.get(n + 1).map_or(world.b.output.len(), |next| next.output_from);
        let output = &world.b.output[era.output_from..to];
        let panes = published_once(world, output)?;
        // At-least-once has no fence: a zombie may repeat panes of the era before a reset.
        if last && !(world.plan.at_least_once && n > 0) {
            every_record_went_right(world, era, output, panes)?;
        }
    }
    Ok(())
}

/// Whether decisions of the clock may differ between two readings: then at-least-once promises less.
fn may_differ(world: &World) -> bool {
    let p = &world.plan;
    p.at_least_once && (p.idle || p.growth || p.ahead || p.flush)
}

/// Nothing leaves twice (at-least-once: not with two contents), and panes come by window end.
fn published_once(world: &World, output: &[Out]) -> Result<Panes, String> {
    let mut panes = Panes::new();
    let mut seen = BTreeSet::new();
    let mut newest: BTreeMap<u8, Window> = BTreeMap::new();
    for out in output {
        if !seen.insert(out) && !world.plan.at_least_once {
            return Err(format!("twice: {out:?}"));
        }
        let Out::Pane { window, key, ids } = out else { continue };
        if may_differ(world) {
            panes.entry((*window, *key)).or_default().extend(ids);
            continue;
        }
        if let Some(old) = panes.insert((*window, *key), ids.clone())
            && old != *ids
        {
            return Err(format!("two contents of {window:?}/{key}: {old:?} and {ids:?}"));
        }
        let unit = if world.plan.co_partitioned { key / 2 } else { 0 };
        if let Some(before) = newest.insert(unit, *window)
            && before > *window
            && !world.plan.at_least_once
        {
            return Err(format!("order: {window:?} after {before:?}"));
        }
    }
    Ok(panes)
}

fn every_record_went_right(world: &World, era: &Era, output: &[Out], panes: Panes) -> Checked {
    let seen: BTreeSet<&Out> = output.iter().collect();
    let mut unexplained = panes.clone();
    let windows = world.settings.windows;
    for (p, log) in (0..).zip(&world.b.logs) {
        let published = if world.plan.co_partitioned {
            world.stored(p).map(|s| s.published)
        } else {
            (0..world.b.logs.len() as u32).filter_map(|p| world.stored(p)).map(|s| s.published).max()
        };
        let published = published.unwrap_or_default();
        let mut watermark = Watermark::NONE;
        let from = era.offsets.get(&p).copied().unwrap_or(0);
        for (offset, entry) in (0..).zip(&log.entries) {
            if offset < from || entry.state != State::Committed {
                continue;
            }
            let (rec, id) = (entry.rec, (p, offset));
            let window = windows.window_of(rec.ts);
            let closes = windows.closes_at(window);
            let went = |out: Out| seen.contains(&out);
            let (late, dead, ahead) = (went(Out::Late(id)), went(Out::Dead(id)), went(Out::Ahead(id)));
            let in_pane = panes.get(&(window, rec.key)).is_some_and(|ids| ids.contains(&id));
            let before = watermark;
            let wrong = |what: &str| {
                Err(format!(
                    "{what}: {id:?} {rec:?} own watermark {before} closes {closes} published {published} late {late} \
                     dead {dead} ahead {ahead} in a pane {in_pane}"
                ))
            };
            if in_pane && let Some(ids) = unexplained.get_mut(&(window, rec.key)) {
                ids.remove(&id);
            }
            if may_differ(world) {
                let open = !published.reached(closes);
                if !(late || dead || ahead || in_pane || rec.filtered || open) {
                    return wrong("at-least-once lost");
                }
                continue;
            }
            if [late, dead, ahead, in_pane].into_iter().filter(|x| *x).count() > 1 {
                return wrong("in two places");
            }
            if ahead {
                if rec.ts <= entry.at + MAX_AHEAD {
                    return wrong("put aside though in time");
                }
                continue;
            }
            let own_late = before.reached(closes);
            watermark.advance(rec.ts);
            if rec.bad {
                if !dead {
                    return wrong("dead letter lost");
                }
            } else if rec.filtered {
                if late || in_pane {
                    return wrong("filtered and yet published");
                }
            } else if own_late {
                if !late {
                    return wrong("late and not routed");
                }
            } else if late {
                let fresh = world.settings.idle_fresh.min(12);
                let excused = world.excuses.iter().any(|x| {
                    x.partition == p
                        && x.e >= closes
                        && offset >= x.from
                        && entry.at >= x.at.saturating_sub(fresh)
                });
                if !excused {
                    return wrong("late without a reason");
                }
            } else if !in_pane && published.reached(closes) {
                return wrong("lost");
            }
        }
    }
    match unexplained.iter().find(|(_, ids)| !ids.is_empty()) {
        Some((pane, ids)) => Err(format!("pane {pane:?} holds what it must not: {ids:?}")),
        None => Ok(()),
    }
}
