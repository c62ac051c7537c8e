//! Moving a position over what an answer holds.

use super::partition::{Partition, Phase, Reaction};
use super::queue::{Fetched, Waiting};
use crate::error::KafkaErrorKind;
use crate::wire::batch::{AbortedTransactions, BatchSet};
use crate::wire::fetch::FetchedPartition;

impl Partition {
    /// Moves the position over an answer without an error, and makes an item of its records if it has any.
    pub(super) fn advance(
        &mut self,
        answer: FetchedPartition,
        waiting: &Waiting,
        most: usize,
    ) -> Result<Option<Fetched>, Reaction> {
        let size = answer.records.len();
        if size == 0 {
            self.succeeded();
            return Ok(None);
        }
        let set = BatchSet::new(answer.records);
        let mut headers = set.clone();
        let from = self.position;
        let mut readable = true;
        let mut batches = 0;
        for batch in headers.by_ref() {
            match batch {
                Ok(batch) if batch.header.next_offset() > self.position => {
                    self.position = batch.header.next_offset();
                    self.last_epoch = batch.header.leader_epoch;
                    batches += 1;
                }
                Ok(_) => {}
                Err(_) => readable = false,
            }
        }
        if !readable {
            // The consumer meets it in its turn, after what is good before it, and says what to do.
            self.phase = Phase::Held;
        } else if batches == 0 {
            return self.nothing_whole(headers.tail().and_then(|tail| tail.needed), most);
        } else {
            self.succeeded();
        }
        Ok(Some(Fetched {
            handle: self.handle.clone(),
            generation: self.generation,
            position: from,
            set,
            aborted: AbortedTransactions::new(answer.aborted),
            weight: Some(waiting.add(size)),
        }))
    }

    /// Not one batch came whole: asks for as much as the first needs.
    fn nothing_whole(&mut self, needed: Option<usize>, most: usize) -> Result<Option<Fetched>, Reaction> {
        let ask = needed.unwrap_or(self.max_bytes.saturating_mul(2));
        if ask > most {
            let partition = self.handle.partition().clone();
            return Err(Reaction::Fail(
                KafkaErrorKind::BatchTooLarge { partition, offset: self.position, size: ask, limit: most }
                    .into(),
            ));
        }
        let grown = ask > self.max_bytes;
        self.max_bytes = self.max_bytes.max(ask);
        // A broker that answers a larger request with nothing whole again must not make us spin.
        if grown { Ok(None) } else { Err(Reaction::Retry) }
    }
}
