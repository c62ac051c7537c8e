//! How large a run is, and what happens in it, in an order that the seed decides.

/// How the rollup's members share the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Exclusive,
    CoPartitioned,
}

/// How large the run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub records: u64,
    /// At each named point.
    pub kills: u64,
    /// At random moments.
    pub random: u64,
    /// Broker restarts; above zero, everything else that may happen happens too.
    pub restarts: u64,
    pub seed: u64,
}

/// What happens to one life of the rollup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is killed where it passes a point.
    KillAt(&'static str),
    /// It is killed when that many more panes are visible.
    KillAfter(usize),
    BrokerRestart,
    /// It is stopped until the group has given it up and a second instance has taken over.
    PausedBeyondSession,
    /// It is stopped inside a transaction, until the broker has ended that and the group has given it up.
    PausedBeyondTransaction,
    /// A second instance joins, and one of the two leaves: the first if this says so.
    SecondInstance {
        first_leaves: bool,
    },
    /// A consumer of another kind, of this protocol, joins the group of the running rollup.
    ForeignAfter(&'static str),
    /// It is in the group before the rollup.
    ForeignBefore(&'static str),
    /// The input gets more partitions.
    Growth,
}

pub const POINTS: [&str; 3] = ["before-transaction", "output-written", "transaction-ended"];

/// Panes of a window.
pub const REGIONS: usize = 16;

impl Size {
    pub fn of_environment() -> Self {
        let number = |name: &str, default: u64| {
            let given = std::env::var(format!("DATUM_KILL_RUN_{name}"));
            given.map_or(default, |text| text.parse().expect(name))
        };
        Self {
            records: number("RECORDS", 60_000),
            kills: number("KILLS_PER_POINT", 1),
            random: number("RANDOM_KILLS", 1),
            restarts: number("BROKER_RESTARTS", 0),
            seed: number("SEED", 1),
        }
    }

    /// What happens, in order.
    pub fn events(&self, mode: Mode, random: &mut Random) -> Vec<Event> {
        let mut events: Vec<Event> = (0..self.kills).flat_map(|_| POINTS.map(Event::KillAt)).collect();
        events.extend((0..self.random).map(|_| Event::KillAfter(random.index(REGIONS + 1))));
        if self.restarts > 0 {
            events.extend((0..self.restarts).map(|_| Event::BrokerRestart));
            events.extend([Event::PausedBeyondSession, Event::PausedBeyondTransaction]);
            events.extend([false, true].map(|first_leaves| Event::SecondInstance { first_leaves }));
            events.extend(["classic", "consumer"].map(Event::ForeignAfter));
            events.extend(["classic", "consumer"].map(Event::ForeignBefore));
            // It ends a co-partitioned job: there it comes last.
            events.extend((mode == Mode::Exclusive).then_some(Event::Growth));
        }
        for i in (1..events.len()).rev() {
            events.swap(i, random.index(i + 1));
        }
        events
    }

    /// Records of each portion of the input: one to begin with, those of the events, one for the end.
    pub fn portion(&self, events: &[Event]) -> u64 {
        self.records / (events.iter().map(|event| event.portions()).sum::<u64>() + 2)
    }

    /// A window that each portion passes the end of, in milliseconds. A record is one of event time.
    pub fn window_ms(&self, events: &[Event]) -> i64 {
        i64::try_from((self.portion(events).saturating_sub(200) / 100 * 100).clamp(500, 30_000)).unwrap()
    }
}

impl Event {
    /// How many portions of the input it takes.
    pub const fn portions(self) -> u64 {
        match self {
            Self::PausedBeyondSession | Self::SecondInstance { .. } => 3,
            _ => 2,
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn index(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }
}
