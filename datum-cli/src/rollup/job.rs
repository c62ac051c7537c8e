//! The rollup on a Kafka cluster, the user's own or the embedded one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use datum::broker::Broker;
use datum::job::protocol::{Delivery as JobDelivery, Ending};
use datum::job::stored::JobHash;
use datum::job::{JobSettings, Mode, RunSettings, WindowJob};
use datum::kafka::{ConsumerSettings, ProducerSettings};
use datum::window::{Aggregate, Millis, Tumbling};
use indicatif::ProgressBar;

use super::definition::slo_rollup;
use super::logic::{Outputs, RollupLogic};
use super::panes::PanePrinter;
use crate::error::{CliError, UsageError};
use crate::options::{Delivery, RecordKey, RollupOptions};
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
    let outputs = Outputs::of(options);
    let (run, job) = settings(options, bootstrap, &outputs)?;
    let (logic, mut published) = RollupLogic::new(slo_rollup, outputs, options.on_bad_record);
    let read = logic.read();
    let mut printer = PanePrinter::new(options.format);
    let stopwatch = Stopwatch::start();
    let mut stopped = Ok(());
    let outcome = {
        let job = WindowJob::new(run, job, logic);
        #[cfg(feature = "crash-points")]
        let job = super::crash_points::armed(job)?;
        let job = job.run(async {
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
        records: c.accepted + c.filtered + c.late + c.undecodable + c.ahead,
        panes: printer.count(),
        open_windows: report.open_windows,
        late: c.late,
        undecodable: c.undecodable,
    };
    let summary = stopwatch.summarise(counts);
    printer.finish(&summary)?;
    summary.save(options.summary_json.as_deref())
}

fn settings(
    options: &RollupOptions,
    bootstrap: &str,
    outputs: &Outputs,
) -> Result<(RunSettings, JobSettings), CliError> {
    let windows = Tumbling::of(options.window).grace(options.grace).checked().map_err(UsageError::from)?;
    let described = format!("tumbling {} ms, grace {} ms", windows.size(), windows.grace());
    let mut job = JobSettings::new(windows, JobHash::of(&[&described, &slo_rollup().signature()]));
    job.mode = if options.co_partitioned { Mode::CoPartitioned } else { Mode::Exclusive };
    job.idle_timeout = Some(Millis::try_from(options.idle_timeout.as_millis()).unwrap_or(Millis::MAX));

    let fetch_bytes = usize::try_from(options.fetch_max_bytes).unwrap_or(usize::MAX);
    let mut input = ConsumerSettings::new(bootstrap)
        .group(&options.group)
        .topic(&options.topic)
        .session_timeout(options.session_timeout)
        .with_fetch(|fetch| fetch.max_bytes(fetch_bytes).partition_max_bytes(fetch_bytes));
    if let Some(instance) = &options.instance_id {
        input = input.instance_id(instance);
    }
    let mut run = RunSettings::new(input, ProducerSettings::new(bootstrap));
    run.output_topics = outputs.topics();
    run.delivery = match options.delivery {
        Delivery::ExactlyOnce => JobDelivery::ExactlyOnce,
        Delivery::AtLeastOnce => JobDelivery::AtLeastOnce,
    };
    run.ending = match (options.stop_at_end, options.flush) {
        (true, false) => Ending::AtEnd,
        (true, true) => Ending::AtEndFlushed,
        (false, _) => Ending::Never,
    };
    run.reset = options.reset;
    // Below the session timeout, so that a stuck transaction ends before its partitions move.
    run.transaction_timeout = run.transaction_timeout.min(options.session_timeout * 4 / 5);
    Ok((run, job))
}
