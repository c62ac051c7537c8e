//! The life of one transactional producer, without sockets or clocks: what may be called when, what each answer means.
//!
//! ```text
//! New ─init→ Ready ─begin→ Open ─commit→ Ready            any ─fenced / refused→ Ended
//!              ↑             │ failure
//!              └───abort── Broken                          Open, Broken ─outcome unknown→ Unknown ─init→ Ready
//! ```
//!
//! Two protocols: with version 1 the client names each partition and group to the transaction coordinator before it writes to them
//! (AddPartitionsToTxn, AddOffsetsToTxn). With version 2 (KIP-890) writing does that, and EndTxn's answer hands out the next producer
//! epoch, so that nothing late of one transaction can land in the next. Which one is chosen anew at each beginning and kept to
//! its end.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{AbortReason, TransactionError};
use crate::{TopicPartition, producer::ProducerIdentity, wire::ErrorCode};

/// Where a transactional producer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionPhase {
    /// It has no identity yet.
    New,
    /// Between transactions.
    Ready,
    /// In a transaction.
    Open,
    /// In a transaction that can only be aborted.
    Broken,
    /// The outcome of its last transaction is not known.
    Unknown,
    /// Fenced, or refused for good.
    Ended,
}

/// Which protocol a transaction keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionVersion {
    /// Partitions and groups are added by requests of their own.
    V1,
    /// Writing adds them, and each transaction has an epoch of its own (KIP-890).
    V2,
}

/// A request of the transaction's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// InitProducerId.
    Init,
    /// AddPartitionsToTxn.
    AddPartitions,
    /// AddOffsetsToTxn.
    AddOffsets,
    /// TxnOffsetCommit.
    CommitOffsets,
    /// EndTxn.
    End,
}

/// What an answer calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// It worked.
    Done,
    /// The same again, after this pause.
    Retry(Duration),
    /// The same again at whoever is the coordinator now.
    Lookup,
    /// The transaction can only be aborted.
    Abort,
    /// The group has another generation; the transaction goes on.
    Generation,
    /// A newer producer has taken over.
    Fenced,
    /// Nothing can be done any more.
    End,
}

impl Step {
    /// The request's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Init => "InitProducerId",
            Self::AddPartitions => "AddPartitionsToTxn",
            Self::AddOffsets => "AddOffsetsToTxn",
            Self::CommitOffsets => "TxnOffsetCommit",
            Self::End => "EndTxn",
        }
    }

    /// What an answer's code calls for. `chance` is any number; it spreads the pauses of those who wait for the same thing.
    pub fn react(self, code: ErrorCode, chance: u64) -> Reaction {
        match code {
            ErrorCode::None => Reaction::Done,
            // The transaction before is still being completed. That takes a moment, and everybody waits for the markers.
            ErrorCode::ConcurrentTransactions => Reaction::Retry(Duration::from_millis(5 + chance % 16)),
            ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => Reaction::Lookup,
            ErrorCode::InvalidProducerEpoch
            | ErrorCode::ProducerFenced
            | ErrorCode::TransactionCoordinatorFenced => Reaction::Fenced,
            ErrorCode::IllegalGeneration
            | ErrorCode::UnknownMemberId
            | ErrorCode::FencedInstanceId
            | ErrorCode::RebalanceInProgress
            | ErrorCode::StaleMemberEpoch
            | ErrorCode::FencedMemberEpoch
                if self == Self::CommitOffsets =>
            {
                Reaction::Generation
            }
            code if code.is_retriable() => Reaction::Retry(Duration::from_millis(100 + chance % 100)),
            ErrorCode::TransactionalIdAuthorizationFailed
            | ErrorCode::InvalidTxnState
            | ErrorCode::InvalidTransactionTimeout
            | ErrorCode::UnsupportedVersion
            | ErrorCode::ClusterAuthorizationFailed => Reaction::End,
            _ if self == Self::Init => Reaction::End,
            _ => Reaction::Abort,
        }
    }
}

/// The state of one transactional producer.
#[derive(Debug)]
pub struct TransactionState {
    id: Arc<str>,
    phase: TransactionPhase,
    version: TransactionVersion,
    identity: Option<ProducerIdentity>,
    partitions: BTreeSet<TopicPartition>,
    groups: BTreeSet<Arc<str>>,
}

impl TransactionState {
    /// A producer without identity.
    pub fn new(id: Arc<str>) -> Self {
        Self {
            id,
            phase: TransactionPhase::New,
            version: TransactionVersion::V1,
            identity: None,
            partitions: BTreeSet::new(),
            groups: BTreeSet::new(),
        }
    }

    /// Where it stands.
    pub fn phase(&self) -> TransactionPhase {
        self.phase
    }

    /// The protocol of the present transaction.
    pub fn version(&self) -> TransactionVersion {
        self.version
    }

    /// The identity, once it has one.
    pub fn identity(&self) -> Option<ProducerIdentity> {
        self.identity
    }

    /// May the producer be (re-)initialised? Not within a transaction, and not after it was fenced.
    pub fn check_init(&self) -> Result<(), TransactionError> {
        match self.phase {
            TransactionPhase::New | TransactionPhase::Ready | TransactionPhase::Unknown => Ok(()),
            TransactionPhase::Open | TransactionPhase::Broken => {
                Err(self.misuse("init", "commit or abort the transaction first"))
            }
            TransactionPhase::Ended => Err(self.misuse("init", "make a new producer")),
        }
    }

    /// The coordinator gave an identity.
    pub fn initialised(&mut self, identity: ProducerIdentity) {
        self.identity = Some(identity);
        self.phase = TransactionPhase::Ready;
        self.partitions.clear();
        self.groups.clear();
    }

    /// Begins a transaction that keeps to `version`.
    pub fn begin(&mut self, version: TransactionVersion) -> Result<(), TransactionError> {
        if self.phase != TransactionPhase::Ready {
            return Err(self.misuse("begin", "init first, and end the transaction before"));
        }
        self.version = version;
        self.phase = TransactionPhase::Open;
        self.partitions.clear();
        self.groups.clear();
        Ok(())
    }

    /// Is a transaction open that can still be committed?
    pub fn check_open(&self, call: &'static str) -> Result<ProducerIdentity, TransactionError> {
        match (self.phase, self.identity) {
            (TransactionPhase::Open, Some(identity)) => Ok(identity),
            (TransactionPhase::Broken, _) => Err(self.abortable(AbortReason::Earlier)),
            _ => Err(self.misuse(call, "begin a transaction first")),
        }
    }

    /// Whether a partition has to be added by a request before it is written to.
    pub fn must_add(&self, partition: &TopicPartition) -> bool {
        self.version == TransactionVersion::V1 && !self.partitions.contains(partition)
    }

    /// Whether a group has to be added by a request before offsets are sent.
    pub fn must_add_group(&self, group: &Arc<str>) -> bool {
        self.version == TransactionVersion::V1 && !self.groups.contains(group)
    }

    /// A partition is, or may be, part of the transaction.
    pub fn added(&mut self, partition: TopicPartition) {
        self.partitions.insert(partition);
    }

    /// A group is, or may be, part of the transaction.
    pub fn added_group(&mut self, group: Arc<str>) {
        self.groups.insert(group);
    }

    /// Whether there is something for EndTxn to end.
    pub fn has_content(&self) -> bool {
        !self.partitions.is_empty() || !self.groups.is_empty()
    }

    /// The transaction can only be aborted from here on.
    pub fn broken(&mut self, why: AbortReason) -> TransactionError {
        // An end that was refused has certainly not happened.
        if matches!(self.phase, TransactionPhase::Open | TransactionPhase::Unknown) {
            self.phase = TransactionPhase::Broken;
        }
        self.abortable(why)
    }

    /// The transaction has ended; a new identity may have come with that.
    pub fn ended(&mut self, next: Option<ProducerIdentity>) {
        self.identity = next.or(self.identity);
        self.phase = TransactionPhase::Ready;
        self.partitions.clear();
        self.groups.clear();
    }

    /// Whether it has ended is not known.
    pub fn unknown(&mut self, commit: bool, after: Duration) -> TransactionError {
        self.phase = TransactionPhase::Unknown;
        TransactionError::OutcomeUnknown { id: self.id.clone(), commit, after }
    }

    /// A newer producer has taken over.
    pub fn fenced(&mut self) -> TransactionError {
        self.phase = TransactionPhase::Ended;
        TransactionError::Fenced { id: self.id.clone() }
    }

    /// Nothing can be done any more.
    pub fn refused(&mut self, step: Step, code: ErrorCode) -> TransactionError {
        self.phase = TransactionPhase::Ended;
        TransactionError::Refused { id: self.id.clone(), request: step.name(), code }
    }

    pub(super) fn misuse(&self, call: &'static str, remedy: &'static str) -> TransactionError {
        TransactionError::Misuse { call, phase: self.phase, remedy }
    }

    fn abortable(&self, why: AbortReason) -> TransactionError {
        TransactionError::Abortable { id: self.id.clone(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> TransactionState {
        let mut state = TransactionState::new("tx".into());
        state.initialised(ProducerIdentity { id: 1, epoch: 0 });
        state
    }

    #[test]
    fn calls_at_the_wrong_time_say_what_to_do() {
        let mut state = TransactionState::new("tx".into());
        assert!(matches!(state.begin(TransactionVersion::V1), Err(TransactionError::Misuse { .. })));
        state.initialised(ProducerIdentity { id: 1, epoch: 0 });
        assert!(matches!(state.check_open("commit"), Err(TransactionError::Misuse { .. })));
        state.begin(TransactionVersion::V1).unwrap();
        assert!(matches!(state.check_init(), Err(TransactionError::Misuse { .. })));
        state.broken(AbortReason::Earlier);
        assert!(matches!(state.check_open("commit"), Err(TransactionError::Abortable { .. })));
    }

    #[test]
    fn version_1_adds_each_partition_and_group_once_and_version_2_never() {
        let mut state = ready();
        let (tp, group): (_, Arc<str>) = (TopicPartition::new("t", 0), "g".into());
        state.begin(TransactionVersion::V1).unwrap();
        assert!(state.must_add(&tp) && state.must_add_group(&group) && !state.has_content());
        state.added(tp.clone());
        state.added_group(group.clone());
        assert!(!state.must_add(&tp) && !state.must_add_group(&group) && state.has_content());
        state.ended(None);
        state.begin(TransactionVersion::V1).unwrap();
        assert!(state.must_add(&tp), "a new transaction starts empty");
        state.ended(None);
        state.begin(TransactionVersion::V2).unwrap();
        assert!(!state.must_add(&tp) && !state.must_add_group(&group));
    }

    #[test]
    fn the_end_of_a_transaction_may_hand_out_another_producer_id() {
        let mut state = ready();
        state.begin(TransactionVersion::V2).unwrap();
        state.ended(Some(ProducerIdentity { id: 2, epoch: 0 }));
        assert_eq!(state.identity(), Some(ProducerIdentity { id: 2, epoch: 0 }));
    }

    #[test]
    fn a_fenced_producer_never_initialises_itself_again() {
        let mut state = ready();
        assert!(matches!(state.fenced(), TransactionError::Fenced { .. }));
        assert!(state.check_init().is_err() && state.begin(TransactionVersion::V2).is_err());
    }

    #[test]
    fn each_answer_has_its_reaction() {
        use Reaction::{Abort, Done, End, Fenced, Generation, Lookup, Retry};
        for chance in 0..100 {
            let Retry(pause) = Step::AddOffsets.react(ErrorCode::ConcurrentTransactions, chance) else {
                panic!()
            };
            assert!((5..=20).contains(&pause.as_millis()), "{pause:?}");
        }
        let all = [Step::Init, Step::AddPartitions, Step::AddOffsets, Step::CommitOffsets, Step::End];
        for step in all {
            assert_eq!(step.react(ErrorCode::None, 0), Done);
            assert_eq!(step.react(ErrorCode::NotCoordinator, 0), Lookup);
            assert_eq!(step.react(ErrorCode::ProducerFenced, 0), Fenced);
            assert_eq!(step.react(ErrorCode::InvalidProducerEpoch, 0), Fenced);
            assert_eq!(step.react(ErrorCode::InvalidTxnState, 0), End);
            assert_eq!(step.react(ErrorCode::TransactionalIdAuthorizationFailed, 0), End);
            assert!(matches!(step.react(ErrorCode::CoordinatorLoadInProgress, 0), Retry(_)));
        }
        assert_eq!(Step::CommitOffsets.react(ErrorCode::IllegalGeneration, 0), Generation);
        assert_eq!(Step::CommitOffsets.react(ErrorCode::UnknownMemberId, 0), Generation);
        assert_eq!(Step::CommitOffsets.react(ErrorCode::OffsetMetadataTooLarge, 0), Abort);
        assert_eq!(Step::AddPartitions.react(ErrorCode::TopicAuthorizationFailed, 0), Abort);
        assert_eq!(Step::End.react(ErrorCode::TransactionAbortable, 0), Abort);
        assert_eq!(Step::AddPartitions.react(ErrorCode::InvalidProducerIdMapping, 0), Abort);
        assert_eq!(Step::Init.react(ErrorCode::InvalidTransactionTimeout, 0), End);
    }
}
