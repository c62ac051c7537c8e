//! A job that knows its group key: its name, the windows, the aggregates.

use std::borrow::Cow;

use datum_kafka::ConsumerSettings;
use datum_window::{Aggregate, Name, Row, Tumbling};

use super::KeyedRecords;
use super::job::PaneJob;

/// A job whose records have a group key.
#[must_use = "a job does nothing until it is run"]
pub struct KeyedJob<R> {
    pub(super) input: ConsumerSettings,
    pub(super) reader: R,
    pub(super) name: Name,
}

impl<R> KeyedJob<R> {
    pub(super) const fn new(input: ConsumerSettings, reader: R) -> Self {
        Self { input, reader, name: Cow::Borrowed("key") }
    }

    /// The name under which panes show the key. Default `key`.
    pub fn named(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }

    /// Puts each record into the window its Kafka timestamp is in. The description is checked when the job is run.
    pub const fn window(self, windows: Tumbling) -> WindowedJob<R> {
        WindowedJob { keyed: self, windows }
    }
}

/// A job whose records have a group key and a window.
#[must_use = "a job does nothing until it is run"]
pub struct WindowedJob<R> {
    pub(super) keyed: KeyedJob<R>,
    pub(super) windows: Tumbling,
}

impl<R: KeyedRecords> WindowedJob<R> {
    /// Says what is computed over the records of one key in one window: usually
    /// [`Aggregates`](datum_window::Aggregates).
    ///
    /// Windows and the aggregates' names and kinds are what a restart compares with what is committed: a job that
    /// computes something else under the same group is refused while windows are open.
    pub fn aggregate<A>(self, aggregate: A) -> PaneJob<R, A>
    where
        A: Aggregate<R::Value, Out = Row> + Sync,
    {
        PaneJob::new(self, aggregate)
    }
}
