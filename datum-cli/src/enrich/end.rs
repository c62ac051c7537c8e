//! `--stop-at-end`: where the input ends at the start, and when the group has come there.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use datum::kafka::admin::{Admin, FoundOffset, OffsetSpec};
use datum::kafka::consumer::Consumer;
use datum::kafka::{ConsumerSettings, Isolation, StartAt, TopicPartition};

use super::tally::Tally;
use crate::error::CliError;

/// How often this process's own progress is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// How long open transactions at the end of the input are waited for: as long as Kafka lets one stay open by default.
const OPEN_LIMIT: Duration = Duration::from_secs(60);

/// Every how many glances the group's offsets are asked for: partitions may be another member's, or done in an earlier run.
const GLANCES_PER_QUESTION: u32 = 25;

/// The offset after the last record of each partition that has any.
///
/// A partition may end in what is not to be seen, such as the markers of transactions; no record would ever say that those were passed.
#[derive(Clone, Debug)]
pub(super) struct End(HashMap<TopicPartition, i64>);

impl End {
    /// The end of these partitions as of now, as far as `group` has not passed it.
    ///
    /// Waits until transactions that are open there have ended, but no longer than [`OPEN_LIMIT`].
    ///
    /// # Errors
    /// What the cluster refuses, or does not answer in time.
    pub(super) async fn of(
        admin: &Admin,
        brokers: &str,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<Self, CliError> {
        let all = |spec| partitions.iter().map(|p| (p.clone(), spec)).collect::<Vec<_>>();
        let first = admin.list_offsets(&all(OffsetSpec::Earliest), Isolation::ReadCommitted).await?;
        let after = stable_end(admin, &all(OffsetSpec::Latest)).await?;
        let committed = admin.committed_offsets(group, partitions).await?;
        let settings = ConsumerSettings::new(brokers);
        let mut ends = HashMap::new();
        for partition in partitions {
            let offset = |found: &HashMap<TopicPartition, FoundOffset>| {
                found.get(partition).and_then(|found| found.offset).unwrap_or(0)
            };
            let from = committed.get(partition).map_or(0, |c| c.offset).max(offset(&first));
            if let Some(last) = last_record(admin, &settings, partition, from, offset(&after)).await? {
                ends.insert(partition.clone(), last + 1);
            }
        }
        Ok(Self(ends))
    }

    /// Waits until everything before the end has been seen here or committed by the group.
    pub(super) async fn reached(mut self, admin: &Admin, group: &str, tally: &Tally) -> Result<(), CliError> {
        let mut glances = 0_u32;
        loop {
            self.0.retain(|partition, end| tally.seen(partition.partition) < *end);
            if self.0.is_empty() {
                return Ok(());
            }
            glances += 1;
            if glances.is_multiple_of(GLANCES_PER_QUESTION) {
                let open: Vec<_> = self.0.keys().cloned().collect();
                let committed = admin.committed_offsets(group, &open).await?;
                self.0.retain(|partition, end| committed.get(partition).is_none_or(|c| c.offset < *end));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }
}

/// The ends as of now, once nothing before them belongs to a transaction that may still end either way.
///
/// A transaction's records are visible a moment after its producer was told that it is committed: whoever enriches what another command has
/// just written must not miss the last of it. Transactions that stay open longer than [`OPEN_LIMIT`] are not waited for.
async fn stable_end(
    admin: &Admin,
    latest: &[(TopicPartition, OffsetSpec)],
) -> Result<HashMap<TopicPartition, FoundOffset>, CliError> {
    let end = admin.list_offsets(latest, Isolation::ReadUncommitted).await?;
    let until = Instant::now() + OPEN_LIMIT;
    loop {
        let stable = admin.list_offsets(latest, Isolation::ReadCommitted).await?;
        let open =
            end.iter().find(|(partition, end)| stable.get(*partition).map(|s| s.offset) < Some(end.offset));
        let Some((partition, _)) = open else { return Ok(end) };
        if Instant::now() >= until {
            tracing::warn!(%partition, limit = ?OPEN_LIMIT, "a transaction stays open; the input ends before it");
            return Ok(stable);
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// The offset of the last record at `from` or later and before `end` that is to be seen.
///
/// Looks at the last offset, then at the last two, four and so on, so it reads little more than what hides the record.
async fn last_record(
    admin: &Admin,
    settings: &ConsumerSettings,
    partition: &TopicPartition,
    from: i64,
    end: i64,
) -> Result<Option<i64>, CliError> {
    let mut back = 1;
    let mut before = end;
    while before > from {
        let start = end.saturating_sub(back).max(from);
        let settings = settings.clone().assign(partition.clone(), StartAt::Offset(start));
        let mut consumer = Consumer::on(admin.cluster().clone(), &settings)?;
        let (mut position, mut last) = (start, None);
        while position < before {
            // What does not come in a request's time has been deleted meanwhile.
            let limit = settings.client.request_timeout;
            let Ok(batch) = tokio::time::timeout(limit, consumer.next()).await else { return Ok(last) };
            let batch = batch?;
            last = batch.records().map(|r| r.offset()).take_while(|at| *at < end).last().or(last);
            position = batch.next_offset();
        }
        if last.is_some() {
            return Ok(last);
        }
        before = start;
        back = back.saturating_mul(2);
    }
    Ok(None)
}
