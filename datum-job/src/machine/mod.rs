//! The window machine: records and fetch answers go in, cuts come out.
//!
//! # Calling contract
//! 1. Make one with [`Machine::start`] from a [`Start`] that [`restore::decide`] gave.
//! 2. Read each partition from [`position`](Machine::position). For each fetch answer: [`observe`](Machine::observe),
//!    then every record through [`apply`](Machine::apply) in offset order, then [`advance_to`](Machine::advance_to) the
//!    offset after what the answer covered (transaction markers, aborted records and compacted gaps move the position and
//!    nothing else), then [`observe`](Machine::observe) again and [`close`](Machine::close).
//! 3. While [`wants_input`](Machine::wants_input) is false, fetch nothing.
//! 4. When no commit is under way and [`due`](Machine::due) names a reason, [`cut`](Machine::cut). Output and offsets of
//!    the cut must become visible together. Reading goes on meanwhile; the next cut waits until this one is known to be
//!    committed. If it is known or suspected *not* to be, drop the machine and start another from what is committed.
//!
//! # Costs
//! A record costs a few comparisons and the payload's own work. Closing costs the partitions and what closes. Memory is
//! the payload's open windows and the side records, of which input stops at twice
//! [`side_bound`](crate::JobSettings::side_bound).
//!
//! Time is passed in as milliseconds since the epoch; a clock that steps back only delays.

mod closing;
mod counters;
mod cut;
mod error;
mod horizon;
mod partition;
mod quiet;

pub use counters::{Counters, Fate};
pub use cut::{Closed, Cut, Reason, Side, SideKind, Without};
pub use error::MachineError;
pub use quiet::Observation;

use datum_window::{Millis, RecordPosition, Watermark, Window};

use crate::restore::{self, Start};
use crate::settings::{JobSettings, Mode};
use crate::stored::{Stored, TopicId};
use partition::Partition;

/// What the windows hold. The machine decides which records belong to which window and when it closes; the payload
/// keeps them.
pub trait Payload {
    /// What one record adds.
    type Input<'a>;
    /// What a record routed beside the panes carries.
    type Side;
    /// What a closed window publishes.
    type Closed;

    /// Adds a record to `window`.
    fn add(&mut self, at: RecordPosition, window: Window, input: Self::Input<'_>);
    /// Takes `window` out. Called once per window, by window end.
    fn close(&mut self, window: Window) -> Self::Closed;
}

/// What became of reading one record's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<I> {
    /// It was decoded, and this is what it adds.
    Record(I),
    /// It was decoded and is not wanted.
    Filtered,
    /// It could not be decoded and is to be routed.
    Undecodable,
    /// It could not be decoded and is only counted.
    Skipped,
}

/// Where a partition ends for [`Machine::stop_at_end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The partition.
    pub partition: u32,
    /// The log's first offset when the ends were taken.
    pub log_start: i64,
    /// The high watermark then: reading ends there.
    pub high_watermark: i64,
}

/// The window machine of one job (or of one partition of a co-partitioned job).
pub struct Machine<P: Payload> {
    settings: JobSettings,
    topic: TopicId,
    payload: P,
    partitions: Vec<Partition>,
    /// The open windows, earliest first.
    open: Vec<Window>,
    /// E: the highest end plus grace published.
    published: Watermark,
    /// How many partitions the topic has.
    count: u32,
    closed: Vec<Closed<P::Closed>>,
    sides: Vec<Side<P::Side>>,
    /// The start offsets are not committed yet.
    unstarted: bool,
    stopping: bool,
    moved: bool,
    last_cut: Millis,
    /// Since when every partition has been at its end or below an open transaction.
    blocked_since: Option<Millis>,
    counters: Counters,
}

impl<P: Payload> Machine<P> {
    /// A machine at `start`. `count` is how many partitions the topic has now.
    #[must_use]
    pub fn start(
        settings: JobSettings,
        topic: TopicId,
        count: u32,
        start: &Start,
        payload: P,
        now: Millis,
    ) -> Self {
        let (mut partitions, published, unstarted) = match start {
            Start::Fresh(at) => {
                (at.iter().map(|(p, o)| Partition::new(*p, *o)).collect::<Vec<_>>(), Watermark::NONE, true)
            }
            Start::Resumed { stored, new } => {
                let old = stored.iter().map(|(p, s)| Partition::restored(*p, s));
                let new = new.iter().map(|(p, o)| Partition::new(*p, *o));
                (old.chain(new).collect(), restore::published(stored), false)
            }
        };
        partitions.sort_by_key(|p| p.number);
        Self {
            settings,
            topic,
            payload,
            partitions,
            open: Vec::new(),
            published,
            count,
            closed: Vec::new(),
            sides: Vec::new(),
            unstarted,
            stopping: false,
            moved: false,
            last_cut: now,
            blocked_since: None,
            counters: Counters::default(),
        }
    }

    /// Takes up partition `partition`, met while running, from `offset` on. It holds windows open from now on; windows
    /// already published stay closed.
    ///
    /// # Errors
    /// [`MachineError::CountChanged`] in co-partitioned mode: the keys have moved.
    pub fn add_partition(&mut self, partition: u32, offset: i64) -> Result<(), MachineError> {
        if self.settings.mode == Mode::CoPartitioned {
            return Err(MachineError::CountChanged { partition, count: self.count });
        }
        if let Err(at) = self.partitions.binary_search_by_key(&partition, |p| p.number) {
            self.partitions.insert(at, Partition::new(partition, offset));
        }
        self.count = self.count.max(partition.saturating_add(1));
        Ok(())
    }

    /// Sets where reading ends: at the high watermarks of now. Idleness plays no part from here on; only partitions
    /// that have nothing at all are out of the minimum.
    pub fn stop_at_end(&mut self, ends: &[End]) {
        for end in ends {
            if let Ok(at) = self.partitions.binary_search_by_key(&end.partition, |p| p.number) {
                let partition = &mut self.partitions[at];
                partition.end = Some(end.high_watermark);
                partition.empty_at_start =
                    end.log_start >= end.high_watermark && partition.watermark == Watermark::NONE;
            }
        }
    }

    /// Puts one record where it belongs. `side` makes what is routed if it leaves beside the panes.
    ///
    /// # Errors
    /// [`MachineError::UnknownPartition`] and [`MachineError::OutOfOrder`] when the contract is broken.
    #[inline]
    pub fn apply(
        &mut self,
        at: RecordPosition,
        content: Content<P::Input<'_>>,
        now: Millis,
        side: impl FnOnce() -> P::Side,
    ) -> Result<Fate, MachineError> {
        let index = self.index(at.partition)?;
        let partition = &mut self.partitions[index];
        if at.offset < partition.position {
            return Err(MachineError::OutOfOrder { at, position: partition.position });
        }
        if partition.end.is_some_and(|end| at.offset >= end) {
            return Ok(Fate::PastEnd);
        }
        let replay = at.offset < partition.replay_until;
        let ahead = !partition.horizon.accepts(at.offset, at.timestamp) && {
            let low = partition.low().0;
            replay || !partition.horizon.extend(at.offset, at.timestamp, now, self.settings.max_ahead, low)
        };
        partition.position = at.offset.saturating_add(1);
        partition.quiet.disturbed();
        self.moved = true;
        if ahead {
            return Ok(self.route(replay, Fate::Ahead, SideKind::Ahead, at, side));
        }
        let before = partition.watermark;
        partition.watermark.advance(at.timestamp);
        match content {
            Content::Record(input) => {
                if let Some((window, _)) = partition.current.filter(|(w, closes)| {
                    self.settings.windows.contains(*w, at.timestamp) && !before.reached(*closes)
                }) {
                    self.payload.add(at, window, input);
                    self.count(replay, Fate::Accepted);
                    return Ok(Fate::Accepted);
                }
                Ok(self.place(index, at, before, replay, input, side))
            }
            Content::Filtered => {
                self.count(replay, Fate::Filtered);
                Ok(Fate::Filtered)
            }
            Content::Undecodable => {
                Ok(self.route(replay, Fate::Undecodable, SideKind::Undecodable, at, side))
            }
            Content::Skipped => {
                self.count(replay, Fate::Undecodable);
                Ok(Fate::Undecodable)
            }
        }
    }

    /// The way of a record outside its partition's current window: late, or the first of a window.
    fn place(
        &mut self,
        index: usize,
        at: RecordPosition,
        before: Watermark,
        replay: bool,
        input: P::Input<'_>,
        side: impl FnOnce() -> P::Side,
    ) -> Fate {
        let window = self.settings.windows.window_of(at.timestamp);
        let closes = self.settings.windows.closes_at(window);
        if self.published.reached(closes) || before.reached(closes) {
            return self.route(replay, Fate::Late, SideKind::Late(window), at, side);
        }
        let partition = &mut self.partitions[index];
        partition.need(window, at.offset, before);
        partition.current = Some((window, closes));
        if let Err(place) = self.open.binary_search(&window) {
            self.open.insert(place, window);
        }
        self.payload.add(at, window, input);
        self.count(replay, Fate::Accepted);
        Fate::Accepted
    }

    fn route(
        &mut self,
        replay: bool,
        fate: Fate,
        kind: SideKind,
        at: RecordPosition,
        side: impl FnOnce() -> P::Side,
    ) -> Fate {
        if !replay {
            self.sides.push(Side { kind, at, record: side() });
        }
        self.count(replay, fate);
        fate
    }

    #[inline]
    fn count(&mut self, replay: bool, fate: Fate) {
        let counter = match fate {
            _ if replay => &mut self.counters.replayed,
            Fate::Accepted => &mut self.counters.accepted,
            Fate::Filtered => &mut self.counters.filtered,
            Fate::Late => &mut self.counters.late,
            Fate::Undecodable => &mut self.counters.undecodable,
            Fate::Ahead => &mut self.counters.ahead,
            Fate::PastEnd => return,
        };
        *counter += 1;
    }

    /// Moves the position over offsets that hold no record: markers, aborted transactions, gaps. Never back, and never
    /// past the end.
    ///
    /// # Errors
    /// [`MachineError::UnknownPartition`].
    pub fn advance_to(&mut self, partition: u32, offset: i64) -> Result<(), MachineError> {
        let index = self.index(partition)?;
        let partition = &mut self.partitions[index];
        let offset = partition.end.map_or(offset, |end| offset.min(end.max(partition.position)));
        if offset > partition.position {
            partition.position = offset;
            partition.quiet.disturbed();
            self.moved = true;
        }
        Ok(())
    }

    /// A fetch answer for `partition` has come.
    ///
    /// # Errors
    /// [`MachineError::UnknownPartition`]; [`MachineError::BelowLogStart`] when records not yet read are gone: join again
    /// and let the restore decide, since this may be a member that has been replaced without knowing it.
    pub fn observe(&mut self, partition: u32, seen: Observation, now: Millis) -> Result<(), MachineError> {
        let index = self.index(partition)?;
        let part = &mut self.partitions[index];
        if part.position < seen.log_start {
            return Err(MachineError::BelowLogStart {
                partition,
                position: part.position,
                log_start: seen.log_start,
            });
        }
        part.quiet.observe(part.position, seen, now);
        let blocked = self.partitions.iter().all(|p| {
            p.end.is_some_and(|end| {
                p.position >= end || p.quiet.last().is_some_and(|seen| p.position >= seen.last_stable)
            })
        });
        if blocked && !self.at_end() {
            self.blocked_since.get_or_insert(now);
        } else {
            self.blocked_since = None;
        }
        Ok(())
    }

    /// Whether more may be read: the start is being committed, and output that waits for a commit is within its bound.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.unstarted
            && !self.stopping
            && self.sides.len() < self.settings.side_bound.saturating_mul(2)
            && self.closed.len() < MAX_WAITING_WINDOWS
    }

    /// The offset to read next.
    #[must_use]
    pub fn position(&self, partition: u32) -> Option<i64> {
        self.index(partition).ok().map(|i| self.partitions[i].position)
    }

    /// The partitions, in order.
    pub fn partitions(&self) -> impl Iterator<Item = u32> {
        self.partitions.iter().map(|p| p.number)
    }

    /// How many partitions the topic has, as far as known.
    #[must_use]
    pub const fn partition_count(&self) -> u32 {
        self.count
    }

    /// Whether every partition has been read up to the end set by [`stop_at_end`](Self::stop_at_end).
    #[must_use]
    pub fn at_end(&self) -> bool {
        !self.partitions.is_empty() && self.partitions.iter().all(Partition::at_end)
    }

    /// The partitions that wait, for longer than [`end_wait`](JobSettings::end_wait), for somebody's open transaction
    /// below their end.
    #[must_use]
    pub fn blocked(&self, now: Millis) -> Vec<u32> {
        match self.blocked_since {
            Some(since) if now.saturating_sub(since) >= self.settings.end_wait => {
                self.partitions.iter().filter(|p| !p.at_end()).map(|p| p.number).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether some partition still reads what was read before the start.
    #[must_use]
    pub fn replaying(&self) -> bool {
        self.partitions.iter().any(Partition::replaying)
    }

    /// E: the highest end plus grace published.
    #[must_use]
    pub const fn published(&self) -> Watermark {
        self.published
    }

    /// How many windows are open.
    #[must_use]
    pub fn open_windows(&self) -> usize {
        self.open.len()
    }

    /// What the records so far have come to.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The state a commit made now would store of `partition`.
    #[must_use]
    pub fn state(&self, partition: u32) -> Option<Stored> {
        let index = self.index(partition).ok()?;
        Some(self.stored(self.partitions[index].progress()))
    }

    /// Records not yet processed, and records that a restart would read again, over all partitions, as far as the last
    /// fetch answers tell. Committed offsets trail by the open windows, so a tool that subtracts them from the end shows
    /// the sum of both for ever.
    #[must_use]
    pub fn lag(&self) -> Lag {
        let mut lag = Lag::default();
        for p in &self.partitions {
            let progress = p.progress();
            if let Some(seen) = p.quiet.last() {
                lag.behind += u64::try_from(seen.high_watermark - p.position).unwrap_or(0);
            }
            lag.replay += u64::try_from(progress.position - progress.low).unwrap_or(0);
        }
        lag
    }

    /// The payload.
    pub const fn payload(&self) -> &P {
        &self.payload
    }

    #[inline]
    fn index(&self, partition: u32) -> Result<usize, MachineError> {
        // Partitions are numbered from 0, so it nearly always stands at its own number.
        let guess = usize::try_from(partition).unwrap_or(usize::MAX);
        if self.partitions.get(guess).is_some_and(|p| p.number == partition) {
            return Ok(guess);
        }
        self.partitions
            .binary_search_by_key(&partition, |p| p.number)
            .map_err(|_| MachineError::UnknownPartition { partition })
    }
}

/// How far a job is behind; see [`Machine::lag`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// End minus P: what has not been processed. Alert on this one.
    pub behind: u64,
    /// P minus L: what a restart reads again. It follows the length of the windows.
    pub replay: u64,
}

/// Input stops when this many closed windows wait for a commit.
const MAX_WAITING_WINDOWS: usize = 1_024;
