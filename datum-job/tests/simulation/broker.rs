//! The broker: input logs with open and aborted transactions, one group, one transactional id per unit with epochs,
//! markers that come after the end was answered, timeouts, pending offsets, and the output as read committed.

use std::collections::BTreeMap;

use datum_job::restore::Committed;

use crate::out::Out;
use crate::rng::Rng;

#[derive(Clone, Copy, Debug)]
pub struct Rec {
    pub ts: i64,
    pub key: u8,
    pub bad: bool,
    pub filtered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    Open(u32),
    Committed,
    Aborted,
    Marker,
}

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub rec: Rec,
    pub state: State,
    /// When it was appended.
    pub at: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Log {
    pub entries: Vec<Entry>,
    pub start: i64,
}

impl Log {
    pub fn high_watermark(&self) -> i64 {
        self.entries.len() as i64
    }

    pub fn last_stable(&self) -> i64 {
        let open = self.entries.iter().position(|e| matches!(e.state, State::Open(_)));
        open.unwrap_or(self.entries.len()) as i64
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    Fenced,
    IllegalGeneration,
    UnknownMember,
    Concurrent,
    Unstable,
    InvalidState,
}

#[derive(Clone, Debug, PartialEq)]
enum TxnState {
    Empty,
    Ongoing { since: i64 },
    Prepared { commit: bool, done: i64 },
    Complete { commit: bool },
}

pub type Offsets = Vec<(u32, Committed)>;

#[derive(Clone, Debug)]
struct Txn {
    epoch: u32,
    state: TxnState,
    out: Vec<Out>,
    offsets: Offsets,
}

#[derive(Clone, Debug)]
struct Member {
    deadline: i64,
    foreign: bool,
}

pub struct Broker {
    pub now: i64,
    pub logs: Vec<Log>,
    /// Open input transactions and the partitions they touch.
    pub open: Vec<(u32, Vec<usize>)>,
    next_open: u32,
    pub generation: i32,
    members: BTreeMap<u32, Member>,
    next_member: u32,
    pub units: usize,
    pub owners: Vec<Option<u32>>,
    /// A foreign member is in the group: assignments carry no role.
    pub broken: bool,
    txns: BTreeMap<usize, Txn>,
    pub offsets: BTreeMap<u32, Committed>,
    pub output: Vec<Out>,
    pub session: i64,
    pub txn_timeout: i64,
    pub marker_delay: i64,
    rng: Rng,
}

impl Broker {
    pub fn new(partitions: usize, units: usize, rng: &mut Rng) -> Self {
        Self {
            now: 10_000,
            logs: vec![Log::default(); partitions],
            open: vec![],
            next_open: 0,
            generation: 0,
            members: BTreeMap::new(),
            next_member: 0,
            units,
            owners: vec![None; units],
            broken: false,
            txns: BTreeMap::new(),
            offsets: BTreeMap::new(),
            output: vec![],
            session: rng.range(40, 150),
            txn_timeout: rng.range(30, 200),
            marker_delay: rng.range(0, 15),
            rng: Rng::new(rng.next()),
        }
    }

    // Input.

    pub fn begin_input(&mut self) -> u32 {
        self.next_open += 1;
        self.open.push((self.next_open, vec![]));
        self.next_open
    }

    pub fn append(&mut self, p: usize, rec: Rec, txn: Option<u32>) {
        if let Some(touched) = txn.and_then(|t| self.open.iter_mut().find(|o| o.0 == t))
            && !touched.1.contains(&p)
        {
            touched.1.push(p);
        }
        let state = txn.map_or(State::Committed, State::Open);
        self.logs[p].entries.push(Entry { rec, state, at: self.now });
    }

    pub fn end_input(&mut self, index: usize, commit: bool) {
        let (txn, touched) = self.open.remove(index);
        for p in touched {
            for e in &mut self.logs[p].entries {
                if e.state == State::Open(txn) {
                    e.state = if commit { State::Committed } else { State::Aborted };
                }
            }
            let rec = Rec { ts: 0, key: 0, bad: false, filtered: false };
            self.logs[p].entries.push(Entry { rec, state: State::Marker, at: self.now });
        }
    }

    // Time.

    pub fn advance(&mut self, by: i64) {
        self.now += by;
        let before = self.members.len();
        let now = self.now;
        self.members.retain(|_, m| m.foreign || m.deadline >= now);
        if self.members.len() != before {
            self.rebalance();
        }
        for txn in self.txns.values_mut() {
            if let TxnState::Ongoing { since } = txn.state
                && now - since > self.txn_timeout
            {
                txn.epoch += 1;
                txn.state = TxnState::Prepared { commit: false, done: now };
            }
        }
        self.settle();
    }

    /// Writes the markers that are due: what is committed becomes visible.
    fn settle(&mut self) {
        for txn in self.txns.values_mut() {
            let TxnState::Prepared { commit, done } = txn.state else { continue };
            if done > self.now {
                continue;
            }
            let (out, offsets) = (std::mem::take(&mut txn.out), std::mem::take(&mut txn.offsets));
            txn.state = TxnState::Complete { commit };
            if commit {
                self.output.extend(out);
                self.offsets.extend(offsets);
            }
        }
    }

    fn marker_at(&mut self) -> i64 {
        self.now + self.rng.range(0, self.marker_delay)
    }

    // Group.

    fn rebalance(&mut self) {
        self.generation += 1;
        self.broken = self.members.values().any(|m| m.foreign);
        let ids: Vec<u32> = self.members.keys().copied().collect();
        let single = self.units == 1;
        for (unit, owner) in self.owners.iter_mut().enumerate() {
            *owner = match *owner {
                _ if ids.is_empty() => None,
                Some(held) if single && ids.contains(&held) => Some(held),
                _ if single => Some(ids[0]),
                _ => Some(ids[(unit + self.generation as usize) % ids.len()]),
            };
        }
    }

    pub fn join(&mut self, foreign: bool) -> u32 {
        self.next_member += 1;
        self.members.insert(self.next_member, Member { deadline: self.now + self.session, foreign });
        self.rebalance();
        self.next_member
    }

    pub fn leave(&mut self, member: u32) {
        if self.members.remove(&member).is_some() {
            self.rebalance();
        }
    }

    /// The current generation, if the member is known.
    pub fn heartbeat(&mut self, member: u32) -> Option<i32> {
        let deadline = self.now + self.session;
        self.members.get_mut(&member).map(|m| m.deadline = deadline).map(|()| self.generation)
    }

    pub fn empty_group(&self) -> bool {
        self.members.is_empty()
    }

    fn check(&self, member: u32, generation: i32) -> Result<(), Refused> {
        if !self.members.contains_key(&member) {
            Err(Refused::UnknownMember)
        } else if self.generation != generation {
            Err(Refused::IllegalGeneration)
        } else {
            Ok(())
        }
    }

    // Transactions.

    pub fn init_producer(&mut self, unit: usize) -> Result<u32, Refused> {
        let done = self.marker_at();
        let txn = self.txns.entry(unit).or_insert(Txn {
            epoch: 0,
            state: TxnState::Empty,
            out: vec![],
            offsets: vec![],
        });
        match txn.state {
            TxnState::Ongoing { .. } => {
                txn.epoch += 1;
                txn.state = TxnState::Prepared { commit: false, done };
                self.settle();
                Err(Refused::Concurrent)
            }
            TxnState::Prepared { .. } => {
                self.settle();
                Err(Refused::Concurrent)
            }
            TxnState::Empty | TxnState::Complete { .. } => {
                txn.epoch += 1;
                txn.state = TxnState::Empty;
                Ok(txn.epoch)
            }
        }
    }

    fn ongoing(&mut self, unit: usize, epoch: u32) -> Result<&mut Txn, Refused> {
        let now = self.now;
        let txn = self.txns.get_mut(&unit).expect("a producer exists");
        if txn.epoch != epoch {
            return Err(Refused::Fenced);
        }
        match txn.state {
            TxnState::Prepared { .. } => Err(Refused::Concurrent),
            TxnState::Ongoing { .. } => Ok(txn),
            TxnState::Empty | TxnState::Complete { .. } => {
                txn.state = TxnState::Ongoing { since: now };
                Ok(txn)
            }
        }
    }

    pub fn produce(&mut self, unit: usize, epoch: u32, out: Out) -> Result<(), Refused> {
        self.ongoing(unit, epoch)?.out.push(out);
        Ok(())
    }

    /// TxnOffsetCommit. Without a generation the broker takes it, as Kafka does.
    pub fn txn_offsets(
        &mut self,
        unit: usize,
        epoch: u32,
        member: u32,
        generation: Option<i32>,
        offsets: &Offsets,
    ) -> Result<(), Refused> {
        if self.txns.get(&unit).is_none_or(|t| t.epoch != epoch) {
            return Err(Refused::Fenced);
        }
        if let Some(generation) = generation {
            self.check(member, generation)?;
        }
        self.ongoing(unit, epoch)?.offsets.extend_from_slice(offsets);
        Ok(())
    }

    pub fn end(&mut self, unit: usize, epoch: u32) -> Result<(), Refused> {
        let done = self.marker_at();
        let txn = self.txns.get_mut(&unit).expect("a producer exists");
        if txn.epoch != epoch {
            return Err(Refused::Fenced);
        }
        match txn.state {
            TxnState::Ongoing { .. } => {
                txn.state = TxnState::Prepared { commit: true, done };
                self.settle();
                Ok(())
            }
            TxnState::Prepared { commit: true, .. } | TxnState::Complete { commit: true } => Ok(()),
            _ => Err(Refused::InvalidState),
        }
    }

    pub fn commit(&mut self, member: u32, generation: i32, offsets: &Offsets) -> Result<(), Refused> {
        self.check(member, generation)?;
        self.offsets.extend(offsets.iter().cloned());
        Ok(())
    }

    pub fn offset_fetch(
        &self,
        partitions: &[u32],
        stable: bool,
    ) -> Result<BTreeMap<u32, Committed>, Refused> {
        let pending = self.txns.values().any(|t| {
            matches!(t.state, TxnState::Ongoing { .. } | TxnState::Prepared { .. })
                && t.offsets.iter().any(|o| partitions.contains(&o.0))
        });
        if stable && pending {
            return Err(Refused::Unstable);
        }
        Ok(partitions.iter().filter_map(|p| self.offsets.get(p).map(|c| (*p, c.clone()))).collect())
    }

    pub fn no_transactions(&self) -> bool {
        self.txns.values().all(|t| !matches!(t.state, TxnState::Ongoing { .. } | TxnState::Prepared { .. }))
    }

    pub fn no_pending_offsets(&self) -> bool {
        self.txns.values().all(|t| t.offsets.is_empty())
    }
}
