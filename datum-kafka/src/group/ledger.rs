//! What may be committed: per partition the end of the unbroken run of acknowledged records.
//!
//! Records are noted as they are emitted, in order; acknowledgements come in any order. The offset to commit is the first that is not
//! acknowledged, so that a restart repeats it. A partition is open from its assignment to the end of its drain (or its loss); each
//! assignment has an epoch, and what refers to an older epoch has no effect: an acknowledgement that comes late, or the
//! answer to a commit sent before a partition went and came back.
//!
//! What nobody can acknowledge any more, since all that held it is gone, is *abandoned*: no drain waits for it, and the offset to commit stays
//! before it. So a stream that fails leaves at once, and what it had not finished is delivered again.
//!
//! Transactions that commit offsets of the member *claim* them first ([`Ledger::claim`]); what they have committed is clean, and what they
//! hold is committed by nobody else.
//!
//! A pure book-keeper without clock or lock; [`Group`](super::Group) holds it under one lock together with the moment of sending, so that
//! no offset of a partition leaves after that partition was closed.
//!
//! Costs: a span per emitted run of records, 32 bytes each; runs that are acknowledged in order are dropped at once.

use std::collections::{BTreeMap, VecDeque};

use super::{CommitOffset, Offsets};
use crate::TopicPartition;

/// What was sent in one commit, by partition with the epoch it was sent under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent(BTreeMap<TopicPartition, (u64, i64)>);

/// The book of one member.
#[derive(Debug, Default)]
pub struct Ledger {
    partitions: BTreeMap<TopicPartition, Entry>,
    /// Whether transactions commit this member's offsets.
    transactional: bool,
}

#[derive(Debug)]
struct Entry {
    epoch: u64,
    /// Emitted runs in order, the first one unacknowledged (or the queue empty).
    spans: VecDeque<Span>,
    /// Where the unbroken run of acknowledged records ends.
    upto: Option<Mark>,
    /// What the coordinator has acknowledged in this epoch.
    committed: Option<i64>,
    claim: Claim,
}

/// Whether a transaction has taken a partition's offset over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    None,
    /// A transaction is under way with it.
    Held,
    /// A transaction failed with it, and may yet turn out to be committed.
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    first: i64,
    next: i64,
    leader_epoch: i32,
    fate: Fate,
}

/// What is known of an emitted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Somebody has it.
    Open,
    Acked,
    /// Nobody has it any more, so nobody will acknowledge it.
    Abandoned,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    offset: i64,
    leader_epoch: i32,
}

impl Ledger {
    /// An empty book.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a partition under an assignment epoch; whatever was noted under an older one is dropped.
    pub fn open(&mut self, partition: TopicPartition, epoch: u64) {
        self.partitions.insert(
            partition,
            Entry { epoch, spans: VecDeque::new(), upto: None, committed: None, claim: Claim::None },
        );
    }

    /// Closes a partition: nothing of it is committed from here on.
    pub fn close(&mut self, partition: &TopicPartition) {
        self.partitions.remove(partition);
    }

    /// Whether acknowledgements under this epoch still count.
    pub fn is_open(&self, partition: &TopicPartition, epoch: u64) -> bool {
        self.partitions.get(partition).is_some_and(|entry| entry.epoch == epoch)
    }

    /// Notes records `first..next` as emitted. Offsets must ascend within an epoch; a run that does not is ignored.
    pub fn emitted(
        &mut self,
        partition: &TopicPartition,
        epoch: u64,
        first: i64,
        next: i64,
        leader_epoch: i32,
    ) {
        let Some(entry) = self.entry(partition, epoch) else { return };
        let last = entry.spans.back().map(|span| span.next).or(entry.upto.map(|mark| mark.offset));
        if next > first && last.is_none_or(|last| first >= last) {
            entry.spans.push_back(Span { first, next, leader_epoch, fate: Fate::Open });
        }
    }

    /// Acknowledges the run that begins at `first`. False if nothing changed: unknown, acknowledged before, or of a closed epoch.
    pub fn acked(&mut self, partition: &TopicPartition, epoch: u64, first: i64) -> bool {
        let Some(entry) = self.entry(partition, epoch) else { return false };
        let Ok(at) = entry.spans.binary_search_by_key(&first, |span| span.first) else { return false };
        let span = &mut entry.spans[at];
        let changed = std::mem::replace(&mut span.fate, Fate::Acked) != Fate::Acked;
        entry.settle();
        changed
    }

    /// Acknowledges everything below `next`, whether it was noted as emitted or not: for callers that process in order and may drop
    /// records on the way.
    pub fn acked_through(
        &mut self,
        partition: &TopicPartition,
        epoch: u64,
        next: i64,
        leader_epoch: i32,
    ) -> bool {
        let Some(entry) = self.entry(partition, epoch) else { return false };
        if entry.upto.is_some_and(|mark| mark.offset >= next) {
            return false;
        }
        while entry.spans.front().is_some_and(|span| span.first < next) {
            if let Some(span) = entry.spans.front_mut()
                && span.next > next
            {
                span.first = next;
                break;
            }
            entry.spans.pop_front();
        }
        entry.upto = Some(Mark { offset: next, leader_epoch });
        entry.settle();
        true
    }

    /// Takes back the run that begins at `first` and those after it: nobody has seen them, and nobody will acknowledge them.
    pub fn withdrawn(&mut self, partition: &TopicPartition, epoch: u64, first: i64) {
        let Some(entry) = self.entry(partition, epoch) else { return };
        let kept = entry.spans.partition_point(|span| span.first < first);
        entry.spans.truncate(kept);
    }

    /// Nobody holds the runs within `first..next` any more: what of them is not acknowledged never will be. It is not waited for, and nothing
    /// behind it is committed.
    pub fn abandoned(&mut self, partition: &TopicPartition, epoch: u64, first: i64, next: i64) {
        let Some(entry) = self.entry(partition, epoch) else { return };
        let from = entry.spans.partition_point(|span| span.first < first);
        for span in entry.spans.range_mut(from..).take_while(|span| span.next <= next) {
            if span.fate == Fate::Open {
                span.fate = Fate::Abandoned;
            }
        }
    }

    /// How many emitted runs of a partition may still be acknowledged. A transaction that is under way with its offset counts as one.
    pub fn outstanding(&self, partition: &TopicPartition) -> usize {
        self.partitions
            .get(partition)
            .map_or(0, |entry| entry.open().count() + usize::from(entry.claim == Claim::Held))
    }

    /// What has been acknowledged and not committed, for all partitions or for some: what a plain commit is to carry.
    ///
    /// Once a transaction has [claimed](Self::claim) offsets of this member that is nothing, but for partitions named that no transaction
    /// has anything to do with any more: a plain commit that arrived while a transaction holds the offset of its
    /// partition would win over it, and what the transaction wrote would be written again after a restart.
    pub fn dirty(&self, only: Option<&[TopicPartition]>) -> (Offsets, Sent) {
        let mut sent = Sent::default();
        let mut offsets = Offsets::new();
        for (partition, entry) in &self.partitions {
            let Some(mark) = entry.upto else { continue };
            let wanted = match only {
                None => !self.transactional,
                Some(only) => only.contains(partition) && (!self.transactional || entry.is_plain()),
            };
            if wanted && entry.committed.is_none_or(|committed| mark.offset > committed) {
                let offset = CommitOffset::new(mark.offset).leader_epoch(mark.leader_epoch);
                offsets.insert(partition.clone(), offset);
                sent.0.insert(partition.clone(), (entry.epoch, mark.offset));
            }
        }
        (offsets, sent)
    }

    /// Whether there is something to commit.
    pub fn is_dirty(&self) -> bool {
        self.partitions.values().any(|entry| {
            entry.upto.is_some_and(|mark| entry.committed.is_none_or(|committed| mark.offset > committed))
        })
    }

    /// Takes offsets over into a transaction: of each partition in `taken` the offset before which everything is done, of all others what is
    /// acknowledged and not committed. From then on offsets of this member are committed by transactions.
    ///
    /// Returns what the transaction has to commit, and the claim to hand to [`claim_committed`](Self::claim_committed) or
    /// [`claim_failed`](Self::claim_failed) when its outcome is known. Drains wait for that.
    ///
    /// # Errors
    /// The first partition that is not open under the epoch given; nothing is claimed then.
    pub fn claim(
        &mut self,
        taken: &BTreeMap<TopicPartition, (u64, i64)>,
    ) -> Result<(Offsets, Sent), TopicPartition> {
        if let Some((partition, _)) =
            taken.iter().find(|(partition, (epoch, _))| !self.is_open(partition, *epoch))
        {
            return Err(partition.clone());
        }
        self.transactional = true;
        let (mut offsets, mut sent) = (Offsets::new(), Sent::default());
        for (partition, entry) in &mut self.partitions {
            let Some(mark) = entry.mark_after(taken.get(partition).map(|(_, next)| *next)) else { continue };
            if entry.committed.is_none_or(|committed| mark.offset > committed) {
                entry.claim = Claim::Held;
                let offset = CommitOffset::new(mark.offset).leader_epoch(mark.leader_epoch);
                offsets.insert(partition.clone(), offset);
                sent.0.insert(partition.clone(), (entry.epoch, mark.offset));
            }
        }
        Ok((offsets, sent))
    }

    /// Whether every partition of a claim is still open as it was.
    pub fn holds(&self, claim: &Sent) -> bool {
        claim.0.iter().all(|(partition, (epoch, _))| self.is_open(partition, *epoch))
    }

    /// A transaction has committed its claim: everything below its offsets is acknowledged and committed.
    pub fn claim_committed(&mut self, claim: &Sent) {
        for (partition, (epoch, offset)) in &claim.0 {
            let Some(entry) = self.entry(partition, *epoch) else { continue };
            entry.claim = Claim::None;
            if let Some(mark) = entry.mark_after(Some(*offset)) {
                entry.upto = Some(mark);
                entry.spans.retain(|span| span.next > mark.offset);
            }
        }
        self.committed(claim);
    }

    /// A transaction with this claim has failed. Its offsets stay where they are and are not committed plainly in this epoch, since the
    /// transaction may yet turn out to be committed; the next assignment finds out.
    pub fn claim_failed(&mut self, claim: &Sent) {
        for (partition, (epoch, _)) in &claim.0 {
            if let Some(entry) = self.entry(partition, *epoch) {
                entry.claim = Claim::Failed;
            }
        }
    }

    /// A commit was acknowledged by the coordinator.
    pub fn committed(&mut self, sent: &Sent) {
        for (partition, (epoch, offset)) in &sent.0 {
            if let Some(entry) = self.entry(partition, *epoch) {
                entry.committed = entry.committed.max(Some(*offset));
            }
        }
    }

    fn entry(&mut self, partition: &TopicPartition, epoch: u64) -> Option<&mut Entry> {
        self.partitions.get_mut(partition).filter(|entry| entry.epoch == epoch)
    }
}

impl Entry {
    fn open(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(|span| span.fate == Fate::Open)
    }

    /// Whether no transaction has the partition's offset, nor will have it with what was emitted so far.
    fn is_plain(&self) -> bool {
        self.claim == Claim::None && self.open().next().is_none()
    }

    /// Where the mark would be if everything below `next` were acknowledged.
    fn mark_after(&self, next: Option<i64>) -> Option<Mark> {
        let mut mark = self.upto;
        if let Some(offset) = next.filter(|next| mark.is_none_or(|mark| mark.offset < *next)) {
            let last = self.spans.iter().take_while(|span| span.first < offset).last();
            mark = Some(Mark { offset, leader_epoch: last.map_or(-1, |span| span.leader_epoch) });
        }
        let from = mark?;
        let behind = self.spans.iter().skip_while(|span| span.next <= from.offset);
        let done = behind.take_while(|span| span.fate == Fate::Acked).last();
        done.map(|span| Mark { offset: span.next, leader_epoch: span.leader_epoch }).or(mark)
    }

    /// Moves the mark over what is acknowledged at the front.
    fn settle(&mut self) {
        while let Some(span) = self.spans.front().copied().filter(|span| span.fate == Fate::Acked) {
            self.upto = Some(Mark { offset: span.next, leader_epoch: span.leader_epoch });
            self.spans.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn tp(partition: i32) -> TopicPartition {
        TopicPartition::new("t", partition)
    }

    fn offset(ledger: &Ledger, partition: i32) -> Option<i64> {
        ledger.dirty(None).0.get(&tp(partition)).map(|commit| commit.offset)
    }

    #[test]
    fn the_first_unacknowledged_record_holds_everything_behind_it() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 1);
        for first in [10, 11, 15] {
            ledger.emitted(&tp(0), 1, first, first + 1, 3);
        }
        assert!(ledger.acked(&tp(0), 1, 11) && ledger.acked(&tp(0), 1, 15));
        assert_eq!(offset(&ledger, 0), None);
        assert!(ledger.acked(&tp(0), 1, 10));
        assert_eq!(ledger.dirty(None).0[&tp(0)], CommitOffset::new(16).leader_epoch(3));
        assert!(!ledger.acked(&tp(0), 1, 10), "a second acknowledgement changes nothing");
    }

    #[test]
    fn what_nobody_has_seen_is_taken_back_and_not_waited_for() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 1);
        for first in 10..20 {
            ledger.emitted(&tp(0), 1, first, first + 1, 3);
        }
        ledger.withdrawn(&tp(0), 2, 10);
        ledger.withdrawn(&tp(0), 1, 12);
        assert_eq!(ledger.outstanding(&tp(0)), 2);
        assert!(!ledger.acked(&tp(0), 1, 12));
        assert!(ledger.acked(&tp(0), 1, 11) && ledger.acked(&tp(0), 1, 10));
        assert_eq!((ledger.outstanding(&tp(0)), offset(&ledger, 0)), (0, Some(12)));
    }

    #[test]
    fn what_was_dropped_is_not_waited_for_and_holds_back_what_is_behind_it() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 1);
        for first in 10..16 {
            ledger.emitted(&tp(0), 1, first, first + 1, 3);
        }
        assert!(ledger.acked(&tp(0), 1, 10) && ledger.acked(&tp(0), 1, 12));
        ledger.abandoned(&tp(0), 2, 10, 16);
        assert_eq!(ledger.outstanding(&tp(0)), 4, "of another assignment");
        ledger.abandoned(&tp(0), 1, 10, 14);
        assert_eq!((ledger.outstanding(&tp(0)), offset(&ledger, 0)), (2, Some(11)));
        assert!(ledger.acked(&tp(0), 1, 14) && ledger.acked(&tp(0), 1, 15));
        assert_eq!((ledger.outstanding(&tp(0)), offset(&ledger, 0)), (0, Some(11)));
    }

    /// An acknowledgement that arrives just after the partition was revoked, and then the commit timer.
    #[test]
    fn a_late_acknowledgement_of_a_closed_partition_is_never_committed() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 1);
        ledger.emitted(&tp(0), 1, 0, 10, 0);
        ledger.close(&tp(0));
        assert!(!ledger.acked(&tp(0), 1, 0));
        assert!(ledger.dirty(None).0.is_empty());
        ledger.open(tp(0), 2);
        assert!(!ledger.acked(&tp(0), 1, 0), "nor after it came back under another epoch");
        assert!(ledger.dirty(None).0.is_empty());
    }

    /// Two topics, one partition revoked, acknowledgements outstanding for both.
    #[test]
    fn closing_one_partition_leaves_the_other_alone() {
        let mut ledger = Ledger::new();
        let other = TopicPartition::new("u", 0);
        ledger.open(tp(0), 1);
        ledger.open(other.clone(), 1);
        ledger.emitted(&tp(0), 1, 0, 5, 0);
        ledger.emitted(&other, 1, 0, 7, 0);
        ledger.close(&tp(0));
        assert!(!ledger.acked(&tp(0), 1, 0) && ledger.acked(&other, 1, 0));
        let (offsets, _) = ledger.dirty(None);
        assert_eq!(offsets.keys().collect::<Vec<_>>(), [&other]);
    }

    #[test]
    fn never_commits_lower_than_acknowledged_in_the_same_epoch() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 1);
        assert!(ledger.acked_through(&tp(0), 1, 20, 0));
        let (_, late) = ledger.dirty(None);
        assert!(ledger.acked_through(&tp(0), 1, 30, 0));
        let (_, newer) = ledger.dirty(None);
        ledger.committed(&newer);
        ledger.committed(&late);
        assert!(!ledger.is_dirty());
        assert!(!ledger.acked_through(&tp(0), 1, 25, 0));
        assert!(ledger.dirty(None).0.is_empty());
    }

    fn taken(epoch: u64, next: i64) -> BTreeMap<TopicPartition, (u64, i64)> {
        BTreeMap::from([(tp(0), (epoch, next))])
    }

    /// Of six records the second and the fifth are written in transactions, the others filtered out.
    #[test]
    fn what_a_transaction_has_committed_is_clean_and_what_it_holds_is_nobody_elses() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 1);
        for first in 10..16 {
            ledger.emitted(&tp(0), 1, first, first + 1, 3);
        }
        for filtered in [10, 12, 13, 15] {
            assert!(ledger.acked(&tp(0), 1, filtered));
        }
        let (offsets, claim) = ledger.claim(&taken(1, 12)).unwrap();
        assert_eq!(
            offsets[&tp(0)],
            CommitOffset::new(14).leader_epoch(3),
            "with what was filtered out behind it"
        );
        assert_eq!(ledger.outstanding(&tp(0)), 3, "two records and the transaction");
        assert!(ledger.dirty(None).0.is_empty() && ledger.dirty(Some(&[tp(0)])).0.is_empty());
        ledger.claim_committed(&claim);
        assert_eq!(ledger.outstanding(&tp(0)), 1);
        assert!(!ledger.is_dirty(), "committed is clean");
        let (offsets, claim) = ledger.claim(&taken(1, 15)).unwrap();
        assert_eq!(offsets[&tp(0)].offset, 16);
        ledger.claim_committed(&claim);
        assert!(!ledger.is_dirty() && ledger.outstanding(&tp(0)) == 0);
        // What is filtered out behind the last transaction goes into the next, or is committed when nothing else is left.
        ledger.emitted(&tp(0), 1, 16, 17, 3);
        assert!(ledger.acked(&tp(0), 1, 16) && ledger.is_dirty());
        assert!(ledger.dirty(None).0.is_empty());
        assert_eq!(ledger.dirty(Some(&[tp(0)])).0[&tp(0)].offset, 17);
        assert_eq!(ledger.claim(&BTreeMap::new()).unwrap().0[&tp(0)].offset, 17);
    }

    #[test]
    fn a_claim_of_another_assignment_is_refused_and_a_failed_one_is_committed_by_nobody() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 2);
        ledger.emitted(&tp(0), 2, 0, 5, 0);
        assert_eq!(ledger.claim(&taken(1, 5)), Err(tp(0)));
        let (_, claim) = ledger.claim(&taken(2, 5)).unwrap();
        assert!(ledger.holds(&claim));
        ledger.claim_failed(&claim);
        ledger.abandoned(&tp(0), 2, 0, 5);
        assert_eq!(ledger.outstanding(&tp(0)), 0, "nothing is waited for");
        assert!(ledger.dirty(Some(&[tp(0)])).0.is_empty());
        ledger.close(&tp(0));
        assert!(!ledger.holds(&claim));
        ledger.claim_committed(&claim);
    }

    #[test]
    fn a_refused_commit_leaves_its_partitions_dirty() {
        let mut ledger = Ledger::new();
        ledger.open(tp(0), 1);
        ledger.acked_through(&tp(0), 1, 20, 0);
        let (first, _refused) = ledger.dirty(None);
        assert_eq!(ledger.dirty(None).0, first);
    }

    proptest! {
        #[test]
        fn the_mark_is_the_end_of_the_unbroken_prefix(
            lengths in prop::collection::vec(1i64..5, 1..40),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let mut ledger = Ledger::new();
            ledger.open(tp(0), 1);
            let mut starts = vec![100];
            for length in &lengths {
                let first = *starts.last().unwrap();
                ledger.emitted(&tp(0), 1, first, first + length, 0);
                starts.push(first + length);
            }
            let mut acked = BTreeSet::new();
            for index in order {
                let at = index.index(lengths.len());
                prop_assert_eq!(ledger.acked(&tp(0), 1, starts[at]), acked.insert(at));
                let prefix = (0..).take_while(|i| acked.contains(i)).count();
                prop_assert_eq!(offset(&ledger, 0), (prefix > 0).then(|| starts[prefix]));
                prop_assert_eq!(ledger.outstanding(&tp(0)), lengths.len() - acked.len());
            }
        }
    }
}
