//! A job that knows its group key: its name, the windows, the aggregates.

use std::marker::PhantomData;

use datum_kafka::ConsumerSettings;
use datum_window::{Aggregate, Name, Row, Tumbling};

use super::job::PaneJob;
use super::{GroupKey, OwnedRecords};

/// A job whose records have a group key.
#[must_use = "a job does nothing until it is run"]
pub struct KeyedJob<R, F, Q: ?Sized> {
    pub(super) input: ConsumerSettings,
    pub(super) reader: R,
    pub(super) key: F,
    pub(super) name: Name,
    pub(super) lends: PhantomData<fn(&Q)>,
}

impl<R, F, Q: ?Sized> KeyedJob<R, F, Q> {
    /// The name under which panes show the key. Default `key`.
    pub fn named(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }

    /// Puts each record into the window its Kafka timestamp is in. The description is checked when the job is run.
    pub const fn window(self, windows: Tumbling) -> WindowedJob<R, F, Q> {
        WindowedJob { keyed: self, windows }
    }
}

/// A job whose records have a group key and a window.
#[must_use = "a job does nothing until it is run"]
pub struct WindowedJob<R, F, Q: ?Sized> {
    pub(super) keyed: KeyedJob<R, F, Q>,
    pub(super) windows: Tumbling,
}

impl<R: OwnedRecords, F, Q: GroupKey + ?Sized> WindowedJob<R, F, Q> {
    /// Says what is computed over the records of one key in one window: usually
    /// [`Aggregates`](datum_window::Aggregates).
    ///
    /// Windows and the aggregates' names and kinds are what a restart compares with what is committed: a job that
    /// computes something else under the same group is refused while windows are open.
    pub fn aggregate<A>(self, aggregate: A) -> PaneJob<R, F, Q, A>
    where
        A: Aggregate<R::Owned, Out = Row> + Sync,
    {
        PaneJob::new(self, aggregate)
    }
}
