//! Broken environments: each takes one rule away from the outside, by changing what is stored, told or checked. The
//! oracle must see every one of them; the product has no switch for any.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// W is not stored: replay starts with the watermark at E.
    WatermarkFromPublished,
    /// A commit made during replay stores the position instead of the restored P.
    PositionForgets,
    /// P is not restored: a replay routes again.
    ReplayRoutes,
    /// The horizon's steps are not stored.
    StepsForgotten,
    /// The next offset to read is committed instead of the lowest one needed.
    LowIsPosition,
    /// Idleness is proved by the last stable offset.
    StableOffsetProves,
    /// An old answer proves idleness.
    StaleAnswers,
    /// TxnOffsetCommit without member and generation.
    NoGeneration,
    /// OffsetFetch does not wait for pending offsets, and comes before InitProducerId.
    UnstableOffsets,
    /// A fenced owner makes a new producer at once.
    NoNewAssignment,
    /// Offsets without state are taken for an operator's reset.
    ResetUnasked,
    /// Only panes tell that the job ran before.
    PanesOnly,
    /// A refusal is not confirmed by a heartbeat.
    RefusesUnconfirmed,
}
