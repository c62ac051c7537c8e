//! Retention by time and by size, batch by batch.
//!
//! Kafka drops whole segments and never the active one; a log in memory has no segments, so whole batches go as soon as
//! they may. `retention.bytes` is a bound on what stays, `retention.ms` on the age of a batch's newest record.

use crate::log::partition::Partition;
use crate::topics::TopicConfig;

/// Drops what the topic's settings no longer keep; answers with the bytes freed.
pub(crate) fn enforce(log: &mut Partition, config: &TopicConfig, now: i64) -> u64 {
    if !config.deletes() {
        return 0;
    }
    let stable = log.stable();
    log.drop_while(|batch, held| {
        let stable = batch.last_offset() < stable;
        let old = config.retention_ms >= 0 && now - batch.newest() > config.retention_ms;
        let size = batch.bytes.len() as u64;
        let over = u64::try_from(config.retention_bytes).is_ok_and(|bound| held >= bound + size);
        stable && (old || over)
    })
}
