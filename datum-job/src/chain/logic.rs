//! What a chain is for the job: how a record is read, what its windows hold, what a cut writes.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use datum_kafka::producer::ProducerRecord;
use datum_kafka::wire::batch::Record;
use datum_window::format::JsonFormat;
use datum_window::{Aggregate, Key, Pane, PartitionedPanes, RecordPosition, Row, Window};

use super::job::OwnedKey;
use super::{GroupKey, KeyedRecords, Undecodable};
use crate::machine::{Content, Payload, Side, SideKind};
use crate::run::{JobLogic, LogicCut};

/// The header that says why a record was routed beside the panes.
const REASON_HEADER: &[u8] = b"datum-reason";
/// The header that says where in the input a routed record stands.
const INPUT_HEADER: &[u8] = b"datum-input";
/// A pane of a dozen aggregates fits.
const PANE_BYTES: usize = 384;

/// Who is told of panes that have become visible.
pub(super) type Published<K> = Option<Box<dyn FnMut(&[Pane<K, Row>]) + Send>>;

/// What becomes of a record that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnUndecodable {
    Fail,
    Skip,
    Route,
}

/// The topics of a job.
#[derive(Clone, Debug)]
pub(super) struct Topics {
    /// Where the records come from, for those that are routed.
    pub(super) input: Arc<str>,
    pub(super) panes: Arc<str>,
    pub(super) late: Option<Arc<str>>,
    pub(super) dead: Option<Arc<str>>,
}

impl Topics {
    /// Those it writes.
    pub(super) fn written(&self) -> impl Iterator<Item = &Arc<str>> {
        [Some(&self.panes), self.late.as_ref(), self.dead.as_ref()].into_iter().flatten()
    }
}

/// The logic of a chain.
pub struct PaneLogic<R: KeyedRecords, A> {
    reader: R,
    aggregate: SharedAggregate<A>,
    format: JsonFormat,
    topics: Topics,
    undecodable: OnUndecodable,
    published: Published<OwnedKey<R>>,
}

impl<R: KeyedRecords, A> PaneLogic<R, A> {
    pub(super) fn new(reader: R, aggregate: SharedAggregate<A>, name: &str, topics: Topics) -> Self {
        Self {
            reader,
            aggregate,
            format: JsonFormat::new(name),
            topics,
            undecodable: OnUndecodable::Fail,
            published: None,
        }
    }

    pub(super) const fn on_undecodable(mut self, policy: OnUndecodable) -> Self {
        self.undecodable = policy;
        self
    }

    pub(super) fn published(mut self, told: Published<OwnedKey<R>>) -> Self {
        self.published = told;
        self
    }

    fn pane(&self, pane: &Pane<OwnedKey<R>, Row>) -> ProducerRecord {
        let mut value = String::with_capacity(PANE_BYTES);
        self.format.write(pane, &mut value);
        let key = match pane.key.key_bytes() {
            Some(bytes) => Bytes::copy_from_slice(bytes),
            None => pane.key.to_value().to_string().into(),
        };
        ProducerRecord::new(Arc::clone(&self.topics.panes), value).key(key).timestamp(pane.timestamp())
    }

    fn side_record(&self, side: &Side<SideRecord>) -> Option<ProducerRecord> {
        let (topic, reason) = match side.kind {
            SideKind::Late(_) => (&self.topics.late, "late"),
            SideKind::Ahead => (&self.topics.late, "ahead"),
            SideKind::Undecodable => (&self.topics.dead, "undecodable"),
        };
        let from = format!("{}-{}@{}", self.topics.input, side.at.partition, side.at.offset);
        let mut record = ProducerRecord::default().timestamp(side.at.timestamp);
        record.topic = topic.clone()?;
        record.key.clone_from(&side.record.key);
        record.value.clone_from(&side.record.value);
        record.headers.clone_from(&side.record.headers);
        Some(record.header(REASON_HEADER, reason).header(INPUT_HEADER, from))
    }
}

impl<R, A> JobLogic for PaneLogic<R, A>
where
    R: KeyedRecords,
    A: Aggregate<R::Value, Out = Row> + Sync,
{
    type Payload = PanePayload<R::Key, R::Value, A>;
    type Error = Undecodable;

    fn payloads(&self) -> impl FnMut() -> Self::Payload + Send + 'static {
        let aggregate = self.aggregate.clone();
        move || PanePayload { panes: PartitionedPanes::new(aggregate.clone()), lends: PhantomData }
    }

    #[inline]
    fn read<U>(
        &mut self,
        _: RecordPosition,
        record: &Record<'_>,
        mut then: impl for<'a> FnMut(Content<(&'a R::Key, &'a R::Value)>) -> U,
    ) -> Result<U, Undecodable> {
        let bytes = record.value().unwrap_or_default();
        let content = match self.reader.lend(bytes, |key, value| then(Content::Record((key, value)))) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => Content::Filtered,
            Err(error) => match self.undecodable {
                OnUndecodable::Fail => return Err(error),
                OnUndecodable::Skip => Content::Skipped,
                OnUndecodable::Route => Content::Undecodable,
            },
        };
        Ok(then(content))
    }

    fn key_bytes<'a>((key, _): &'a (&R::Key, &R::Value)) -> Option<&'a [u8]> {
        key.key_bytes()
    }

    /// Copied, so that it does not keep its batch in memory.
    fn side(record: &Record<'_>) -> SideRecord {
        let header = |h: datum_kafka::wire::batch::Header<'_>| {
            (Bytes::copy_from_slice(h.key), h.value.map(Bytes::copy_from_slice))
        };
        SideRecord {
            key: record.key().map(Bytes::copy_from_slice),
            value: record.value().map(Bytes::copy_from_slice),
            headers: record.headers().map(header).collect(),
        }
    }

    fn write(&mut self, cut: &LogicCut<Self>, out: &mut Vec<ProducerRecord>) {
        out.extend(cut.closed.iter().flat_map(|closed| &closed.panes).map(|pane| self.pane(pane)));
        out.extend(cut.sides.iter().filter_map(|side| self.side_record(side)));
    }

    fn committed(&mut self, cut: &LogicCut<Self>) {
        let Some(told) = &mut self.published else { return };
        for closed in cut.closed.iter().filter(|closed| !closed.panes.is_empty()) {
            told(&closed.panes);
        }
    }
}

/// A record that leaves beside the panes, as it came.
#[derive(Clone, Debug)]
pub struct SideRecord {
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(Bytes, Option<Bytes>)>,
}

/// The open windows: accumulators by partition, window and key.
pub struct PanePayload<Q: GroupKey + ?Sized, V: 'static, A: Aggregate<V> + Sync> {
    panes: PartitionedPanes<Q::Owned, V, SharedAggregate<A>>,
    lends: PhantomData<fn(&Q)>,
}

impl<Q, V, A> Payload for PanePayload<Q, V, A>
where
    Q: GroupKey + ?Sized + 'static,
    V: 'static,
    A: Aggregate<V, Out = Row> + Sync,
{
    type Input<'a> = (&'a Q, &'a V);
    type Side = SideRecord;
    type Closed = Vec<Pane<Q::Owned, Row>>;

    #[inline]
    fn add(&mut self, at: RecordPosition, window: Window, (key, value): (&Q, &V)) {
        self.panes.add(at.partition, window, key, value);
    }

    fn close(&mut self, window: Window) -> Self::Closed {
        self.panes.close(window)
    }
}

/// One aggregate for all the starts of a job.
pub struct SharedAggregate<A>(Arc<A>);

impl<A> SharedAggregate<A> {
    pub(super) fn new(aggregate: A) -> Self {
        Self(Arc::new(aggregate))
    }
}

impl<A> Clone for SharedAggregate<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<In: ?Sized, A: Aggregate<In> + Sync> Aggregate<In> for SharedAggregate<A> {
    type Acc = A::Acc;
    type Out = A::Out;

    fn init(&self) -> A::Acc {
        self.0.init()
    }

    #[inline]
    fn add(&self, acc: &mut A::Acc, input: &In) {
        self.0.add(acc, input);
    }

    fn merge(&self, acc: &mut A::Acc, other: &A::Acc) {
        self.0.merge(acc, other);
    }

    fn finish(&self, acc: &A::Acc) -> A::Out {
        self.0.finish(acc)
    }

    fn signature(&self) -> Cow<'static, str> {
        self.0.signature()
    }
}
