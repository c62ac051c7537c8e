//! When windows close, when a transaction is due, and what it takes along.

use datum_window::{Millis, Watermark, Window};

use super::cut::{Closed, Cut, Reason, Without};
use super::partition::{Partition, Progress};
use super::{Machine, Payload};
use crate::stored::Stored;

impl<P: Payload> Machine<P> {
    /// Whether `partition` holds no window open at `now`.
    fn out(&self, partition: &Partition, now: Millis) -> bool {
        if partition.end.is_some() {
            return partition.empty_at_start && partition.watermark == Watermark::NONE;
        }
        self.settings
            .idle_timeout
            .is_some_and(|timeout| partition.quiet.idle(timeout, self.settings.idle_fresh, now))
    }

    /// Closes every window whose end plus grace the *present* minimum of the watermarks has reached. The minimum may have
    /// fallen since the last call; what is published stays published. With every partition idle nothing closes.
    pub fn close(&mut self, now: Millis) {
        if self.open.is_empty() {
            return;
        }
        let Some(minimum) = self.partitions.iter().filter(|p| !self.out(p, now)).map(|p| p.watermark).min()
        else {
            return;
        };
        let without: Vec<Without> = self
            .partitions
            .iter()
            .filter(|p| self.out(p, now))
            .map(|p| Without {
                partition: p.number,
                high_watermark: p.quiet.last().map_or(p.position, |seen| seen.high_watermark),
            })
            .collect();
        let windows = self.settings.windows;
        self.close_while(&without, now, false, |window| minimum.reached(windows.closes_at(window)));
    }

    /// Publishes open windows before their time, by their end, except those that end after the clock. What comes for
    /// them later is late.
    pub fn flush(&mut self, now: Millis) {
        let without: Vec<Without> = self
            .partitions
            .iter()
            .map(|p| Without { partition: p.number, high_watermark: p.position })
            .collect();
        self.close_while(&without, now, true, |window| window.end <= now);
    }

    fn close_while(&mut self, without: &[Without], at: Millis, flushed: bool, ripe: impl Fn(Window) -> bool) {
        let count = self.open.iter().take_while(|w| ripe(**w)).count();
        for window in self.open.drain(..count) {
            self.published.advance(self.settings.windows.closes_at(window));
            for partition in &mut self.partitions {
                partition.release(window);
            }
            let panes = self.payload.close(window);
            self.closed.push(Closed { window, panes, at, flushed, without: without.to_vec() });
        }
    }

    /// Asks for an end: [`due`](Self::due) answers [`Reason::Stop`] until a cut is made for it.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether a transaction should begin now, and why.
    #[must_use]
    pub fn due(&self, now: Millis) -> Option<Reason> {
        if self.unstarted {
            Some(Reason::Start)
        } else if self.stopping {
            Some(Reason::Stop)
        } else if !self.closed.is_empty() {
            Some(Reason::Close)
        } else if self.sides.len() >= self.settings.side_bound {
            Some(Reason::Sides)
        } else {
            let waited = now.saturating_sub(self.last_cut) >= self.settings.commit_interval;
            (self.moved && waited).then_some(Reason::Interval)
        }
    }

    /// When [`due`](Self::due) may answer otherwise without further input.
    #[must_use]
    pub fn deadline(&self) -> Option<Millis> {
        self.moved.then(|| self.last_cut.saturating_add(self.settings.commit_interval))
    }

    /// Takes what is to be committed: everything that closed or left since the last cut, and the state of every partition
    /// whose state changed.
    pub fn cut(&mut self, reason: Reason, now: Millis) -> Cut<P::Closed, P::Side> {
        self.unstarted = false;
        self.moved = false;
        self.last_cut = now;
        let mut changed: Vec<(u32, Progress)> = self
            .partitions
            .iter_mut()
            .filter_map(|p| p.take_changed().map(|progress| (p.number, progress)))
            .collect();
        if changed.is_empty() {
            // E travels with an offset: one partition carries it though nothing of its own changed.
            changed.extend(self.partitions.first().map(|p| (p.number, p.progress())));
        }
        Cut {
            reason,
            closed: std::mem::take(&mut self.closed),
            sides: std::mem::take(&mut self.sides),
            offsets: changed.into_iter().map(|(p, progress)| (p, self.stored(progress))).collect(),
            published: self.published,
            at: now,
        }
    }

    pub(super) fn stored(&self, progress: Progress) -> Stored {
        Stored {
            low: progress.low,
            position: progress.position,
            watermark: progress.watermark,
            published: self.published,
            steps: progress.steps,
            partitions: self.count,
            mode: self.settings.mode,
            topic: self.topic,
            hash: self.settings.hash,
        }
    }
}
