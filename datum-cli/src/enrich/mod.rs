//! `datum enrich`: the stateless job, record by record.
//!
//! A committable source, a projected decode, a sink. At least once: records go to an idempotent producer, and what a record was
//! made from is committed after its acknowledgement. Exactly once: records and offsets go into one transaction, every 100 ms.
//!
//! # When it ends
//! At Ctrl-C or at the end asked for it stops reading, writes and commits what it has read, and leaves the group. A transaction that a
//! rebalance made void is begun anew by a new member, as long as something is written between two such failures.

mod end;
mod event;
mod tally;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use datum::codec::stages::TryDecodeOps;
use datum::codec::{DeadLetter, DecodeError, Json};
use datum::engine::sinks::Completion;
use datum::kafka::admin::Admin;
use datum::kafka::producer::ProducerRecord;
use datum::kafka::stages::{Committable, KafkaSinks, KafkaSources, KafkaTransactionalSinks};
use datum::kafka::transaction::TransactionError;
use datum::kafka::{ConsumerSettings, ProducerSettings, TopicPartition};
use datum::prelude::*;

use self::end::End;
use self::event::{Event, enrich};
use self::tally::Tally;
use crate::error::{CliError, UsageError};
use crate::options::{Delivery, EnrichOptions, OnBadRecord};
use crate::summary::{EnrichSummary, Stopwatch};
use crate::{interrupt, progress, topics};

/// How often the progress bar moves.
const GLANCE: Duration = Duration::from_millis(100);

/// How often a stream may fail without writing anything in between.
const VAIN_STARTS: u32 = 5;

/// How long to wait after a failure: long enough for a rebalance to go on.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// A record that cannot be decoded, where that is a failure.
#[derive(Debug, thiserror::Error)]
#[error(
    "offset {offset} of {partition} is not a record: {error}; `--on-bad-record skip` counts and skips such records, \
     `--on-bad-record dead-letter` keeps them in `--dead-letter-topic`"
)]
struct BadRecord {
    partition: TopicPartition,
    offset: i64,
    error: DecodeError,
}

/// A record on its way, with the place it came from.
type Outgoing = Committable<ProducerRecord>;

/// Runs the command.
pub(crate) async fn run(options: &EnrichOptions) -> Result<(), CliError> {
    check(options)?;
    let admin = topics::connect(&options.brokers).await?;
    let partitions = topics::partitions(&admin, &options.topic).await?;
    for topic in [Some(&options.out_topic), options.dead_letter_topic.as_ref()].into_iter().flatten() {
        topics::ensure(&admin, topic, 1).await?;
    }
    let brokers = options.brokers.join(",");
    let end = match options.stop_at_end {
        true => Some(End::of(&admin, &brokers, &options.group, &partitions).await?),
        false => None,
    };
    let job = Job { options, admin, brokers, end, tally: Arc::new(Tally::new(partitions.len())) };
    let stopwatch = Stopwatch::start();
    job.run().await?;
    let tally = &job.tally;
    let summary = EnrichSummary {
        records: tally.records.get(),
        published: tally.published.get(),
        filtered: tally.filtered.get(),
        undecodable: tally.undecodable.get(),
        cost: stopwatch.cost(tally.records.get()),
    };
    summary.print(&mut std::io::stdout().lock()).map_err(CliError::Output)?;
    summary.save(options.summary_json.as_deref())
}

/// What the parser cannot see: options that only make sense together.
fn check(options: &EnrichOptions) -> Result<(), UsageError> {
    UsageError::dead_letters(options.on_bad_record, options.dead_letter_topic.as_deref())
}

struct Job<'a> {
    options: &'a EnrichOptions,
    admin: Admin,
    brokers: String,
    end: Option<End>,
    tally: Arc<Tally>,
}

impl Job<'_> {
    /// Runs streams until one ends well or cannot be mended.
    async fn run(&self) -> Result<(), CliError> {
        let stop = interrupt::asked_to_stop();
        tokio::pin!(stop);
        let bar = progress::bar(None).with_message("read");
        let (mut vain, mut written) = (0, 0);
        loop {
            let materializer = Materializer::current()?;
            self.tally.forget_seen();
            let mut completion = self.start(&materializer)?;
            let at_end = async {
                match &self.end {
                    Some(end) => end.clone().reached(&self.admin, &self.options.group, &self.tally).await,
                    None => std::future::pending().await,
                }
            };
            tokio::pin!(at_end);
            let mut glance = tokio::time::interval(GLANCE);
            let ended = loop {
                tokio::select! {
                    ended = &mut completion => break ended,
                    asked = &mut stop => {
                        asked?;
                        materializer.shutdown().await;
                        bar.finish_and_clear();
                        return Ok(completion.await?);
                    }
                    reached = &mut at_end => {
                        reached?;
                        materializer.shutdown().await;
                        break (&mut completion).await;
                    }
                    _ = glance.tick() => bar.set_position(self.tally.records.get()),
                }
            };
            let Err(error) = ended else {
                bar.finish_and_clear();
                return Ok(());
            };
            vain = if self.tally.published.get() > written { 1 } else { vain + 1 };
            written = self.tally.published.get();
            if vain > VAIN_STARTS || !is_mended_by_a_new_member(&error) {
                bar.finish_and_clear();
                return Err(error.into());
            }
            tracing::warn!(%error, "the transaction is void; a new member begins where the last one ended");
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }

    /// Starts the stream.
    fn start(&self, materializer: &Materializer) -> Result<Completion<()>, CliError> {
        let options = self.options;
        let input = ConsumerSettings::new(&self.brokers)
            .group(&options.group)
            .topic(&options.topic)
            .session_timeout(options.session_timeout);
        let output = ProducerSettings::new(&self.brokers);
        let mut routing = Routing {
            on_bad_record: options.on_bad_record,
            out_topic: options.out_topic.as_str().into(),
            dead_letter_topic: options.dead_letter_topic.as_deref().map(Arc::from),
            tally: Arc::clone(&self.tally),
        };
        let stream = Source::kafka(input)
            .try_decode(Json::<Event<'_>>::projected().with(|event: Event<'_>| enrich(event)))
            .try_map(move |record| routing.route(record))
            .filter_map(|record| record);
        Ok(match options.delivery {
            Delivery::AtLeastOnce => stream.run_with_on(Sink::kafka(output), materializer)?,
            Delivery::ExactlyOnce => {
                let output = output
                    .transactional_id(&transactional_id(&options.group))
                    // Below the session timeout, so that a stuck transaction ends before its partitions move.
                    .transaction_timeout(options.session_timeout * 4 / 5);
                stream.run_with_on(Sink::kafka_transactional(output), materializer)?
            }
        })
    }
}

/// Where records go.
struct Routing {
    on_bad_record: OnBadRecord,
    out_topic: Arc<str>,
    dead_letter_topic: Option<Arc<str>>,
    tally: Arc<Tally>,
}

impl Routing {
    /// The record to be written for one that was read. One without is done, and acknowledged here: what is committed never passes a
    /// record whose own output is not written.
    fn route(
        &mut self,
        read: Committable<Result<Option<Vec<u8>>, DeadLetter>>,
    ) -> Result<Option<Outgoing>, BadRecord> {
        let tally = &self.tally;
        let partition = read.handle().partition().clone();
        tally.saw(partition.partition, read.offset());
        let (topic, value) = match read.value() {
            Ok(Some(_)) => (Some(&self.out_topic), true),
            Ok(None) => {
                tally.filtered.add_one();
                (None, false)
            }
            Err(letter) => {
                tally.undecodable.add_one();
                match self.on_bad_record {
                    OnBadRecord::Fail => {
                        let error = letter.error;
                        return Err(BadRecord { partition, offset: read.offset(), error });
                    }
                    OnBadRecord::Skip => (None, false),
                    OnBadRecord::DeadLetter => (self.dead_letter_topic.as_ref(), false),
                }
            }
        };
        let Some(topic) = topic.cloned() else {
            read.ack();
            return Ok(None);
        };
        if value {
            tally.published.add_one();
        }
        Ok(Some(written(read, topic)))
    }
}

/// A record with the key and the time of the one it was made from. A dead letter has its value, too.
fn written(read: Committable<Result<Option<Vec<u8>>, DeadLetter>>, topic: Arc<str>) -> Outgoing {
    let source = read.record();
    let (key, as_it_came, timestamp) = (source.key_bytes(), source.value_bytes(), source.timestamp());
    read.map(|made| {
        let mut record = ProducerRecord::new(topic, Vec::new());
        record.key = key;
        record.value = match made {
            Ok(json) => json.map(Into::into),
            Err(_) => as_it_came,
        };
        // A record without a time gets that of its writing.
        record.timestamp = Some(timestamp).filter(|at| *at >= 0);
        record
    })
}

/// An identity for each stream: members share none, or they would throw each other out.
fn transactional_id(group: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{group}-enrich-{}-{now:x}", std::process::id())
}

/// Whether nothing of the transaction is visible, or the next member finds out what is.
fn is_mended_by_a_new_member(error: &StreamError) -> bool {
    matches!(
        error.downcast_ref::<TransactionError>(),
        Some(
            TransactionError::Generation { .. }
                | TransactionError::OutcomeUnknown { .. }
                | TransactionError::Abortable { .. }
        )
    )
}
