//! From what is committed to a start, or to a refusal.
//!
//! A job starts in one of two ways. *Fresh*: no partition has an offset, so it begins at the log's start and commits
//! these positions in a transaction before its first record. *Resumed*: every partition starts at its committed offset
//! with the watermark stored there. Anything between the two would lose or repeat records, and is refused with a reason
//! and a remedy; so is input that cannot be read again.

use datum_window::Watermark;

use crate::settings::Mode;
use crate::stored::{DecodeError, JobHash, Stored, TopicId};

/// What is known about one partition before the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionFacts {
    /// The partition.
    pub partition: u32,
    /// The group's committed offset and its metadata, if there is one.
    pub committed: Option<Committed>,
    /// The first offset the log still holds.
    pub log_start: i64,
    /// The log's end (its high watermark).
    pub high_watermark: i64,
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The offset.
    pub offset: i64,
    /// The text beside it; empty when there is none.
    pub metadata: String,
}

/// What the start is decided from.
#[derive(Clone, Debug)]
pub struct StartFacts {
    /// The topic's id now.
    pub topic: TopicId,
    /// How many partitions the topic has now.
    pub partition_count: u32,
    /// The partitions to start: all of them, or the one of a co-partitioned job.
    pub partitions: Vec<PartitionFacts>,
    /// The highest partition count stored with any of the group's offsets for the topic, those of other partitions of a
    /// co-partitioned job included; `None` when no state is stored.
    pub known_count: Option<u32>,
    /// Whether the input topic is compacted.
    pub compacted: bool,
    /// Whether the output holds panes, late or dead-letter records of this group (of this partition, when
    /// co-partitioned).
    pub output_exists: bool,
    /// The operator has said that offsets without state are meant: start at them.
    pub reset: bool,
}

/// How a job starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At these offsets with nothing stored; they must be committed before the first record.
    Fresh(Vec<(u32, i64)>),
    /// From stored state.
    Resumed {
        /// The partitions with state.
        stored: Vec<(u32, Stored)>,
        /// Partitions met for the first time, with the offset they start at.
        new: Vec<(u32, i64)>,
    },
}

/// Decides the start of a job with `mode` and `hash`.
///
/// # Errors
/// [`Refusal`], with its reason. The caller confirms its assignment by a heartbeat before it ends with one: a member that
/// no longer owns the partitions may have looked at another owner's half-done work.
pub fn decide(mode: Mode, hash: JobHash, facts: &StartFacts) -> Result<Start, Refusal> {
    if facts.compacted {
        return Err(Refusal::Compacted);
    }
    let mut stored = Vec::new();
    let mut bare = Vec::new();
    let mut without = Vec::new();
    for part in &facts.partitions {
        match &part.committed {
            None => without.push(part),
            Some(committed) => match Stored::from_text(committed.offset, &committed.metadata) {
                Ok(Some(state)) => stored.push((part, state)),
                Ok(None) => bare.push(part),
                Err(source) => return Err(Refusal::Unreadable { partition: part.partition, source }),
            },
        }
    }
    if !bare.is_empty() {
        return if facts.reset {
            Ok(fresh(facts))
        } else {
            Err(Refusal::OffsetsWithoutState { partitions: numbers(&bare) })
        };
    }
    // The state of a co-partitioned job is spread over its partitions: one that is new has none of its own.
    if let (Mode::CoPartitioned, Some(count)) = (mode, facts.known_count)
        && count != facts.partition_count
    {
        return Err(Refusal::PartitionCount { stored: count, found: facts.partition_count, mode });
    }
    if stored.is_empty() {
        return if facts.output_exists && !facts.reset {
            Err(Refusal::OutputWithoutOffsets)
        } else {
            Ok(fresh(facts))
        };
    }
    resume(mode, hash, facts, stored, &without)
}

fn fresh(facts: &StartFacts) -> Start {
    Start::Fresh(
        facts
            .partitions
            .iter()
            .map(|p| (p.partition, p.committed.as_ref().map_or(p.log_start, |c| c.offset.max(p.log_start))))
            .collect(),
    )
}

fn resume(
    mode: Mode,
    hash: JobHash,
    facts: &StartFacts,
    stored: Vec<(&PartitionFacts, Stored)>,
    without: &[&PartitionFacts],
) -> Result<Start, Refusal> {
    let count = stored.iter().map(|(_, s)| s.partitions).max().unwrap_or(0);
    let changed = if mode == Mode::CoPartitioned {
        count != facts.partition_count
    } else {
        count > facts.partition_count
    };
    for (part, state) in &stored {
        let partition = part.partition;
        if state.topic != facts.topic {
            return Err(Refusal::OtherTopic { stored: state.topic, found: facts.topic });
        }
        if state.mode != mode {
            return Err(Refusal::OtherMode { stored: state.mode, configured: mode });
        }
        if state.hash != hash && stored.iter().any(|(_, s)| s.low != s.position) {
            return Err(Refusal::OtherJob { stored: state.hash, configured: hash });
        }
        if changed {
            return Err(Refusal::PartitionCount { stored: count, found: facts.partition_count, mode });
        }
        if state.low < part.log_start {
            return Err(Refusal::Retention { partition, needed: state.low, log_start: part.log_start });
        }
        if state.position > part.high_watermark {
            return Err(Refusal::Truncated { partition, position: state.position, end: part.high_watermark });
        }
    }
    let missing: Vec<u32> = numbers(without).into_iter().filter(|p| *p < count).collect();
    if !missing.is_empty() {
        return Err(Refusal::OffsetsMissing { partitions: missing, count });
    }
    Ok(Start::Resumed {
        stored: stored.into_iter().map(|(part, state)| (part.partition, state)).collect(),
        new: without.iter().map(|part| (part.partition, part.log_start)).collect(),
    })
}

/// The highest E stored with any partition: the job's.
#[must_use]
pub fn published(stored: &[(u32, Stored)]) -> Watermark {
    stored.iter().map(|(_, s)| s.published).max().unwrap_or_default()
}

fn numbers(parts: &[&PartitionFacts]) -> Vec<u32> {
    parts.iter().map(|p| p.partition).collect()
}

/// Why a job does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Compaction removes records without leaving a gap to notice, so a replay would compute other panes.
    #[error(
        "the input topic is compacted and cannot be replayed; read a topic with cleanup.policy=delete, for example a \
         copy of it"
    )]
    Compacted,
    /// Committed by something else: an operator's reset, an auto-committing consumer in the same group.
    #[error(
        "the group's offsets of partitions {partitions:?} carry no state: an operator or another consumer set them; \
         start with --reset to begin at these offsets, or use another group"
    )]
    OffsetsWithoutState {
        /// The partitions.
        partitions: Vec<u32>,
    },
    /// The group's offsets have expired or were deleted.
    #[error(
        "the group has no offsets, yet the output holds its panes or side records; starting again would publish them \
         twice: start with --reset if that is meant, or use another group or output topic"
    )]
    OutputWithoutOffsets,
    /// Some offsets of a job that ran before are gone.
    #[error(
        "partitions {partitions:?} have no offset though the job has run with {count} partitions; reset the group's \
         offsets and start with --reset"
    )]
    OffsetsMissing {
        /// The partitions.
        partitions: Vec<u32>,
        /// The stored count.
        count: u32,
    },
    /// Metadata of ours that cannot be read.
    #[error("partition {partition}: {source}")]
    Unreadable {
        /// The partition.
        partition: u32,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The topic was deleted and created again.
    #[error(
        "the offsets belong to topic id {stored}, the topic is now {found}: it was recreated; reset the group's offsets \
         and start with --reset"
    )]
    OtherTopic {
        /// As stored.
        stored: TopicId,
        /// As it is.
        found: TopicId,
    },
    /// The ownership mode has changed.
    #[error(
        "the group's state was made in {stored} mode, the job runs in {configured} mode; use another group"
    )]
    OtherMode {
        /// As stored.
        stored: Mode,
        /// As configured.
        configured: Mode,
    },
    /// Windows or aggregates have changed while windows are open.
    #[error(
        "windows or aggregates have changed ({stored} to {configured}) while windows are open; let the old job end with \
         --stop-at-end --flush first, or use another group"
    )]
    OtherJob {
        /// As stored.
        stored: JobHash,
        /// As configured.
        configured: JobHash,
    },
    /// Partitions cannot disappear, and in co-partitioned mode none may appear: keys would move.
    #[error(
        "the job ran with {stored} partitions, the topic has {found}; a {mode} job cannot follow: let it end with \
         --stop-at-end --flush on a new topic, or use another group"
    )]
    PartitionCount {
        /// As stored.
        stored: u32,
        /// As it is.
        found: u32,
        /// The mode.
        mode: Mode,
    },
    /// Retention has deleted records that open windows need.
    #[error(
        "partition {partition}: open windows need records from offset {needed}, retention has deleted them up to \
         {log_start}; reset the group's offsets and start with --reset, and raise the topic's retention"
    )]
    Retention {
        /// The partition.
        partition: u32,
        /// The lowest offset needed.
        needed: i64,
        /// The lowest offset there is.
        log_start: i64,
    },
    /// The log has lost its end.
    #[error(
        "partition {partition}: records up to offset {position} were processed, the log ends at {end}: it was truncated; \
         reset the group's offsets and start with --reset"
    )]
    Truncated {
        /// The partition.
        partition: u32,
        /// The stored position.
        position: i64,
        /// The log's end.
        end: i64,
    },
}
