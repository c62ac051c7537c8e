//! What the members of a job's group tell each other.
//!
//! A group key is seldom the partition key, so by default one member owns the whole topic and the rest stand by. A
//! consumer group alone does not give that: a member of another kind that joins makes the broker convert the group and
//! spread the partitions without an error. So a job offers only its own assignor, and every assignment carries a role and
//! how many partitions the topic has. An assignment without them was not made by a job: ownership is broken, and the job
//! ends before anything more is published.
//!
//! # Texts
//! Both are the user data of the group protocol's own messages. A member's: `datum1;MODE;HASH;GENERATION;TOPIC`, MODE `x`
//! or `c`, HASH in hex, GENERATION the last in which it was the owner or `-`. An assignment:
//! `datum1;ROLE;MODE;COUNT`, ROLE `owner`, `standby` or `refused`.

use crate::settings::Mode;
use crate::stored::JobHash;

/// The name of the job's assignor in the group protocol.
pub const PROTOCOL: &str = "datum-job";

/// The most bytes of user data that are read.
pub const MAX_USER_DATA: usize = 1_024;

/// What a member says when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The input topic.
    pub topic: String,
    /// The ownership mode it runs in.
    pub mode: Mode,
    /// What it computes.
    pub hash: JobHash,
    /// The last generation in which it was an owner, if it still holds that state: it stays owner.
    pub owner_since: Option<i32>,
}

/// What a member is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Work on the partitions assigned.
    Owner,
    /// Be ready.
    Standby,
    /// End: its topic, mode or hash is not the group's.
    Refused,
}

/// What the leader tells a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// What to do.
    pub role: Role,
    /// The ownership mode of the group.
    pub mode: Mode,
    /// How many partitions the topic has.
    pub count: u32,
    /// The partitions to work on: all of 0 to `count` - 1 for the owner of an exclusive job.
    pub partitions: Vec<u32>,
}

impl Subscription {
    /// The user data to join with.
    #[must_use]
    pub fn to_text(&self) -> String {
        let since = self.owner_since.map_or_else(|| "-".to_owned(), |g| g.to_string());
        format!("datum1;{};{};{since};{}", mode_text(self.mode), self.hash, self.topic)
    }

    /// Reads a member's user data; `None` when a job did not write it.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let mut fields = checked(text)?.splitn(5, ';');
        if fields.next()? != "datum1" {
            return None;
        }
        let mode = read_mode(fields.next()?)?;
        let hash = fields.next()?;
        let hash = JobHash(u64::from_str_radix(hash, 16).ok().filter(|_| hash.len() == 16)?);
        let since = fields.next()?;
        let owner_since = if since == "-" { None } else { Some(since.parse().ok()?) };
        Some(Self { topic: fields.next()?.to_owned(), mode, hash, owner_since })
    }

    fn same_job(&self, other: &Self) -> bool {
        self.topic == other.topic && self.mode == other.mode && self.hash == other.hash
    }
}

impl Assignment {
    /// The user data of the assignment; the partitions travel in the protocol's own list.
    #[must_use]
    pub fn to_text(&self) -> String {
        let role = match self.role {
            Role::Owner => "owner",
            Role::Standby => "standby",
            Role::Refused => "refused",
        };
        format!("datum1;{role};{};{}", mode_text(self.mode), self.count)
    }

    /// Checks an assignment: `text` is its user data, `partitions` the protocol's list for the job's topic, `members` the
    /// group's members where they are known.
    ///
    /// # Errors
    /// [`AssignmentError::OwnershipBroken`] when a job did not make it, or it does not carry the whole topic;
    /// [`AssignmentError::OtherJob`] when the group does something else.
    pub fn read(text: &[u8], mut partitions: Vec<u32>, members: &[String]) -> Result<Self, AssignmentError> {
        let broken = |why| AssignmentError::OwnershipBroken { why, members: members.to_vec() };
        let text = checked(text).ok_or_else(|| broken(Broken::NoRole))?;
        let fields: Vec<&str> = text.split(';').collect();
        let ["datum1", role, mode, count] = fields[..] else { return Err(broken(Broken::NoRole)) };
        let (Some(mode), Ok(count)) = (read_mode(mode), count.parse::<u32>()) else {
            return Err(broken(Broken::NoRole));
        };
        let role = match role {
            "owner" => Role::Owner,
            "standby" => Role::Standby,
            "refused" => return Err(AssignmentError::OtherJob),
            _ => return Err(broken(Broken::NoRole)),
        };
        partitions.sort_unstable();
        partitions.dedup();
        let fits = match (role, mode) {
            (Role::Owner, Mode::Exclusive) => {
                partitions.len() == count as usize && partitions.iter().zip(0..).all(|(p, n)| *p == n)
            }
            (Role::Owner, Mode::CoPartitioned) => partitions.iter().all(|p| *p < count),
            _ => partitions.is_empty(),
        };
        if !fits {
            return Err(broken(Broken::Partitions { role, partitions, count }));
        }
        Ok(Self { role, mode, count, partitions })
    }
}

/// Assigns `count` partitions to `members`, given by id and what they joined with. `leader` is this member's id.
///
/// In exclusive mode one member owns everything: the one that owned last, else the smallest id. In co-partitioned mode the
/// partitions go round by id. Members whose topic, mode or hash is not that of the present owner (else of the leader) are
/// refused.
///
/// # Errors
/// [`AssignmentError::OwnershipBroken`] naming the members that are not jobs.
pub fn assign(
    leader: &str,
    count: u32,
    members: &[(String, Option<Subscription>)],
) -> Result<Vec<(String, Assignment)>, AssignmentError> {
    let foreign: Vec<String> = members.iter().filter(|m| m.1.is_none()).map(|m| m.0.clone()).collect();
    if !foreign.is_empty() {
        return Err(AssignmentError::OwnershipBroken { why: Broken::ForeignMembers, members: foreign });
    }
    let mut jobs: Vec<(&str, &Subscription)> =
        members.iter().filter_map(|(id, s)| s.as_ref().map(|s| (id.as_str(), s))).collect();
    jobs.sort_by_key(|(id, _)| *id);
    let present = jobs.iter().filter(|(_, s)| s.owner_since.is_some()).max_by_key(|(_, s)| s.owner_since);
    let Some((_, group)) = present.or_else(|| jobs.iter().find(|(id, _)| *id == leader)).or(jobs.first())
    else {
        return Ok(Vec::new());
    };
    let fitting: Vec<&(&str, &Subscription)> = jobs.iter().filter(|(_, s)| s.same_job(group)).collect();
    let owner = fitting
        .iter()
        .max_by_key(|(id, s)| (s.owner_since, std::cmp::Reverse(*id)))
        .map_or("", |(id, _)| *id);
    let assignment = |(id, s): &(&str, &Subscription)| {
        let partitions: Vec<u32> = match group.mode {
            _ if !s.same_job(group) => Vec::new(),
            Mode::Exclusive if *id == owner => (0..count).collect(),
            Mode::Exclusive => Vec::new(),
            Mode::CoPartitioned => {
                let place = fitting.iter().position(|(other, _)| other == id).unwrap_or(0);
                (0..count).skip(place).step_by(fitting.len().max(1)).collect()
            }
        };
        let role = if !s.same_job(group) {
            Role::Refused
        } else if partitions.is_empty() && *id != owner {
            Role::Standby
        } else {
            Role::Owner
        };
        ((*id).to_owned(), Assignment { role, mode: group.mode, count, partitions })
    };
    Ok(jobs.iter().map(assignment).collect())
}

const fn mode_text(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "x",
        Mode::CoPartitioned => "c",
    }
}

fn read_mode(text: &str) -> Option<Mode> {
    match text {
        "x" => Some(Mode::Exclusive),
        "c" => Some(Mode::CoPartitioned),
        _ => None,
    }
}

fn checked(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok().filter(|t| t.len() <= MAX_USER_DATA)
}

/// What is wrong with an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It carries no role.
    NoRole,
    /// Members of another kind are in the group.
    ForeignMembers,
    /// The partitions do not fit the role.
    Partitions {
        /// The role.
        role: Role,
        /// The partitions.
        partitions: Vec<u32>,
        /// How many there are.
        count: u32,
    },
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRole => f.write_str("the assignment carries no role"),
            Self::ForeignMembers => f.write_str("other consumers have joined"),
            Self::Partitions { role, partitions, count } => {
                write!(f, "{role:?} was given partitions {partitions:?} of {count}")
            }
        }
    }
}

/// Why an assignment ends a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignmentError {
    /// Something else assigns partitions in this group.
    #[error(
        "the group's ownership is broken: {why}; members: {members:?}. Stop every consumer of this group that is not this \
         job, or give the job a group of its own"
    )]
    OwnershipBroken {
        /// What was found.
        why: Broken,
        /// The members concerned, where known.
        members: Vec<String>,
    },
    /// The group runs another job.
    #[error(
        "the group runs a job with another topic, ownership mode, windows or aggregates; stop that job first, or give this \
         one a group of its own"
    )]
    OtherJob,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, hash: u64, owner_since: Option<i32>) -> (String, Option<Subscription>) {
        let s =
            Subscription { topic: "in;1".into(), mode: Mode::Exclusive, hash: JobHash(hash), owner_since };
        assert_eq!(Subscription::from_text(s.to_text().as_bytes()), Some(s.clone()));
        (id.to_owned(), Some(s))
    }

    fn roles(leader: &str, members: &[(String, Option<Subscription>)]) -> Vec<(String, Role, Vec<u32>)> {
        let assigned = assign(leader, 3, members).unwrap();
        for (_, a) in &assigned {
            let read = Assignment::read(a.to_text().as_bytes(), a.partitions.clone(), &[]);
            match a.role {
                Role::Refused => assert_eq!(read, Err(AssignmentError::OtherJob)),
                Role::Owner | Role::Standby => assert_eq!(read.as_ref(), Ok(a)),
            }
        }
        assigned.into_iter().map(|(id, a)| (id, a.role, a.partitions)).collect()
    }

    #[test]
    fn one_owns_everything_and_stays_owner() {
        let all = vec![0, 1, 2];
        let fresh = [member("b", 1, None), member("a", 1, None)];
        assert_eq!(
            roles("b", &fresh),
            [("a".into(), Role::Owner, all.clone()), ("b".into(), Role::Standby, vec![])]
        );
        let kept = [member("b", 1, Some(7)), member("a", 1, None), member("c", 1, Some(5))];
        assert_eq!(roles("a", &kept)[1], ("b".into(), Role::Owner, all));
    }

    #[test]
    fn another_job_is_refused_by_the_owner_not_by_the_leader() {
        let members = [member("a", 2, None), member("b", 1, Some(3))];
        let got = roles("a", &members);
        assert_eq!(got[0], ("a".into(), Role::Refused, vec![]));
        assert_eq!(got[1].1, Role::Owner);
        assert_eq!(roles("a", &[member("a", 2, None), member("b", 1, None)])[1].1, Role::Refused);
    }

    #[test]
    fn co_partitioned_goes_round() {
        let member = |id: &str| {
            let s = Subscription {
                topic: "t".into(),
                mode: Mode::CoPartitioned,
                hash: JobHash(1),
                owner_since: None,
            };
            (id.to_owned(), Some(s))
        };
        let got = roles("a", &["a", "b", "c", "d"].map(member));
        assert_eq!(
            got.iter().map(|(_, r, p)| (*r, p.clone())).collect::<Vec<_>>(),
            [(Role::Owner, vec![0]), (Role::Owner, vec![1]), (Role::Owner, vec![2]), (Role::Standby, vec![])]
        );
    }

    #[test]
    fn foreign_members_and_assignments_break_ownership() {
        let foreign = ("console-consumer".to_owned(), None);
        assert_eq!(
            assign("a", 3, &[member("a", 1, None), foreign]),
            Err(AssignmentError::OwnershipBroken {
                why: Broken::ForeignMembers,
                members: vec!["console-consumer".into()]
            })
        );
        for (text, partitions) in [
            ("", vec![0, 1, 2]),
            ("range", vec![0]),
            ("datum1;owner;x;3", vec![0, 2]),
            ("datum1;standby;x;3", vec![1]),
            ("datum1;owner;c;3", vec![3]),
            ("datum2;owner;x;3", vec![0, 1, 2]),
        ] {
            let got = Assignment::read(text.as_bytes(), partitions, &["m".to_owned()]);
            assert!(matches!(got, Err(AssignmentError::OwnershipBroken { .. })), "{text}: {got:?}");
        }
    }
}
