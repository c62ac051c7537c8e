//! The rollup on a Kafka cluster, the user's own or the embedded one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use datum::broker::Broker;
use datum::codec::Json;
use datum::job::chain::{KafkaJobs, KafkaPaneSinks, KeyedRecords, PaneJob};
use datum::kafka::{ConsumerSettings, ProducerSettings};
use datum::prelude::*;
use datum::window::{Aggregate, Millis, Row, Tumbling};
use indicatif::ProgressBar;
use tokio::sync::mpsc::unbounded_channel;

use super::definition::{Load, Metric, slo_rollup};
use super::observer::Observer;
use super::outputs::Outputs;
use super::panes::{KEY, PanePrinter};
use crate::error::{CliError, UsageError};
use crate::options::{Delivery, OnBadRecord, RecordKey, RollupOptions};
use crate::summary::{Counts, Stopwatch};
use crate::workload::Workload;
use crate::{generate, interrupt, progress, topics};

/// How often the progress bar moves.
const GLANCE: Duration = Duration::from_millis(100);

/// Runs the rollup on the cluster of `--brokers`, until it is asked to stop or the end that was asked for.
pub(super) async fn on_cluster(options: &RollupOptions) -> Result<(), CliError> {
    let admin = topics::connect(&options.brokers).await?;
    topics::partitions(&admin, &options.topic).await?;
    for topic in Outputs::of(options).topics() {
        topics::ensure(&admin, &topic, 1).await?;
    }
    let bar = progress::bar(None).with_message("read");
    run(options, &options.brokers.join(","), &bar, |_| interrupt::asked_to_stop()).await
}

/// Runs the rollup on an embedded broker that is filled alongside, until all that was generated is read.
pub(super) async fn embedded(options: &RollupOptions) -> Result<(), CliError> {
    let broker = Broker::builder().memory(options.broker_memory).delete_consumed(true).start().await?;
    let bootstrap = broker.bootstrap();
    let admin = topics::connect(std::slice::from_ref(&bootstrap)).await?;
    topics::ensure(&admin, &options.topic, options.partitions).await?;
    for topic in Outputs::of(options).topics() {
        topics::ensure(&admin, &topic, 1).await?;
    }
    let workload = Workload {
        records: options.records,
        start_ms: Workload::start_ending_now(options.records, options.event_time_rate),
        per_second: options.event_time_rate.max(1),
        disorder: options.disorder,
        layout: options.layout,
        seed: options.seed,
    };
    let (topic, settings) = (options.topic.clone(), ProducerSettings::new(&bootstrap));
    let records = workload.records;
    // Keyed by the record's own key, so that each region is in every partition.
    let filling = tokio::spawn(async move {
        let hidden = ProgressBar::hidden();
        generate::to_topic(&workload, settings, &topic, RecordKey::PartitionKey, None, &hidden).await
    });
    let bar = progress::bar(Some(records)).with_message("read");
    let done = run(options, &bootstrap, &bar, |read| async move {
        let all_read = async {
            filling.await.map_err(|_| CliError::Generator)??;
            while read.load(Ordering::Relaxed) < records {
                tokio::time::sleep(GLANCE / 10).await;
            }
            Ok(())
        };
        tokio::select! {
            all = all_read => all,
            asked = interrupt::asked_to_stop() => asked,
        }
    })
    .await;
    broker.stop().await;
    done
}

/// Runs the job until `until` says so or it ends by itself, and prints what it publishes.
async fn run<S>(
    options: &RollupOptions,
    bootstrap: &str,
    bar: &ProgressBar,
    until: impl FnOnce(Arc<AtomicU64>) -> S + Send,
) -> Result<(), CliError>
where
    S: Future<Output = Result<(), CliError>> + Send,
{
    let (observer, read) = Observer::new()?;
    let (tell, mut published) = unbounded_channel();
    let job = job(options, bootstrap)?.observed(observer).on_published(move |panes| {
        // Nobody listens any more when the command is ending.
        let _ = tell.send(panes.to_vec());
    });
    let sink = Sink::kafka_panes(ProducerSettings::new(bootstrap), &*options.out_topic);
    let mut printer = PanePrinter::new(options.format);
    let stopwatch = Stopwatch::start();
    let mut stopped = Ok(());
    let outcome = {
        let job = job.run_with(sink).until(async {
            stopped = until(Arc::clone(&read)).await;
        });
        tokio::pin!(job);
        let mut glance = tokio::time::interval(GLANCE);
        loop {
            tokio::select! {
                outcome = &mut job => break outcome,
                Some(panes) = published.recv() => bar.suspend(|| printer.print(panes))?,
                _ = glance.tick() => bar.set_position(read.load(Ordering::Relaxed)),
            }
        }
    };
    bar.finish_and_clear();
    let report = outcome?;
    stopped?;
    while let Some(panes) = published.recv().await {
        printer.print(panes)?;
    }
    let c = report.counters;
    let counts = Counts {
        records: c.records(),
        panes: printer.count(),
        open_windows: report.open_windows,
        late: c.late,
        undecodable: c.undecodable,
    };
    let summary = stopwatch.summarise(counts);
    printer.finish(&summary)?;
    summary.save(options.summary_json.as_deref())
}

/// The job as anyone would write it, with what the options say.
fn job(
    options: &RollupOptions,
    bootstrap: &str,
) -> Result<
    PaneJob<
        impl KeyedRecords<Key = str, Value = Load> + use<>,
        impl Aggregate<Load, Out = Row> + Sync + use<>,
    >,
    UsageError,
> {
    let windows = Tumbling::of(options.window).grace(options.grace);
    windows.checked()?;
    let mut job = Source::kafka_job(input(options, bootstrap))
        .decode(Json::<Metric<'_>>::projected())
        .key_and_value(|metric: &Metric<'_>| metric.key_and_load())
        .named(KEY)
        .window(windows)
        .aggregate(slo_rollup());
    if options.co_partitioned {
        job = job.co_partitioned();
    }
    if options.delivery == Delivery::AtLeastOnce {
        job = job.at_least_once();
    }
    job = match (options.stop_at_end, options.flush) {
        (true, false) => job.stop_at_end(),
        (true, true) => job.flush(),
        (false, _) => job,
    };
    if options.reset {
        job = job.reset();
    }
    let outputs = Outputs::of(options);
    if let Some(late) = outputs.late {
        job = job.late_to(late);
    }
    job = match (options.on_bad_record, outputs.dead_letter) {
        (OnBadRecord::DeadLetter, Some(topic)) => job.dead_letters_to(topic),
        (OnBadRecord::Skip, _) => job.skip_undecodable(),
        (OnBadRecord::Fail | OnBadRecord::DeadLetter, _) => job,
    };
    let idle = Millis::try_from(options.idle_timeout.as_millis()).unwrap_or(Millis::MAX);
    let session = options.session_timeout;
    Ok(job.configure(move |job, run| {
        job.idle_timeout = Some(idle);
        // Below the session timeout, so that a stuck transaction ends before its partitions move.
        run.transaction_timeout = run.transaction_timeout.min(session * 4 / 5);
    }))
}

fn input(options: &RollupOptions, bootstrap: &str) -> ConsumerSettings {
    let fetch_bytes = usize::try_from(options.fetch_max_bytes).unwrap_or(usize::MAX);
    let input = ConsumerSettings::new(bootstrap)
        .group(&options.group)
        .topic(&options.topic)
        .session_timeout(options.session_timeout)
        .with_fetch(|fetch| fetch.max_bytes(fetch_bytes).partition_max_bytes(fetch_bytes));
    match &options.instance_id {
        Some(instance) => input.instance_id(instance),
        None => input,
    }
}
