//! What a run is made of.

use datum_job::Mode;

use crate::rng::Rng;

/// What a run is made of; everything else follows from the seed.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub partitions: usize,
    pub co_partitioned: bool,
    pub at_least_once: bool,
    /// Silent partitions stop holding windows open.
    pub idle: bool,
    /// As `idle`, with the traffic that is hardest on it.
    pub idle_focus: bool,
    /// Partitions are added.
    pub growth: bool,
    /// An operator resets offsets.
    pub operator: bool,
    /// A consumer of another kind joins, and may commit.
    pub foreign: bool,
    /// The group's offsets expire.
    pub expiry: bool,
    /// Some runs stop at the end.
    pub bounded: bool,
    /// Some of those flush.
    pub flush: bool,
    pub instances: usize,
    pub steps: usize,
    /// How often instances crash, 0 to 3.
    pub crash: u64,
    /// Instances are stopped for a while.
    pub pause: bool,
    /// Some input is written in transactions.
    pub transactions: bool,
    /// Some records lie far ahead of the clock.
    pub ahead: bool,
    pub bad: bool,
    pub filtered: bool,
    /// Partitions fall silent.
    pub quiet: bool,
    /// The log's start moves up to what is committed.
    pub retention: bool,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut r = Rng::new(seed ^ 0x5EED);
        let co_partitioned = r.chance(1, 5);
        let idle = r.chance(1, 2);
        let bounded = r.chance(1, 5);
        let rare = r.below(20);
        let mut plan = Self {
            seed,
            partitions: 1 + r.below(6),
            co_partitioned,
            at_least_once: r.chance(1, 6),
            idle,
            idle_focus: false,
            growth: !co_partitioned && r.chance(1, 4),
            operator: rare == 0,
            foreign: !co_partitioned && rare == 1,
            expiry: !co_partitioned && rare == 2,
            bounded,
            flush: bounded && r.chance(1, 2),
            instances: 1 + r.below(3),
            steps: 300 + r.below(900),
            crash: r.below(4) as u64,
            pause: r.chance(2, 3),
            transactions: r.chance(2, 3),
            ahead: r.chance(1, 3),
            bad: r.chance(1, 2),
            filtered: r.chance(1, 3),
            quiet: r.chance(1, 2),
            retention: r.chance(1, 3),
        };
        if plan.idle && !plan.co_partitioned && r.chance(1, 3) {
            plan.focus_on_idleness(&mut r);
        }
        if !plan.growth && !plan.expiry && !plan.foreign && r.chance(1, 12) {
            plan.operator = true;
        }
        plan
    }

    pub fn focus_on_idleness(&mut self, r: &mut Rng) {
        self.idle = true;
        self.idle_focus = true;
        self.co_partitioned = false;
        self.quiet = true;
        self.partitions = 2 + r.below(3);
        self.crash = r.below(2) as u64;
        self.filtered = false;
    }

    pub(super) fn mode(&self) -> Mode {
        if self.co_partitioned { Mode::CoPartitioned } else { Mode::Exclusive }
    }
}
