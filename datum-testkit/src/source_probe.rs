//! A source played by hand.

use datum_core::blueprint::{Blueprint, Built, Source};
use datum_core::materializer::Materializer;
use datum_core::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx};
use datum_core::{ErrorKind, StreamError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Plays the source that [`source_probe`] made, and tells what the stream did with it.
#[derive(Debug)]
pub struct SourceProbe<T>(Arc<Mutex<State<T>>>);

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    end: Option<Result<(), StreamError>>,
    cancelled: Option<CancelCause>,
    driven: u64,
    tended: u64,
    taken: u64,
    dropped: bool,
    waker: Option<Waker>,
}

/// A source for one run, and the handle that plays it. What was pushed before a failure is lost with it, as with any
/// source whose failure overtakes.
pub fn source_probe<T: Send + 'static>() -> (SourceProbe<T>, Source<Probe<T>>) {
    let state = Arc::new(Mutex::new(State {
        queue: VecDeque::new(),
        end: None,
        cancelled: None,
        driven: 0,
        tended: 0,
        taken: 0,
        dropped: false,
        waker: None,
    }));
    (SourceProbe(state.clone()), Source::from_blueprint(Probe(state)))
}

impl<T> SourceProbe<T> {
    /// Makes an element available, demand or not.
    pub fn push(&self, element: T) {
        self.change(|state| state.queue.push_back(element));
    }

    /// Ends the source behind what was pushed.
    pub fn complete(&self) {
        self.change(|state| state.end = Some(Ok(())));
    }

    /// Fails the source at once.
    pub fn fail(&self, error: impl Into<StreamError>) {
        self.change(|state| state.end = Some(Err(error.into())));
    }

    /// Fails the source at once, with some error. Gives it, to compare with [`StreamError::same`].
    pub fn fail_some(&self) -> StreamError {
        let error = StreamError::from(ErrorKind::NoElement { stage: "source probe" });
        self.fail(error.clone());
        error
    }

    /// Why the stream cancelled, if it did.
    #[must_use]
    pub fn cancelled(&self) -> Option<CancelCause> {
        self.lock().cancelled.clone()
    }

    /// How often it was driven: a question for elements.
    #[must_use]
    pub fn driven(&self) -> u64 {
        self.lock().driven
    }

    /// How often it was tended.
    #[must_use]
    pub fn tended(&self) -> u64 {
        self.lock().tended
    }

    /// How many elements were taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Whether the stream let go of it.
    #[must_use]
    pub fn dropped(&self) -> bool {
        self.lock().dropped
    }

    fn change(&self, f: impl FnOnce(&mut State<T>)) {
        let mut state = self.lock();
        f(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.0)
    }
}

/// The blueprint of a [`source_probe`].
#[derive(Debug)]
pub struct Probe<T>(Arc<Mutex<State<T>>>);

/// The stage of a [`source_probe`].
#[derive(Debug)]
pub struct ProbeStage<T>(Arc<Mutex<State<T>>>);

impl<T: Send + 'static> Blueprint for Probe<T> {
    type Out = T;
    type Mat = ();
    type Stage = ProbeStage<T>;

    fn build(self, _: &Materializer) -> Built<ProbeStage<T>, ()> {
        Ok((ProbeStage(self.0), ()))
    }
}

impl<T> ProbeStage<T> {
    fn answer(&self, cx: &StageCx<'_, '_>) -> Driven {
        let mut state = lock(&self.0);
        match &state.end {
            Some(Err(error)) => return Err(error.clone()),
            Some(Ok(())) if state.queue.is_empty() => return Ok(Progress::Complete),
            _ => {}
        }
        state.waker = Some(cx.waker().clone());
        Ok(Progress::Pending)
    }
}

impl<T: Send + 'static> Stage for ProbeStage<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        lock(&self.0).driven += 1;
        loop {
            let mut state = lock(&self.0);
            if matches!(state.end, Some(Err(_))) {
                break;
            }
            let Some(x) = state.queue.pop_front() else {
                break;
            };
            state.taken += 1;
            drop(state);
            if !cx.spend() {
                lock(&self.0).queue.push_front(x);
                lock(&self.0).taken -= 1;
                return Ok(Progress::Pending);
            }
            if push(x).is_break() {
                return match self.answer(cx)? {
                    Progress::Complete => Ok(Progress::Complete),
                    _ => Ok(Progress::Stopped),
                };
            }
        }
        self.answer(cx)
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        lock(&self.0).tended += 1;
        self.answer(cx)
    }

    fn cancel(&mut self, cause: CancelCause, _: &mut StageCx<'_, '_>) {
        lock(&self.0).cancelled = Some(cause);
    }

    fn poll_closed(&mut self, _: &mut StageCx<'_, '_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl<T> Drop for ProbeStage<T> {
    fn drop(&mut self) {
        lock(&self.0).dropped = true;
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
