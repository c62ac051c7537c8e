//! A whole job: how it behaves, and where its panes go.

use std::sync::Arc;

use datum_window::format::{WINDOW_END, WINDOW_START};
use datum_window::{Aggregate, Pane, Row, TumblingWindows, check_names};

use super::keyed::WindowedJob;
use super::logic::{OnUndecodable, Published, Topics};
use super::{GroupKey, JobRun, KeyedRecords, PaneLogic, PaneSink, SharedAggregate};
use crate::protocol::{Delivery, Ending};
use crate::run::{JobError, JobObserver, RunSettings, WindowJob};
use crate::settings::{JobSettings, Mode};
use crate::stored::JobHash;

/// The key that panes own.
pub(super) type OwnedKey<R> = <<R as KeyedRecords>::Key as GroupKey>::Owned;

type Change = Box<dyn FnOnce(&mut JobSettings, &mut RunSettings) + Send>;

/// A job that knows what it computes. Its verbs say how it behaves; [`run_with`](PaneJob::run_with) says where panes go.
#[must_use = "a job does nothing until it is run"]
pub struct PaneJob<R: KeyedRecords, A> {
    job: WindowedJob<R>,
    aggregate: A,
    mode: Mode,
    delivery: Delivery,
    ending: Ending,
    reset: bool,
    undecodable: OnUndecodable,
    late: Option<Arc<str>>,
    dead: Option<Arc<str>>,
    published: Published<OwnedKey<R>>,
    observer: Option<Arc<dyn JobObserver>>,
    changes: Vec<Change>,
}

impl<R: KeyedRecords, A> PaneJob<R, A> {
    pub(super) const fn new(job: WindowedJob<R>, aggregate: A) -> Self {
        Self {
            job,
            aggregate,
            mode: Mode::Exclusive,
            delivery: Delivery::ExactlyOnce,
            ending: Ending::Never,
            reset: false,
            undecodable: OnUndecodable::Fail,
            late: None,
            dead: None,
            published: None,
            observer: None,
            changes: Vec::new(),
        }
    }

    /// Sends late records, and those too far ahead of the clock, to `topic`: as they came, with key, headers and
    /// timestamp, under the headers `datum-reason` (`late` or `ahead`) and `datum-input` (`topic-partition@offset`).
    /// Without it they are only counted.
    pub fn late_to(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.late = Some(topic.into());
        self
    }

    /// Sends records that cannot be decoded to `topic`: as they came, under the headers of
    /// [`late_to`](PaneJob::late_to), with the reason `undecodable`.
    pub fn dead_letters_to(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.dead = Some(topic.into());
        self.undecodable = OnUndecodable::Route;
        self
    }

    /// Leaves records out that cannot be decoded, and counts them. Without this and
    /// [`dead_letters_to`](PaneJob::dead_letters_to) the job ends at the first one, with
    /// [`JobError::Unreadable`]: nothing is lost unnoticed.
    pub fn skip_undecodable(mut self) -> Self {
        self.dead = None;
        self.undecodable = OnUndecodable::Skip;
        self
    }

    /// Promises that all records of a key are in the partition that murmur2 gives for the key's bytes, as a keyed Kafka
    /// producer's are: then the members of the group share the partitions, and each partition closes its windows alone.
    ///
    /// The promise is checked for every record whose key has [bytes](GroupKey::key_bytes); a key elsewhere ends the job
    /// with [`JobError::KeyNotCoPartitioned`]. Default: one member owns the whole topic and the others stand by, which is
    /// right for any key.
    pub fn co_partitioned(mut self) -> Self {
        self.mode = Mode::CoPartitioned;
        self
    }

    /// Publishes without transactions: a crash between output and offsets publishes whole panes again.
    pub fn at_least_once(mut self) -> Self {
        self.delivery = Delivery::AtLeastOnce;
        self
    }

    /// Ends at the high watermarks seen at the start. Windows that are still open stay so, for the next run. Default: it
    /// follows the topic for ever.
    pub fn stop_at_end(mut self) -> Self {
        self.ending = Ending::AtEnd;
        self
    }

    /// As [`stop_at_end`](PaneJob::stop_at_end), and publishes the windows that are open then, except those that end
    /// after the clock. What still comes for them is late.
    pub fn flush(mut self) -> Self {
        self.ending = Ending::AtEndFlushed;
        self
    }

    /// Starts at the group's offsets though they carry no state, or afresh though output of the group exists: what the
    /// job else refuses. Windows may then be published twice, or in part.
    pub fn reset(mut self) -> Self {
        self.reset = true;
        self
    }

    /// Tells `observer` of points and progress.
    pub fn observed(mut self, observer: Arc<dyn JobObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Calls `f` with the panes of each commit once they are visible, by window end and key. It runs in the job's task
    /// and must be quick. After a crash between the two, panes are visible that nobody was told of.
    pub fn on_published(mut self, f: impl FnMut(&[Pane<OwnedKey<R>, Row>]) + Send + 'static) -> Self {
        self.published = Some(Box::new(f));
        self
    }

    /// Changes settings that have no verb: idle timeout, horizon, commit interval, request limits. Called when the job is
    /// run, in order, after everything else is set.
    pub fn configure(mut self, f: impl FnOnce(&mut JobSettings, &mut RunSettings) + Send + 'static) -> Self {
        self.changes.push(Box::new(f));
        self
    }
}

impl<R, A> PaneJob<R, A>
where
    R: KeyedRecords,
    A: Aggregate<R::Value, Out = Row> + Sync,
{
    /// The job, ready to run.
    pub fn run_with(self, sink: PaneSink) -> JobRun<PaneLogic<R, A>> {
        JobRun::new(self.into_job(sink))
    }

    fn into_job(self, sink: PaneSink) -> Result<WindowJob<PaneLogic<R, A>>, JobError> {
        let keyed = self.job.keyed;
        let windows = self.job.windows.checked()?;
        let names = self.aggregate.finish(&self.aggregate.init());
        check_names(names.names(), &[&keyed.name, WINDOW_START, WINDOW_END])?;

        let mut job = JobSettings::new(windows, hash(&windows, &self.aggregate.signature()));
        job.mode = self.mode;
        let PaneSink { settings, topic } = sink;
        let input = keyed.input.topics.first().cloned().unwrap_or_default();
        let topics = Topics { input, panes: topic, late: self.late, dead: self.dead };
        let mut run = RunSettings::new(keyed.input, settings);
        run.delivery = self.delivery;
        run.ending = self.ending;
        run.reset = self.reset;
        run.output_topics = topics.written().cloned().collect();
        for change in self.changes {
            change(&mut job, &mut run);
        }
        if let Some(topic) = run.output_topics.iter().find(|topic| run.input.topics.contains(topic)) {
            return Err(JobError::OutputIsInput { topic: topic.to_string() });
        }

        let aggregate = SharedAggregate::new(self.aggregate);
        let logic = PaneLogic::new(keyed.reader, aggregate, &keyed.name, topics)
            .on_undecodable(self.undecodable)
            .published(self.published);
        let job = WindowJob::new(run, job, logic);
        Ok(match self.observer {
            Some(observer) => job.observed(observer),
            None => job,
        })
    }
}

/// What the job computes: windows, and the names and kinds of the aggregates.
fn hash(windows: &TumblingWindows, aggregates: &str) -> JobHash {
    let described = format!(
        "tumbling {} ms, offset {} ms, grace {} ms",
        windows.size(),
        windows.offset(),
        windows.grace()
    );
    JobHash::of(&[&described, aggregates])
}
