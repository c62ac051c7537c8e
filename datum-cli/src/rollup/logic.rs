//! The rollup as a job: how a record is read, what a window holds, what a cut writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use datum::codec::{DecodeError, Json, ProjectedJson};
use datum::job::machine::SideKind;
use datum::job::run::{JobLogic, LogicCut};
use datum::job::{Content, Payload};
use datum::kafka::producer::ProducerRecord;
use datum::kafka::wire::batch::Record;
use datum::window::format::JsonFormat;
use datum::window::{Aggregate, PartitionedPanes, RecordPosition, Row, Window};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::definition::{Metric, Region};
use super::panes::{KEY, RegionPane};
use crate::options::{OnBadRecord, RollupOptions};

/// Where the job's output goes.
#[derive(Clone, Debug)]
pub(super) struct Outputs {
    /// Panes.
    pub(super) panes: Arc<str>,
    /// Late records and those too far ahead, if anywhere.
    pub(super) late: Option<Arc<str>>,
    /// Records that could not be decoded, if anywhere.
    pub(super) dead_letter: Option<Arc<str>>,
}

impl Outputs {
    pub(super) fn of(options: &RollupOptions) -> Self {
        Self {
            panes: options.out_topic.as_str().into(),
            late: options.late_topic.as_deref().map(Arc::from),
            dead_letter: options.dead_letter_topic.as_deref().map(Arc::from),
        }
    }

    pub(super) fn topics(&self) -> Vec<Arc<str>> {
        [Some(&self.panes), self.late.as_ref(), self.dead_letter.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}

/// Reads metrics, aggregates with what `aggregate` makes, writes panes as JSON.
pub(super) struct RollupLogic<F> {
    aggregate: F,
    outputs: Outputs,
    on_bad_record: OnBadRecord,
    metrics: ProjectedJson<Metric>,
    /// The record read last; what it lends to the windows.
    current: Option<Metric>,
    read: Arc<AtomicU64>,
    published: UnboundedSender<Vec<RegionPane>>,
}

impl<F> RollupLogic<F> {
    /// A logic that has read nothing, and the panes that it will have published.
    pub(super) fn new(
        aggregate: F,
        outputs: Outputs,
        on_bad_record: OnBadRecord,
    ) -> (Self, UnboundedReceiver<Vec<RegionPane>>) {
        let (published, panes) = unbounded_channel();
        let (metrics, read) = (Json::projected(), Arc::default());
        (Self { aggregate, outputs, on_bad_record, metrics, current: None, read, published }, panes)
    }

    /// How many records were read so far.
    pub(super) fn read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }
}

impl<A, F> JobLogic for RollupLogic<F>
where
    A: Aggregate<Metric, Out = Row>,
    F: Fn() -> A + Clone + Send + 'static,
{
    type Payload = RollupPayload<A>;
    type Error = DecodeError;

    fn payloads(&self) -> impl FnMut() -> RollupPayload<A> + Send + 'static {
        let aggregate = self.aggregate.clone();
        move || RollupPayload(PartitionedPanes::new(aggregate()))
    }

    fn read<'a>(
        &'a mut self,
        _: RecordPosition,
        record: &Record<'a>,
    ) -> Result<Content<&'a Metric>, DecodeError> {
        self.read.fetch_add(1, Ordering::Relaxed);
        match self.metrics.decode(record.value().unwrap_or_default()) {
            Ok(metric) => Ok(Content::Record(self.current.insert(metric))),
            Err(error) => match self.on_bad_record {
                OnBadRecord::DeadLetter => Ok(Content::Undecodable),
                OnBadRecord::Skip => Ok(Content::Skipped),
                OnBadRecord::Fail => Err(error),
            },
        }
    }

    fn key_bytes<'a>(metric: &'a &Metric) -> Option<&'a [u8]> {
        Some(metric.region.as_str().as_bytes())
    }

    /// Copied, so that it does not keep its batch in memory.
    fn side(record: &Record<'_>) -> SideRecord {
        SideRecord {
            key: record.key().map(Bytes::copy_from_slice),
            value: record.value().map(Bytes::copy_from_slice),
        }
    }

    fn write(&mut self, cut: &LogicCut<Self>, out: &mut Vec<ProducerRecord>) {
        let json = JsonFormat::new(KEY);
        for pane in cut.closed.iter().flat_map(|closed| &closed.panes) {
            let mut value = String::with_capacity(384);
            json.write(pane, &mut value);
            let record = ProducerRecord::new(Arc::clone(&self.outputs.panes), value);
            out.push(record.key(pane.key.as_str().to_owned()).timestamp(pane.timestamp()));
        }
        for side in &cut.sides {
            let topic = match side.kind {
                SideKind::Late(_) | SideKind::Ahead => self.outputs.late.as_ref(),
                SideKind::Undecodable => self.outputs.dead_letter.as_ref(),
            };
            let Some(topic) = topic else { continue };
            let mut record =
                ProducerRecord::new(Arc::clone(topic), Bytes::new()).timestamp(side.at.timestamp);
            record.key.clone_from(&side.record.key);
            record.value.clone_from(&side.record.value);
            out.push(record);
        }
    }

    fn committed(&mut self, cut: &LogicCut<Self>) {
        let panes: Vec<_> = cut.closed.iter().flat_map(|closed| closed.panes.iter().cloned()).collect();
        // Nobody listens any more when the command is ending.
        let _ = self.published.send(panes);
    }
}

/// A record that leaves beside the panes, as it came.
pub(super) struct SideRecord {
    key: Option<Bytes>,
    value: Option<Bytes>,
}

/// The open windows: accumulators by partition, window and region.
pub(super) struct RollupPayload<A: Aggregate<Metric>>(PartitionedPanes<Region, Metric, A>);

impl<A: Aggregate<Metric, Out = Row>> Payload for RollupPayload<A> {
    type Input<'a> = &'a Metric;
    type Side = SideRecord;
    type Closed = Vec<RegionPane>;

    #[inline]
    fn add(&mut self, at: RecordPosition, window: Window, metric: &Metric) {
        self.0.add(at.partition, window, &metric.region, metric);
    }

    fn close(&mut self, window: Window) -> Vec<RegionPane> {
        self.0.close(window)
    }
}
