//! The consumer's side: decodes what was fetched, batch by batch, and decides what is emitted.
//!
//! Per partition batches come in offset order, each once. Records of aborted transactions and transaction markers are stepped over; where
//! an answer ends in such, an empty [`RecordsBatch`] says how far the position has come, so that commits can follow.
//!
//! # Errors
//! A batch that cannot be read is fetched once more (the damage may have happened on the way); if it is unreadable again, or of a kind
//! this client does not know, that is an error naming partition and offset, and the partition rests until a seek.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::fetcher::{Fetched, Fetcher, Item};
use super::records::RecordsBatch;
use crate::TopicPartition;
use crate::error::{BatchError, KafkaError, KafkaErrorKind, Result};
use crate::settings::StartAt;
use crate::wire::batch::{BatchDecoder, RawBatch, Visibility};

/// The stream of decoded batches of all partitions of one fetcher.
#[derive(Debug)]
pub struct Batches {
    items: mpsc::UnboundedReceiver<Item>,
    fetcher: Fetcher,
    decoder: BatchDecoder,
    current: Option<Walk>,
    /// What was fetched of partitions that are paused, and of resumed ones whose turn has not come.
    held: VecDeque<Walk>,
    /// Where a partition was unreadable once.
    struck: HashMap<TopicPartition, i64>,
}

/// A fetched part being walked.
#[derive(Debug)]
struct Walk {
    fetched: Fetched,
    /// Where the last emission ended.
    since: i64,
    leader_epoch: i32,
}

/// What came of one step of a walk.
enum Step {
    Emit(RecordsBatch),
    Skipped,
    End,
    Unreadable(BatchError),
}

/// How many batches may be stepped over before others get a turn.
const SKIPS_PER_POLL: u32 = 64;

impl Batches {
    pub(super) fn new(items: mpsc::UnboundedReceiver<Item>, fetcher: Fetcher) -> Self {
        Self {
            items,
            fetcher,
            decoder: BatchDecoder::new(),
            current: None,
            held: VecDeque::new(),
            struck: HashMap::new(),
        }
    }

    /// The next batch, or what befell a partition; after an error the other partitions go on.
    ///
    /// # Errors
    /// What befell a partition; [`Shutdown`](KafkaErrorKind::Shutdown) when the fetcher's task is gone.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost by dropping the future.
    pub async fn next(&mut self) -> Result<RecordsBatch> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`next`](Self::next), for stages.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecordsBatch>> {
        let mut skips = SKIPS_PER_POLL;
        loop {
            while let Some(walk) = self.current.take() {
                if !walk.fetched.handle.wants(walk.fetched.generation) {
                    continue;
                }
                if walk.fetched.handle.is_paused() {
                    self.held.push_back(walk);
                    continue;
                }
                if let Some(done) = self.walk(walk) {
                    return Poll::Ready(done);
                }
                skips -= 1;
                if skips == 0 {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            if self.take_held() {
                continue;
            }
            match self.items.poll_recv(cx) {
                Poll::Ready(Some(item)) => {
                    if let Some(error) = self.take(item) {
                        return Poll::Ready(Err(error));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(Err(KafkaErrorKind::Shutdown.into())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Goes on with something held whose partition is no longer paused. Of one partition the oldest comes first.
    fn take_held(&mut self) -> bool {
        let ready = self.held.iter().position(|walk| !walk.fetched.handle.is_paused());
        self.current = ready.and_then(|i| self.held.remove(i));
        self.current.is_some()
    }

    fn take(&mut self, item: Item) -> Option<KafkaError> {
        match item {
            Item::Fetched(mut fetched) => {
                // From here on it is being consumed: its bytes make room for the next fetch.
                fetched.weight = None;
                let walk = Walk { since: fetched.position, fetched, leader_epoch: -1 };
                // Behind what is held of the same partition, which must come first.
                if self.held.iter().any(|held| held.fetched.handle == walk.fetched.handle) {
                    self.held.push_back(walk);
                } else {
                    self.current = Some(walk);
                }
                None
            }
            Item::Failed { handle, generation, error } => {
                let wanted = handle.wants(generation);
                if matches!(error.kind(), KafkaErrorKind::TopicRecreated { .. }) {
                    // Offsets of the old topic mean nothing in the new one: none may be committed under its name.
                    handle.lose();
                }
                wanted.then_some(error)
            }
            // The loop looks at what is held next.
            Item::Resumed => None,
        }
    }

    /// One step; puts the walk back unless it has ended. `None`: nothing to emit yet.
    fn walk(&mut self, mut walk: Walk) -> Option<Result<RecordsBatch>> {
        match walk.step(&mut self.decoder) {
            Step::Emit(batch) => {
                self.struck.remove(batch.partition());
                self.current = Some(walk);
                Some(Ok(batch))
            }
            Step::Skipped => {
                self.current = Some(walk);
                None
            }
            Step::End => walk.rest().map(Ok),
            Step::Unreadable(error) => self.unreadable(walk, error),
        }
    }

    fn unreadable(&mut self, walk: Walk, error: BatchError) -> Option<Result<RecordsBatch>> {
        let handle = walk.fetched.handle.clone();
        let (partition, offset) = (handle.partition().clone(), walk.fetched.position);
        let passes = matches!(
            error,
            BatchError::Crc { .. } | BatchError::Length { .. } | BatchError::UnknownFormat { .. }
        );
        let again = self.struck.insert(partition.clone(), offset) == Some(offset);
        if passes && !again {
            tracing::warn!(%partition, offset, %error, "batch is unreadable; it is fetched once more");
            self.fetcher.seek(&handle, StartAt::Offset(offset));
            return None;
        }
        self.struck.remove(&partition);
        self.fetcher.hold(&handle, walk.fetched.generation);
        Some(Err(KafkaErrorKind::Batch { partition, offset, error }.into()))
    }
}

impl Walk {
    fn step(&mut self, decoder: &mut BatchDecoder) -> Step {
        let fetched = &mut self.fetched;
        let raw = match fetched.set.next() {
            None => return Step::End,
            Some(Err(error)) => return Step::Unreadable(error),
            Some(Ok(raw)) => raw,
        };
        let next = raw.header.next_offset();
        match Self::visible(fetched, &raw, decoder) {
            Err(error) => Step::Unreadable(error),
            // A broker may begin with whole batches that end before what was asked for.
            Ok(_) if next <= fetched.position => Step::Skipped,
            Ok(None) => {
                fetched.position = next;
                self.leader_epoch = raw.header.leader_epoch;
                Step::Skipped
            }
            Ok(Some(batch)) => {
                let first = fetched.position;
                fetched.position = next;
                self.leader_epoch = raw.header.leader_epoch;
                if !fetched.handle.emit(fetched.generation, next) {
                    return Step::End;
                }
                self.since = next;
                let shown = batch.len() - batch.position_of(first);
                fetched.handle.meter().records.increment(shown as u64);
                Step::Emit(RecordsBatch::new(fetched.handle.clone(), batch, first))
            }
        }
    }

    /// The decoded batch if it is for the user and holds anything.
    fn visible(
        fetched: &mut Fetched,
        raw: &RawBatch,
        decoder: &mut BatchDecoder,
    ) -> std::result::Result<Option<crate::wire::batch::RecordBatch>, BatchError> {
        if fetched.aborted.judge(raw)? != Visibility::Visible || raw.header.next_offset() <= fetched.position
        {
            return Ok(None);
        }
        let batch = decoder.decode(raw)?;
        Ok((batch.position_of(fetched.position) < batch.len()).then_some(batch))
    }

    /// What is left to say at the end: how far the position has come beyond what was emitted.
    fn rest(&self) -> Option<RecordsBatch> {
        let Fetched { handle, generation, position, .. } = &self.fetched;
        (self.since < *position && handle.emit(*generation, *position))
            .then(|| RecordsBatch::stepped(handle.clone(), self.since, *position, self.leader_epoch))
    }
}
