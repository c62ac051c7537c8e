//! Fetching: one task that keeps one fetch in flight per broker while the consumer decodes what came before.
//!
//! Of an answer only the batch headers are read here, to know where the next fetch begins; then that fetch
//! leaves, and the records go to the consumer as they came. So the round trip hides behind the decoding, which happens on the
//! consumer's side where the records are used.
//!
//! # Backpressure
//! A broker is asked again when less than one partition's worth of its answers waits for the consumer, and nobody is asked while
//! [`buffer_bytes`](crate::FetchSettings#structfield.buffer_bytes) wait in all. Nothing fetched is thrown away to be fetched again, except what
//! belongs to a partition that was taken away or whose position has jumped.
//!
//! # Positions
//! The next offset is the end of the last whole batch by its header, also where compaction removed its records, where it is a transaction's
//! marker, or where it was aborted. Errors are the partition's own: one that has failed or waits for a new leader does not hold up the
//! others. Before the first fetch from a leader of a new epoch, the leader is asked whether its log holds what was read under the last one (KIP-320);
//! if it does not, `offset_reset` decides: `none` is [`LogTruncated`](crate::KafkaErrorKind::LogTruncated), else the position goes back.
//!
//! No fetch sessions are used (KIP-227): a request names all its partitions, which is what a broker with up to some tens of them answers just
//! as fast.
//!
//! # When it ends
//! When the last [`Fetcher`] is dropped.

mod advance;
mod answers;
mod asking;
mod leaders;
mod partition;
mod positions;
mod queue;
mod resolve;
mod task;

pub(super) use queue::{Fetched, Item};
use tokio::sync::mpsc;

use crate::cluster::Cluster;
use crate::consumer::PartitionHandle;
use crate::consumer::batches::Batches;
use crate::error::Result;
use crate::settings::{ConsumerSettings, StartAt};

/// What the fetcher's task is told.
#[derive(Debug)]
enum Command {
    Assign { handle: PartitionHandle, start: StartAt, leader_epoch: i32 },
    Release { handle: PartitionHandle },
    Seek { handle: PartitionHandle, generation: u64, start: StartAt },
    Hold { handle: PartitionHandle, generation: u64 },
    Resume,
    Refreshed,
}

/// Assigns partitions to a consumer and takes them away. Clones share the task.
///
/// Calls take effect at once as far as emission goes (the handle's state decides), and shortly after as far as fetching goes.
#[derive(Clone, Debug)]
pub struct Fetcher {
    commands: mpsc::UnboundedSender<Command>,
}

impl Fetcher {
    /// Starts the task. The batches come out of the second part.
    ///
    /// # Errors
    /// [`Settings`](crate::KafkaErrorKind::Settings).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(cluster: Cluster, settings: &ConsumerSettings) -> Result<(Self, Batches)> {
        settings.client.validate()?;
        let (commands, told) = mpsc::unbounded_channel();
        let (out, items) = mpsc::unbounded_channel();
        tokio::spawn(task::Task::new(cluster, settings, told, out).run());
        let fetcher = Self { commands };
        let batches = Batches::new(items, fetcher.clone());
        Ok((fetcher, batches))
    }

    /// Fetches this partition from now on, until its handle is no longer active or it is [released](Self::release). A handle of the same partition
    /// from before is replaced.
    pub fn assign(&self, handle: &PartitionHandle, start: StartAt) {
        self.tell(Command::Assign { handle: handle.clone(), start, leader_epoch: -1 });
    }

    /// As [`assign`](Self::assign), from an offset that was committed together with the leader epoch of the record before it. If the log was
    /// truncated below that offset since, the leader says so instead of serving other records under the same offsets (KIP-320).
    pub fn assign_committed(&self, handle: &PartitionHandle, offset: i64, leader_epoch: Option<i32>) {
        let start = StartAt::Offset(offset);
        self.tell(Command::Assign {
            handle: handle.clone(),
            start,
            leader_epoch: leader_epoch.unwrap_or(-1),
        });
    }

    /// Stops fetching it. Does not change the handle's state; what was fetched and not emitted is dropped if that is no longer active.
    pub fn release(&self, handle: &PartitionHandle) {
        self.tell(Command::Release { handle: handle.clone() });
    }

    /// Goes on from another position. What was fetched before is not emitted any more. Also brings a failed partition back.
    pub fn seek(&self, handle: &PartitionHandle, start: StartAt) {
        let generation = handle.jump();
        self.tell(Command::Seek { handle: handle.clone(), generation, start });
    }

    /// Neither fetches nor emits this partition until it is resumed; what was fetched is kept.
    pub fn pause(&self, handle: &PartitionHandle) {
        handle.set_paused(true);
    }

    /// Ends a [pause](Self::pause).
    pub fn resume(&self, handle: &PartitionHandle) {
        handle.set_paused(false);
        self.tell(Command::Resume);
    }

    /// Metadata was brought up to date elsewhere, or a deadline changed: looks at everything again.
    pub fn nudge(&self) {
        self.tell(Command::Refreshed);
    }

    /// The consumer has met something unreadable and reports it; nothing more is fetched until it seeks.
    pub(super) fn hold(&self, handle: &PartitionHandle, generation: u64) {
        self.tell(Command::Hold { handle: handle.clone(), generation });
    }

    fn tell(&self, command: Command) {
        // The task ends only with the runtime; then there is nobody left to whom it would matter.
        let _ = self.commands.send(command);
    }
}
