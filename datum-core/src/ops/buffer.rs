//! `buffer`: lets the upstream run ahead of demand, and says what happens when it runs too far.

use crate::blueprint::{Built, KeepLeft, Operator, StreamOps};
use crate::error::{ErrorKind, StreamError};
use crate::forward;
use crate::materializer::Materializer;
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up, guard};
use metrics::Counter;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Adds [`buffer`](BufferOps::buffer).
pub trait BufferOps: StreamOps {
    /// Holds up to `capacity` elements that the upstream made while downstream was busy.
    ///
    /// While there is demand elements pass straight through. Without demand the buffer fills; what happens to the
    /// element after the last that fits is the [`OverflowStrategy`]. With every strategy but `Backpressure` the
    /// upstream is never held up. Dropped elements are counted in the metric `datum_stream_dropped_total` (labels:
    /// `stage`, `strategy`), and by a hook where [`OverflowStrategy::on_drop`] sets one.
    ///
    /// - **Emits** when an element is held, or comes while there is demand.
    /// - **Backpressures** with `Backpressure` when the buffer is full; else never.
    /// - **Completes** when upstream has completed and what is held was emitted. A failure drops what is held.
    /// - **Cancels** when downstream cancels.
    ///
    /// # Errors
    /// The run fails to build with [`InvalidArgument`](ErrorKind::InvalidArgument) when `capacity` is 0; the stream
    /// fails with [`BufferOverflow`](ErrorKind::BufferOverflow) where the strategy is `Fail`.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let lost = Arc::new(AtomicU64::new(0));
    /// let count = lost.clone();
    /// let latest = Source::from_iter(0..100)
    ///     .buffer(8, OverflowStrategy::DropHead.on_drop(move |n| {
    ///         count.fetch_add(n, Ordering::Relaxed);
    ///     }))
    ///     .map_async(1, |x| async move {
    ///         tokio::task::yield_now().await;
    ///         x
    ///     })
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(latest.len() as u64 + lost.load(Ordering::Relaxed), 100);
    /// # Ok(())
    /// # }
    /// ```
    fn buffer(self, capacity: usize, overflow: impl Into<Overflow>) -> Self::Then<Buffer, KeepLeft> {
        self.then(Buffer { capacity, overflow: overflow.into() })
    }
}

impl<S: StreamOps> BufferOps for S {}

/// What a full buffer does with one element more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowStrategy {
    /// Takes no more until there is room: nothing is lost, the upstream waits.
    Backpressure,
    /// Drops the oldest held element.
    DropHead,
    /// Drops the youngest held element.
    DropTail,
    /// Drops everything held, and starts over with the new element.
    DropBuffer,
    /// Drops the new element.
    DropNew,
    /// Fails the stream.
    Fail,
}

impl OverflowStrategy {
    /// Calls `hook` with the number of elements dropped, each time some are. A panic in it fails the stream.
    #[must_use]
    pub fn on_drop(self, hook: impl Fn(u64) + Send + Sync + 'static) -> Overflow {
        Overflow { strategy: self, hook: Some(Arc::new(hook)) }
    }

    fn label(self) -> &'static str {
        match self {
            OverflowStrategy::Backpressure => "backpressure",
            OverflowStrategy::DropHead => "drop-head",
            OverflowStrategy::DropTail => "drop-tail",
            OverflowStrategy::DropBuffer => "drop-buffer",
            OverflowStrategy::DropNew => "drop-new",
            OverflowStrategy::Fail => "fail",
        }
    }
}

/// An [`OverflowStrategy`], and who is told of drops.
#[derive(Clone)]
pub struct Overflow {
    strategy: OverflowStrategy,
    hook: Option<Arc<dyn Fn(u64) + Send + Sync>>,
}

impl From<OverflowStrategy> for Overflow {
    fn from(strategy: OverflowStrategy) -> Self {
        Overflow { strategy, hook: None }
    }
}

impl fmt::Debug for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overflow")
            .field("strategy", &self.strategy)
            .field("hook", &self.hook.is_some())
            .finish()
    }
}

/// The operator of [`buffer`](BufferOps::buffer).
#[derive(Clone, Debug)]
pub struct Buffer {
    capacity: usize,
    overflow: Overflow,
}

impl<In: Send + 'static> Operator<In> for Buffer {
    type Out = In;
    type Mat = ();
    type Stage<U: Stage<Out = In>> = BufferStage<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, materializer: &Materializer) -> Built<BufferStage<U>, ()> {
        if self.capacity == 0 {
            let reason = "a buffer of 0 elements buffers nothing; give at least 1, or leave it out";
            return Err(ErrorKind::InvalidArgument { stage: STAGE, reason }.into());
        }
        let stage = materializer.name().unwrap_or(STAGE);
        let strategy = self.overflow.strategy.label();
        let dropped = metrics::counter!("datum_stream_dropped_total", "stage" => stage, "strategy" => strategy);
        let held = Held { queue: VecDeque::new(), how: self, dropped, failed: None };
        Ok((BufferStage { up: Up::new(up), held }, ()))
    }
}

/// The stage of [`buffer`](BufferOps::buffer).
#[derive(Debug)]
pub struct BufferStage<U: Stage> {
    up: Up<U>,
    held: Held<U::Out>,
}

struct Held<T> {
    queue: VecDeque<T>,
    how: Buffer,
    dropped: Counter,
    failed: Option<StreamError>,
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("len", &self.queue.len()).field("how", &self.how).finish_non_exhaustive()
    }
}

impl<T> Held<T> {
    /// Whether another element may be asked for.
    fn wants(&self) -> bool {
        self.how.overflow.strategy != OverflowStrategy::Backpressure || self.queue.len() < self.how.capacity
    }

    /// Takes an element that nobody wants now. `Break`: no more, or the stream has failed.
    fn put(&mut self, element: T) -> Push {
        if self.queue.len() >= self.how.capacity {
            let lost = match self.how.overflow.strategy {
                OverflowStrategy::Backpressure => 0,
                OverflowStrategy::DropHead => {
                    self.queue.pop_front();
                    1
                }
                OverflowStrategy::DropTail => {
                    self.queue.pop_back();
                    1
                }
                OverflowStrategy::DropBuffer => {
                    let lost = self.queue.len() as u64;
                    self.queue.clear();
                    lost
                }
                OverflowStrategy::DropNew => return self.lost(1),
                OverflowStrategy::Fail => {
                    let capacity = self.how.capacity;
                    self.failed = Some(ErrorKind::BufferOverflow { stage: STAGE, capacity }.into());
                    return Push::Break(());
                }
            };
            if lost > 0 && self.lost(lost).is_break() {
                return Push::Break(());
            }
        }
        self.queue.push_back(element);
        if self.wants() { Push::Continue(()) } else { Push::Break(()) }
    }

    #[cold]
    fn lost(&mut self, n: u64) -> Push {
        self.dropped.increment(n);
        if let Some(hook) = &self.how.overflow.hook
            && let Err(error) = guard(STAGE, || hook(n))
        {
            self.failed = Some(error);
            return Push::Break(());
        }
        Push::Continue(())
    }
}

impl<U: Stage> Stage for BufferStage<U> {
    type Out = U::Out;

    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        while let Some(x) = self.held.queue.pop_front() {
            if push(x).is_break() {
                let over = self.held.queue.is_empty() && !self.up.live();
                return Ok(if over { Progress::Complete } else { Progress::Stopped });
            }
        }
        if self.up.live() { self.up.drive(cx, push) } else { Ok(Progress::Complete) }
    }

    /// Fills.
    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        while self.up.live() {
            let held = &mut self.held;
            let answer =
                if held.wants() { self.up.drive(cx, |x| held.put(x)) } else { self.up.tend(cx) };
            if let Some(error) = self.held.failed.take() {
                self.held.queue.clear();
                return self.up.fail(error, cx);
            }
            match answer {
                Err(error) => {
                    self.held.queue.clear();
                    return Err(error);
                }
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(Progress::Stopped | Progress::Complete) => {}
            }
        }
        Ok(if self.held.queue.is_empty() { Progress::Complete } else { Progress::Pending })
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.held.queue.clear();
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}

const STAGE: &str = "buffer";
