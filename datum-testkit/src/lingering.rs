//! `lingering(..)`: a source that takes its time to close.

use datum_core::blueprint::{Blueprint, Built, Source};
use datum_core::materializer::Materializer;
use datum_core::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

/// What became of the [`lingering`] sources of one log. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct LingerLog(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    closed: AtomicU64,
    dropped: AtomicU64,
}

impl LingerLog {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        LingerLog::default()
    }

    /// How many sources were built.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.0.opened.load(Ordering::Relaxed)
    }

    /// How many were closed to the end.
    #[must_use]
    pub fn closed(&self) -> u64 {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// How many were dropped, closed or not.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

/// The elements of `elements`, from a source whose closing takes `polls` polls; each wakes itself. It ends only when
/// asked for more than it has, never together with its last element.
pub fn lingering<T: Send + 'static>(elements: Vec<T>, polls: u64, log: &LingerLog) -> Source<Lingering<T>> {
    Source::from_blueprint(Lingering { elements, polls, log: log.clone() })
}

/// The blueprint of [`lingering`].
#[derive(Clone, Debug)]
pub struct Lingering<T> {
    elements: Vec<T>,
    polls: u64,
    log: LingerLog,
}

/// The stage of [`lingering`].
#[derive(Debug)]
pub struct LingeringStage<T> {
    elements: std::vec::IntoIter<T>,
    polls: u64,
    closed: bool,
    log: LingerLog,
}

impl<T: Send + 'static> Blueprint for Lingering<T> {
    type Out = T;
    type Mat = ();
    type Stage = LingeringStage<T>;

    fn build(self, _: &Materializer) -> Built<LingeringStage<T>, ()> {
        self.log.0.opened.fetch_add(1, Ordering::Relaxed);
        let Lingering { elements, polls, log } = self;
        Ok((LingeringStage { elements: elements.into_iter(), polls, closed: false, log }, ()))
    }
}

impl<T: Send + 'static> Stage for LingeringStage<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        while cx.spend() {
            let Some(x) = self.elements.next() else {
                return Ok(Progress::Complete);
            };
            if push(x).is_break() {
                return Ok(Progress::Stopped);
            }
        }
        Ok(Progress::Pending)
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(Progress::Pending)
    }

    fn cancel(&mut self, _: CancelCause, _: &mut StageCx<'_, '_>) {}

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        if self.polls > 0 {
            self.polls -= 1;
            cx.wake();
            return Poll::Pending;
        }
        assert!(!self.closed, "polled after it had closed");
        self.closed = true;
        self.log.0.closed.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(())
    }
}

impl<T> Drop for LingeringStage<T> {
    fn drop(&mut self) {
        self.log.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}
