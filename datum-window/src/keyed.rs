//! Keyed windows over input that lives in memory: panes, watermarks and closing in one place.
//!
//! Every partition that has shown a record takes part in the minimum of the watermarks until
//! [`finish`](KeyedWindows::finish); a partition without records does not hold windows open, since nothing says that
//! it exists (name it with [`expect`](KeyedWindows::expect) to make it count from the start).
//!
//! It ends with [`finish`](KeyedWindows::finish), which publishes whatever is open. Memory is one accumulator per
//! partition, open window and key. Nothing here fails.

use crate::{
    Aggregate, Key, KeyRef, Millis, Pane, PartitionedPanes, RecordPosition, TumblingWindows, Watermark,
    Window,
};

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It is in its window's pane.
    Accepted,
    /// Its window had closed for it: an earlier record of its partition had reached the window's end plus grace, or
    /// the window was published. Counted, and in no pane.
    Late(Window),
}

/// Panes by window and key, with the watermarks that close them.
///
/// ```
/// use datum_window::{Aggregates, KeyedWindows, RecordPosition, Tumbling};
///
/// let counts = Aggregates::<i64>::new().count("n").sum("total", |x| *x);
/// let mut w = KeyedWindows::<String, _, _>::new(Tumbling::of_millis(1_000).checked()?, counts);
/// w.add(RecordPosition::new(0, 0, 100), "a", &5);
/// w.add(RecordPosition::new(0, 1, 900), "a", &7);
/// w.add(RecordPosition::new(0, 2, 1_000), "b", &1); // closes [0, 1000)
/// let panes = w.close();
/// assert_eq!(panes.len(), 1);
/// assert_eq!(panes[0].value.get("total").and_then(|v| v.as_int()), Some(12));
/// # Ok::<(), datum_window::TumblingError>(())
/// ```
pub struct KeyedWindows<K, In: ?Sized, A: Aggregate<In>> {
    windows: TumblingWindows,
    panes: PartitionedPanes<K, In, A>,
    partitions: Vec<Progress>,
    recent: usize,
    open: Vec<Window>,
    published: Millis,
    late: u64,
}

struct Progress {
    partition: u32,
    watermark: Watermark,
    current: Option<(Window, Millis)>,
}

impl<K: Key, In: ?Sized, A: Aggregate<In>> KeyedWindows<K, In, A> {
    /// No records yet.
    #[must_use]
    pub const fn new(windows: TumblingWindows, aggregate: A) -> Self {
        Self {
            windows,
            panes: PartitionedPanes::new(aggregate),
            partitions: Vec::new(),
            recent: 0,
            open: Vec::new(),
            published: Millis::MIN,
            late: 0,
        }
    }

    /// Makes `partition` hold windows open before its first record.
    pub fn expect(&mut self, partition: u32) {
        self.find_or_add(partition);
    }

    /// Puts one record into its window, unless that is closed for it, and moves its partition's watermark.
    ///
    /// Late records move it too. Closes nothing: see [`close`](Self::close).
    #[inline]
    pub fn add<Q: KeyRef<K> + ?Sized>(&mut self, at: RecordPosition, key: &Q, input: &In) -> Placement {
        if self.partitions.get(self.recent).is_none_or(|p| p.partition != at.partition) {
            self.find_or_add(at.partition);
        }
        let progress = &mut self.partitions[self.recent];
        let before = progress.watermark;
        progress.watermark.advance(at.timestamp);
        let (window, closes) = match progress.current {
            Some((w, closes)) if self.windows.contains(w, at.timestamp) => (w, closes),
            _ => {
                let w = self.windows.window_of(at.timestamp);
                (w, self.windows.closes_at(w))
            }
        };
        if before.reached(closes) || closes <= self.published {
            self.late += 1;
            return Placement::Late(window);
        }
        if progress.current.is_none_or(|(w, _)| w != window) {
            progress.current = Some((window, closes));
            if let Err(place) = self.open.binary_search(&window) {
                self.open.insert(place, window);
            }
        }
        self.panes.add(at.partition, window, key, input);
        Placement::Accepted
    }

    #[cold]
    fn find_or_add(&mut self, partition: u32) {
        self.recent = self.partitions.iter().position(|p| p.partition == partition).unwrap_or_else(|| {
            self.partitions.push(Progress { partition, watermark: Watermark::NONE, current: None });
            self.partitions.len() - 1
        });
    }

    /// The smallest of the partitions' watermarks.
    #[must_use]
    pub fn watermark(&self) -> Watermark {
        self.partitions.iter().map(|p| p.watermark).min().unwrap_or_default()
    }

    /// Publishes every window whose end plus grace the smallest watermark has reached: by window end, then by key.
    pub fn close(&mut self) -> Vec<Pane<K, A::Out>> {
        let watermark = self.watermark();
        self.close_while(|closes| watermark.reached(closes))
    }

    /// The input has ended: publishes whatever is open.
    pub fn finish(&mut self) -> Vec<Pane<K, A::Out>> {
        self.close_while(|_| true)
    }

    fn close_while(&mut self, ripe: impl Fn(Millis) -> bool) -> Vec<Pane<K, A::Out>> {
        let count = self.open.iter().take_while(|w| ripe(self.windows.closes_at(**w))).count();
        let mut out = Vec::new();
        for window in self.open.drain(..count) {
            self.published = self.published.max(self.windows.closes_at(window));
            out.append(&mut self.panes.close(window));
        }
        if count > 0 {
            for progress in &mut self.partitions {
                progress.current = None;
            }
        }
        out
    }

    /// Forgets what the open windows hold. Watermarks stay, so that no window that was published opens again.
    pub fn clear(&mut self) {
        self.panes.clear();
        self.open.clear();
        for progress in &mut self.partitions {
            progress.current = None;
        }
    }

    /// Whether [`close`](Self::close) would publish something. Cheap: for asking after every batch of records.
    #[must_use]
    pub fn ripe(&self) -> bool {
        self.open.first().is_some_and(|w| self.watermark().reached(self.windows.closes_at(*w)))
    }

    /// How many records were late.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// The open windows, earliest first.
    #[must_use]
    pub fn open(&self) -> &[Window] {
        &self.open
    }
}
