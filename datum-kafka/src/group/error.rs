//! Why a member's place in a group ended.

use std::time::Duration;

use thiserror::Error;

use super::Refusal;
use crate::wire::ErrorCode;

/// Why a member's place in a group ended for good. Nothing of it is retried: each needs a change by a person, or a fresh start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// Another process joined with the same `group.instance.id`. Rejoining would only throw that one out in turn.
    #[error(
        "group `{group}`: another member has taken over instance id `{instance}`; give each process an instance id of its own"
    )]
    Fenced {
        /// The group.
        group: String,
        /// The instance id both use.
        instance: String,
    },
    /// The members share no assignor.
    #[error(
        "group `{group}` does not take this member, since no assignor is common to all (this one offers {offered:?}); offer \
         one that the running members use, or stop them first"
    )]
    NoCommonAssignor {
        /// The group.
        group: String,
        /// What this member offered.
        offered: Vec<String>,
    },
    /// The session timeout is outside the broker's limits.
    #[error(
        "group `{group}`: the broker refuses a session timeout of {timeout:?}; keep it between its group.min.session.timeout.ms \
         and group.max.session.timeout.ms"
    )]
    SessionTimeout {
        /// The group.
        group: String,
        /// What was asked for.
        timeout: Duration,
    },
    /// The group is full.
    #[error("group `{group}` is full; raise the broker's group.max.size or run fewer members")]
    Full {
        /// The group.
        group: String,
    },
    /// The principal may not use the group or one of the topics.
    #[error("group `{group}`: no permission ({code:?}); grant Read on the group and on its topics")]
    Unauthorized {
        /// The group.
        group: String,
        /// The broker's answer.
        code: ErrorCode,
    },
    /// The group id is empty or not legal.
    #[error("`{group}` is not a legal group id")]
    InvalidGroup {
        /// The group.
        group: String,
    },
    /// An answer this protocol does not foresee.
    #[error("group `{group}`: the broker answered {request} with {code:?}, which leaves nothing to do")]
    Unexpected {
        /// The group.
        group: String,
        /// The request that was answered.
        request: &'static str,
        /// The broker's answer.
        code: ErrorCode,
    },
    /// The broker chose an assignor that was not offered.
    #[error("group `{group}`: the broker chose the assignor `{chosen}`, which this member did not offer")]
    UnknownAssignor {
        /// The group.
        group: String,
        /// The name it chose.
        chosen: String,
    },
    /// An assignor, the built-in or the caller's own, refused the group as it is.
    #[error("group `{group}`, assignor `{assignor}`: {refusal}")]
    Refused {
        /// The group.
        group: String,
        /// The assignor that refused.
        assignor: String,
        /// Its reason.
        refusal: Refusal,
    },
}

/// Why partitions were lost rather than given up. What was not committed by then is not committed for them any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LostReason {
    /// The coordinator gave no successful answer for a whole session timeout.
    #[error("the coordinator gave no answer for a whole session timeout")]
    SessionExpired,
    /// The coordinator does not know the member (any more).
    #[error("the coordinator no longer knows this member")]
    UnknownMember,
    /// The group went on without the member.
    #[error("the group went on to a newer generation without this member")]
    IllegalGeneration,
    /// The member's place in the group ended.
    #[error("this member's place in the group has ended")]
    Ended,
}
