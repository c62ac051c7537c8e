//! A sink played by hand.

use datum_core::StreamError;
use datum_core::blueprint::{Built, Sink, SinkBlueprint};
use datum_core::materializer::{Materializer, Runnable};
use datum_core::stage::{CancelCause, Progress, Push, Stage, StageCx, Up};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Plays a sink that [`sink_probe`] made: it asks for exactly what it is told to ask for, and tends otherwise.
#[derive(Debug)]
pub struct SinkProbe<T>(Arc<Mutex<State<T>>>);

#[derive(Debug)]
struct State<T> {
    wanted: usize,
    got: Vec<T>,
    end: Option<Result<(), StreamError>>,
    cancel: Option<CancelCause>,
    waker: Option<Waker>,
}

/// A sink that materialises its own handle.
pub fn sink_probe() -> Sink<ProbeSink> {
    Sink::from_blueprint(ProbeSink)
}

impl<T> SinkProbe<T> {
    /// Wants `n` elements more.
    pub fn request(&self, n: usize) {
        self.change(|state| state.wanted += n);
    }

    /// Takes what has arrived since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.lock().got)
    }

    /// The end, if it came.
    #[must_use]
    pub fn end(&self) -> Option<Result<(), StreamError>> {
        self.lock().end.clone()
    }

    /// Wants no more.
    pub fn cancel(&self, cause: CancelCause) {
        self.change(|state| state.cancel = Some(cause));
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

/// The blueprint of a [`sink_probe`].
#[derive(Clone, Copy, Debug)]
pub struct ProbeSink;

/// The running sink of a [`sink_probe`].
#[derive(Debug)]
pub struct ProbeRun<U: Stage> {
    up: Up<U>,
    state: Arc<Mutex<State<U::Out>>>,
    ended: Option<Result<(), StreamError>>,
}

impl<In: Send + 'static> SinkBlueprint<In> for ProbeSink {
    type Mat = SinkProbe<In>;
    type Run<U: Stage<Out = In>> = ProbeRun<U>;

    fn attach<U: Stage<Out = In>>(self, up: U, _: &Materializer) -> Built<ProbeRun<U>, SinkProbe<In>> {
        let state =
            Arc::new(Mutex::new(State { wanted: 0, got: Vec::new(), end: None, cancel: None, waker: None }));
        Ok((ProbeRun { up: Up::new(up), state: state.clone(), ended: None }, SinkProbe(state)))
    }
}

impl<U: Stage> ProbeRun<U> {
    fn run(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<Result<(), StreamError>> {
        loop {
            let mut state = lock(&self.state);
            state.waker = Some(cx.waker().clone());
            let (wanted, cancel) = (state.wanted, state.cancel.take());
            drop(state);
            if let Some(cause) = cancel {
                self.up.cancel(cause.clone(), cx);
                return Poll::Ready(cause.into_result());
            }
            let answer = if wanted == 0 {
                self.up.tend(cx)
            } else {
                let state = &self.state;
                self.up.drive(cx, |x| {
                    let mut state = lock(state);
                    state.got.push(x);
                    state.wanted -= 1;
                    if state.wanted == 0 { Push::Break(()) } else { Push::Continue(()) }
                })
            };
            match answer {
                Ok(Progress::Stopped) => {}
                Ok(Progress::Pending) => return Poll::Pending,
                Ok(Progress::Complete) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<U: Stage> Runnable for ProbeRun<U> {
    fn poll_run(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        if self.ended.is_none() {
            let Poll::Ready(end) = self.run(cx) else {
                return Poll::Pending;
            };
            self.ended = Some(end);
        }
        if self.up.poll_closed(cx).is_pending() {
            return Poll::Pending;
        }
        lock(&self.state).end = self.ended.clone();
        Poll::Ready(())
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
