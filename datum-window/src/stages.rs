//! `key_by`, `window`, `aggregate`: event-time windows over any stream, in memory.
//!
//! ```
//! use datum_core::prelude::*;
//! use datum_window::stages::KeyByOps;
//! use datum_window::{Aggregates, Tumbling, secs};
//!
//! #[derive(Clone)]
//! struct Reading {
//!     at_ms: i64,
//!     room: String,
//!     celsius: f64,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StreamError> {
//! let reading = |at_ms, room: &str, celsius| Reading { at_ms, room: room.into(), celsius };
//! let panes = Source::from_iter([reading(1_000, "attic", 30.0), reading(2_000, "attic", 32.0), reading(31_500, "hall", 20.0)])
//!     .key_by(|r| r.room.as_str())
//!     .window(Tumbling::of(secs(30)).grace(secs(1)), |r| r.at_ms)
//!     .aggregate(Aggregates::<Reading>::new().count("n").mean("celsius", |r| r.celsius))
//!     .run_with(Sink::collect())?
//!     .await?;
//! assert_eq!(panes.len(), 2);
//! assert_eq!((&*panes[0].key, panes[0].window.end), ("attic", 30_000));
//! assert_eq!(panes[0].value.get("celsius").and_then(|v| v.as_f64()), Some(31.0));
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//! Nothing is stored: what open windows hold is gone when the stream fails or the process dies. Windows over a Kafka topic that must survive that, and be
//! published exactly once, are a job of their own (`Source::kafka_job`), with the same verbs and the same answer.
//!
//! # What the answer is
//! That of this [crate]: the stream is one partition, unless [`partitioned_by`](WindowedStream::partitioned_by) tells the parts of a merged one
//! apart. An element is late when an earlier one of its partition had already reached the window's end plus grace.
//!
//! # Costs
//! Per element one look-up of the borrowed key and the aggregates; per open window, key and partition one accumulator.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use datum_core::blueprint::{Built, KeepLeft, Operator, StreamOps};
use datum_core::error::StreamError;
use datum_core::forward;
use datum_core::materializer::Materializer;
use datum_core::ops::{MapConcat, MapConcatOps};
use datum_core::stage::{CancelCause, Driven, Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};

use crate::{Aggregate, GroupKey, KeyedWindows, Millis, Pane, Placement, RecordPosition, Tumbling, Window};

const STAGE: &str = "window";
/// Elements that belonged to windows closed for them.
const LATE: &str = "datum_window_late_total";

/// Adds [`key_by`](KeyByOps::key_by).
pub trait KeyByOps: StreamOps {
    /// Says what elements are grouped by: a key that an element lends, such as `|r| r.region.as_str()`.
    ///
    /// By itself it changes nothing: [`window`](KeyedStream::window) and [`aggregate`](WindowedStream::aggregate) follow.
    fn key_by<Q, F>(self, key: F) -> KeyedStream<Self, F, Q>
    where
        Q: GroupKey + ?Sized + 'static,
        F: Fn(&Self::Item) -> &Q + Send + 'static,
    {
        KeyedStream { stream: self, key, lends: PhantomData }
    }
}

impl<S: StreamOps> KeyByOps for S {}

/// A stream whose elements have a group key.
#[must_use = "a keyed stream does nothing before it is windowed"]
pub struct KeyedStream<S, F, Q: ?Sized> {
    stream: S,
    key: F,
    lends: PhantomData<fn(&Q)>,
}

impl<S: StreamOps, F, Q: ?Sized> KeyedStream<S, F, Q> {
    /// Puts each element into the window its event time is in; `at` reads that in milliseconds. The description of the windows is checked
    /// when the stream is built.
    pub fn window<T>(self, windows: Tumbling, at: T) -> WindowedStream<S, F, T, Q>
    where
        T: Fn(&S::Item) -> Millis + Send + 'static,
    {
        WindowedStream { keyed: self, windows, at, partition: None, late: None }
    }
}

/// Which part of the input an element came from.
type PartitionOf<In> = Option<Arc<dyn Fn(&In) -> u32 + Send + Sync>>;
/// Who is given late elements.
type OnLate<In> = Option<Arc<dyn Fn(In, Window) + Send + Sync>>;

/// A stream whose elements have a group key and a window.
#[must_use = "a windowed stream does nothing before it is aggregated"]
pub struct WindowedStream<S: StreamOps, F, T, Q: ?Sized> {
    keyed: KeyedStream<S, F, Q>,
    windows: Tumbling,
    at: T,
    partition: PartitionOf<S::Item>,
    late: OnLate<S::Item>,
}

/// What [`aggregate`](WindowedStream::aggregate) makes of a stream `S`.
pub type Aggregated<S, F, T, Q, A> = <<S as StreamOps>::Then<
    WindowAggregate<<S as StreamOps>::Item, F, T, Q, A>,
    KeepLeft,
> as StreamOps>::Then<
    MapConcat<fn(Closed<Q, A, <S as StreamOps>::Item>) -> Closed<Q, A, <S as StreamOps>::Item>>,
    KeepLeft,
>;

/// The panes that one element has closed, by window end and then by key.
pub type Closed<Q, A, In> = Vec<Pane<<Q as GroupKey>::Owned, <A as Aggregate<In>>::Out>>;

impl<S: StreamOps, F, T, Q> WindowedStream<S, F, T, Q>
where
    Q: GroupKey + ?Sized + 'static,
    F: Fn(&S::Item) -> &Q + Send + 'static,
    T: Fn(&S::Item) -> Millis + Send + 'static,
{
    /// Tells the ordered parts of a merged stream apart, by a small number: each then has a watermark of its own, the slowest holds windows open, and no
    /// part makes elements of another late. A part takes part from its first element on. Default: all of the stream is one part.
    pub fn partitioned_by(mut self, partition: impl Fn(&S::Item) -> u32 + Send + Sync + 'static) -> Self {
        self.partition = Some(Arc::new(partition));
        self
    }

    /// Gives late elements to `f`, with the window they missed. Default: they are only counted, in the metric `datum_window_late_total`.
    pub fn on_late(mut self, f: impl Fn(S::Item, Window) + Send + Sync + 'static) -> Self {
        self.late = Some(Arc::new(f));
        self
    }

    /// Emits one [`Pane`] per key and window, once, by window end and then by key.
    ///
    /// A failure of the upstream drops what open windows hold. A panic in a closure or in the aggregate is supervised: `Resume` drops the
    /// element, `Restart` also what the open windows hold; the watermarks stay, so no window is emitted twice.
    ///
    /// - **Emits** when the smallest watermark of the partitions has reached a window's end plus grace, and at the end whatever is open.
    /// - **Backpressures** when downstream does and panes wait for it.
    /// - **Completes** when upstream has completed and all panes were emitted.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with a [`TumblingError`](crate::TumblingError) when the windows are none.
    pub fn aggregate<A>(self, aggregate: A) -> Aggregated<S, F, T, Q, A>
    where
        A: Aggregate<S::Item>,
    {
        let KeyedStream { stream, key, lends } = self.keyed;
        let operator = WindowAggregate {
            key,
            at: self.at,
            partition: self.partition,
            late: self.late,
            windows: self.windows,
            aggregate,
            lends,
        };
        let each: fn(Closed<Q, A, S::Item>) -> Closed<Q, A, S::Item> = std::convert::identity;
        stream.then(operator).map_concat(each)
    }
}

/// The operator of [`aggregate`](WindowedStream::aggregate).
pub struct WindowAggregate<In, F, T, Q: ?Sized, A> {
    key: F,
    at: T,
    partition: PartitionOf<In>,
    late: OnLate<In>,
    windows: Tumbling,
    aggregate: A,
    lends: PhantomData<fn(&Q)>,
}

impl<In, F: Clone, T: Clone, Q: ?Sized, A: Clone> Clone for WindowAggregate<In, F, T, Q, A> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            at: self.at.clone(),
            partition: self.partition.clone(),
            late: self.late.clone(),
            windows: self.windows,
            aggregate: self.aggregate.clone(),
            lends: PhantomData,
        }
    }
}

impl<In, F, T, Q, A> Operator<In> for WindowAggregate<In, F, T, Q, A>
where
    In: Send + 'static,
    F: Fn(&In) -> &Q + Send + 'static,
    T: Fn(&In) -> Millis + Send + 'static,
    Q: GroupKey + ?Sized + 'static,
    A: Aggregate<In>,
{
    type Out = Closed<Q, A, In>;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = WindowStage<U, F, T, Q, A>;

    fn attach<U: Stage<Out = In>>(self, up: U, m: &Materializer) -> Built<Self::Stage<U>, ()> {
        let windows = self.windows.checked().map_err(|error| StreamError::failed(STAGE, error))?;
        let open = Open {
            windows: KeyedWindows::new(windows, self.aggregate),
            key: self.key,
            at: self.at,
            partition: self.partition,
            late: self.late,
            seen: 0,
        };
        Ok((WindowStage { up: Up::new(up), open, supervision: m.supervision() }, ()))
    }
}

/// The stage of [`aggregate`](WindowedStream::aggregate).
pub struct WindowStage<U: Stage, F, T, Q: GroupKey + ?Sized, A: Aggregate<U::Out>> {
    up: Up<U>,
    open: Open<U::Out, F, T, Q, A>,
    supervision: Supervision,
}

impl<U: Stage, F, T, Q: GroupKey + ?Sized, A: Aggregate<U::Out>> fmt::Debug for WindowStage<U, F, T, Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowStage").field("open", &self.open.windows.open()).finish_non_exhaustive()
    }
}

/// The open windows, and how an element finds its own.
struct Open<In, F, T, Q: GroupKey + ?Sized, A: Aggregate<In>> {
    windows: KeyedWindows<Q::Owned, In, A>,
    key: F,
    at: T,
    partition: PartitionOf<In>,
    late: OnLate<In>,
    seen: i64,
}

impl<In, F, T, Q, A> Open<In, F, T, Q, A>
where
    F: Fn(&In) -> &Q,
    T: Fn(&In) -> Millis,
    Q: GroupKey + ?Sized,
    A: Aggregate<In>,
{
    /// Takes an element; gives the panes it has closed.
    #[inline]
    fn add(&mut self, element: In) -> Option<Closed<Q, A, In>> {
        let partition = self.partition.as_ref().map_or(0, |of| of(&element));
        let position = RecordPosition::new(partition, self.seen, (self.at)(&element));
        self.seen += 1;
        if let Placement::Late(window) = self.windows.add(position, (self.key)(&element), &element) {
            metrics::counter!(LATE).increment(1);
            if let Some(late) = &self.late {
                late(element, window);
            }
        }
        // A late element may be the one that lets windows close.
        self.windows.ripe().then(|| self.windows.close())
    }
}

impl<U, F, T, Q, A> WindowStage<U, F, T, Q, A>
where
    U: Stage,
    Q: GroupKey + ?Sized,
    A: Aggregate<U::Out>,
{
    fn resting(&self, otherwise: Progress) -> Progress {
        if self.open.windows.open().is_empty() && !self.up.live() { Progress::Complete } else { otherwise }
    }
}

impl<U, F, T, Q, A> Stage for WindowStage<U, F, T, Q, A>
where
    U: Stage,
    F: Fn(&U::Out) -> &Q + Send + 'static,
    T: Fn(&U::Out) -> Millis + Send + 'static,
    Q: GroupKey + ?Sized + 'static,
    A: Aggregate<U::Out>,
{
    type Out = Closed<Q, A, U::Out>;

    fn drive<P: FnMut(Self::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            let (open, mut judge, mut broke) = (&mut self.open, Judge::new(&self.supervision), false);
            let answer = self.up.drive(cx, |element| match guard(STAGE, || open.add(element)) {
                Ok(None) => Push::Continue(()),
                Ok(Some(panes)) => {
                    let flow = push(panes);
                    broke = flow.is_break();
                    flow
                }
                Err(error) => judge.state_failed(error, || open.windows.clear()),
            });
            if let Some(error) = judge.stopped_by() {
                self.open.windows.clear();
                return self.up.fail(error, cx);
            }
            match answer {
                Err(error) => {
                    self.open.windows.clear();
                    return Err(error);
                }
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(_) if broke => return Ok(self.resting(Progress::Stopped)),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
        if !self.open.windows.open().is_empty() {
            match guard(STAGE, || self.open.windows.finish()) {
                // The last panes: what downstream answers changes nothing.
                Ok(panes) => {
                    let _ = push(panes);
                }
                Err(error) => {
                    self.open.windows.clear();
                    if Judge::new(&self.supervision).element_failed(error.clone()).is_break() {
                        return Err(error);
                    }
                }
            }
        }
        Ok(Progress::Complete)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live()
            && let Err(error) = self.up.tend(cx)
        {
            self.open.windows.clear();
            return Err(error);
        }
        Ok(self.resting(Progress::Pending))
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.open.windows.clear();
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}
